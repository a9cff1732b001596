// Inference mode: the scope, and who was made in one.
#include "lamella/transforms/inference.h"

#include "lamella/dispatch/state.h"

namespace lamella {

namespace {
void mark_memory(bool on) {
  uint64_t& birth = detail::birth_serial;
  birth = on ? birth | kInferenceBirth : birth & ~kInferenceBirth;
}
}  // namespace

InferenceMode::InferenceMode(bool on) : saved_(is_inference_mode()) {
  if (on) off_.emplace();
  mark_memory(on);
  if (!on) on_.emplace();
}

/// In reverse: the scopes inside restore what they found.
InferenceMode::~InferenceMode() {
  on_.reset();
  mark_memory(saved_);
  off_.reset();
}

bool is_inference(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "is_inference: x is an undefined tensor; expected a defined one");
  const TensorImpl* impl = x.impl();
  while (!impl->storage && impl->keys >> kFirstLevelKey)
    impl = static_cast<const Wrapper*>(impl->wrap)->value.impl();
  return impl->storage && impl->storage->made_in_inference();
}

}  // namespace lamella
