// Saved-tensor hooks by users.
#include "lamella/transforms/saved_hooks.h"

#include <algorithm>

#include "lamella/dispatch/state.h"

namespace lamella {

namespace {
class Hooked final : public Packed {
 public:
  Hooked(std::string_view saver, const Tensor& value, Unpack unpack)
      : saver_(saver), sizes_(value.sizes()), dtype_(value.dtype()), unpack_(std::move(unpack)) {}
  Tensor unpack() override {
    Tensor t = unpack_();
    if (!t.defined()) refuse(ErrorCode::Undefined, "an undefined tensor");
    if (t.dtype() != dtype_) refuse(ErrorCode::DType, type_str(t));
    if (!std::ranges::equal(t.sizes(), Ints(sizes_))) refuse(ErrorCode::Shape, type_str(t));
    return t;
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& got) const {
    fail(code, "backward: a saved-tensor hook gave {} for a value that {} saved; expected {}{}", got, saver_,
         lamella::name(dtype_), sizes_);
  }
  std::string saver_;
  Dims sizes_;
  DType dtype_;
  Unpack unpack_;
};
}  // namespace

std::shared_ptr<Packed> SavedTensorHooks::pack(std::string_view saver, const Tensor& value, int) {
  const ScopedPacker none(nullptr);
  const Excluding no_record(KeySet::of(kAutogradKey));
  Unpack unpack = pack_(value);
  if (!unpack) return nullptr;
  return std::make_shared<Hooked>(saver, value, std::move(unpack));
}

}  // namespace lamella
