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
    LAMELLA_CHECK(t.defined() && std::ranges::equal(t.sizes(), Ints(sizes_)) && t.dtype() == dtype_, Shape,
                  "backward: a saved-tensor hook gave {} for a value that {} saved; expected {}{}",
                  t.defined() ? type_str(t) : "an undefined tensor", saver_, lamella::name(dtype_), sizes_);
    return t;
  }

 private:
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
