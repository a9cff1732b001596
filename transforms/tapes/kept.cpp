// Saved lists, strings and functions.
#include "lamella/transforms/tapes/kept.h"

#include "lamella/transforms/tapes/asked.h"
#include "lamella/transforms/writes/own_header.h"

namespace lamella {

namespace {
/// Its tensors are values like other saved ones.
class KeptList final : public Kept {
 public:
  KeptList(const Op& op, BoundSave what, int key, TensorSpan ts) : key_(key) {
    for (size_t k = 0; k < ts.size(); ++k) {
      Tensor value = is_read(op, what, k) ? own_value(op, ts[k], key) : Tensor();
      std::shared_ptr<Packed> form = packed_form(op, value, key);
      if (asked_of_tapes.packer) packed_.push_back(form);
      values_.push_back(form ? Tensor() : std::move(value));
      const TensorImpl* const kept = values_.back().impl();
      versions_.push_back({kept ? writes_seen(*kept) : 0, kept ? last_level(*kept) : 0});
    }
  }

  const void* pointer(const Op& op, TensorSpan& list, Tensors& unpacked) override {
    for (size_t k = 0; k < values_.size(); ++k) {
      if (!values_[k].defined()) continue;
      const auto [version, last] = versions_[k];
      const Tensor* const then = as_saved(op.name, values_[k], key_, last, version);
      if (then != &values_[k]) values_[k] = Tensor(*then);  // promoted meanwhile
    }
    if (packed_.empty()) return &(list = TensorSpan(values_));
    unpacked = values_;
    for (size_t k = 0; k < unpacked.size(); ++k)
      if (packed_[k]) unpacked[k] = packed_[k]->unpack();
    return &(list = TensorSpan(unpacked));
  }

  void used() override {
    for (const std::shared_ptr<Packed>& p : packed_)
      if (p) p->used();
  }

 private:
  int key_;
  Tensors values_;                                  ///< packed ones are undefined
  std::vector<std::shared_ptr<Packed>> packed_;     ///< empty, or one for each
  std::vector<std::pair<uint32_t, int>> versions_;  ///< writes seen, and the last level
};

template <class T> class KeptValue final : public Kept {
 public:
  explicit KeptValue(const T& v) : value_(v) {}
  const void* pointer(const Op&, TensorSpan&, Tensors&) override { return &value_; }

 private:
  T value_;
};
}  // namespace

std::unique_ptr<Kept> kept_of(const Frame& f, BoundSave what, int key) {
  const int i = what.index;
  const auto list = [&](TensorSpan ts) { return std::make_unique<KeptList>(*f.op, what, key, ts); };
  if (what.kind == BoundSave::Result) return list(*f.list);
  if (what.kind == BoundSave::MetaOf) return list(without_elements(f.tensors(i)));
  const ParamKind kind = f.op->schema.params[size_t(i)].kind;
  if (kind == ParamKind::TensorList) return list(f.tensors(i));
  if (kind == ParamKind::String) return std::make_unique<KeptValue<std::string>>(f.arg<std::string>(i));
  LAMELLA_ASSERT(kind == ParamKind::Function);
  return std::make_unique<KeptValue<FunctionRef>>(f.arg<FunctionRef>(i));
}

}  // namespace lamella
