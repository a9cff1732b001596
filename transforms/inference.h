// Inference mode: a scope whose results are never part of a graph of base autograd.
#pragma once

#include <optional>

#include "lamella/transforms/autograd.h"

LAMELLA_API_BEGIN
namespace lamella {

/// While alive on this thread, nothing is recorded by base autograd, as under NoGrad, nor by levels of grad
/// and jvp that were open before; levels opened inside record as ever. Besides, memory made meanwhile is
/// marked: it holds *inference tensors*. They and their views, made inside or outside, are values like
/// others, whose writes are counted, with three exceptions, each error value: base autograd does not save
/// them for a formula, nor writes values that carry derivatives into them, and requires_grad refuses them.
/// A clone made outside is a tensor like others. Inside, EnableGrad changes nothing; `InferenceMode(false)`
/// does, for its scope: recording is on and memory is not marked. Views of other tensors and writes to them
/// are those of NoGrad. Costs nothing but NoGrad. Error level_limit beyond 48 nested levels.
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;

 private:
  bool saved_;
  std::optional<NoGrad> off_;
  std::optional<EnableGrad> on_;
};

/// Whether this thread is in an InferenceMode.
inline bool is_inference_mode() { return detail::birth_serial & kInferenceBirth; }
/// Whether x's memory was made in an InferenceMode; of a wrapped tensor, that of its value. False for meta
/// tensors, which have none. Error undefined.
bool is_inference(const Tensor& x);

}  // namespace lamella
LAMELLA_API_END
