// Carried transforms: see NOTE: [carried transforms].
#include "lamella/transforms/carried.h"

#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/given.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/machine/interpreter.h"

namespace lamella {

namespace {

/// Of type ReplacingWrapper, so that writes and views are followed.
struct CarryingWrapper : ReplacingWrapper {
  Tensor carried;
  const CarriedRules* rules = nullptr;
  std::string str() const override { return format(" with what {} carries", live_key_name(key)); }
};
CarryingWrapper& carrying(const Tensor& t) { return *static_cast<CarryingWrapper*>(t.impl()->wrap); }

Tensor constant_of(const CarriedRules& rules, const Tensor& t) {
  return t.defined() && is_inexact(t.dtype()) ? rules.of_constant(t) : t;
}

class CarriedTransform final : public Interpreter {
 public:
  explicit CarriedTransform(const CarriedRules& rules) : rules_(&rules) {}
  TransformKind kind() const override { return TransformKind::Carried; }
  std::string_view name() const override { return rules_->name; }
  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<CarriedTransform>(*this); }

  struct Both {
    Tensor value, carried;
  };
  Tensor wrap(Both both) const {
    const TensorImpl& shape = *both.value.impl();  // the wrapper keeps it alive
    Tensor t = make_wrapper<CarryingWrapper>(std::move(both.value), key_, serial_, shape);
    carrying(t).carried = std::move(both.carried), carrying(t).rules = rules_;
    return t;
  }
  Tensor entered_argument(const Tensor& x) const { return wrap({x, constant_of(*rules_, x)}); }
  /// What does not depend on the arguments carries what constants do. Error escaped_wrapper.
  Both split(const Frame& f, const Tensor& t) const {
    const ReplacingWrapper* const w = current_wrapper(f, t, key_, serial_, take);
    if (!w) return {t, constant_of(*rules_, t)};
    return {w->value, static_cast<const CarryingWrapper*>(w)->carried};
  }
  /// Of what a function returns: another level's is whoever uses it to refuse.
  Both split(const Tensor& t) const {
    static constexpr Frame kReturn{nullptr, nullptr, nullptr};
    if (!wrapper_at<CarryingWrapper>(t, key_, serial_)) return {t, constant_of(*rules_, t)};
    return split(kReturn, t);
  }
  Left left(const Tensor& t) const override { return {split(t).value}; }
  Tensor fixed(const Tensor& t) const override {
    const Both both = split(t);
    return wrap({lamella::fixed(both.value), lamella::fixed(both.carried)});
  }

 protected:
  void functional(Frame& f) override {
    if (f.op->composite) {  // its parts come here
      const Reaching reaching(key_);
      return f.op->composite(f);
    }
    FrameCopy values(f), beside(f);
    for_each_tensor(f, [&](const Tensor& t, int param, int element) {
      if (!t.defined()) return;
      const Both both = split(f, t);
      const bool moved = f.op->is_view() && !lies_as_seen(t, both.value);
      values.set(param, element, moved ? contiguous(both.value) : both.value);
      beside.set(param, element, f.op->is_view() ? contiguous(both.carried) : both.carried);
    });
    Tensor carried[kMaxResults];
    Tensors carried_list;
    Frame below = values.into(f.results, f.list), other = beside.into(carried, &carried_list);
    lamella::call(below);
    if (rules_->beside) rules_->beside(below, other);
    else lamella::call(other);
    const bool list = f.op->schema.result_kind == ResultKind::TensorList;
    for_each_result(f, [&, k = size_t{0}](Tensor& result) mutable {
      Tensor& its = list ? carried_list[k] : carried[k];
      if (result.defined() && is_inexact(result.dtype())) result = wrap({std::move(result), std::move(its)});
      ++k;
    });
    if (f.op->is_view() && wraps(f.results[0])) note_view(f, f.results[0], key_, serial_);
  }
  void assign(const Frame& f, const Tensor& target, const Tensor& value) override {
    replace_value(f, target, value, key_, serial_, take);
  }
  Wrapper* shell(const Tensor& plain) override {
    auto* const w = make_shell<CarryingWrapper>(plain, plain);
    w->rules = rules_, w->carried = constant_of(*rules_, plain);
    return w;
  }

 private:
  /// A write: `to` stands for what `from` is.
  static void take(const Tensor& to, const Tensor& from) {
    CarryingWrapper& w = carrying(to);
    const bool wrapped = from.keys() >> w.key & 1;
    Both now = wrapped ? Both{carrying(from).value, carrying(from).carried}
                       : Both{from, constant_of(*w.rules, from)};
    w.value = std::move(now.value), w.carried = std::move(now.carried);
  }

  const CarriedRules* rules_;
};

}  // namespace

Carried run_carried(const CarriedRules& rules, const Function& f, const Tensors& xs) {
  given(f, rules.name);
  given(rules.of_constant, rules.name, "rules.of_constant");
  CarriedTransform transform(rules);
  const OpenLevel open(transform);
  Tensors wrapped;
  for (const Tensor& x : xs) {
    LAMELLA_CHECK(x.defined(), Undefined, "{}: argument {} is an undefined tensor; expected a defined one",
                  rules.name, wrapped.size());
    wrapped.push_back(transform.entered_argument(x));
  }
  const Tensors ys = f(wrapped);
  const Below below(open.level.key());
  Carried out;
  for (const Tensor& y : ys) {
    auto [value, carried] = transform.split(y);
    out.values.push_back(std::move(value)), out.carried.push_back(std::move(carried));
  }
  return out;
}

}  // namespace lamella
