// Reverse mode: vjp, grad, value_and_grad.
#pragma once

#include <functional>
#include <memory>

#include "lamella/transforms/vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Maps cotangents of the results to cotangents of the inputs. Counted and self-contained: outlives the level
/// that made it, may run any number of times, under other levels and on other threads.
class Pullback {
 public:
  struct State;
  explicit Pullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  /// One cotangent per result (undefined: zero), of its shape and dtype; returns one per input, zeros where
  /// nothing depends on it.
  Tensors operator()(const Tensors& cotangents) const&;
  /// Likewise for the last time: where no copy is left, what was saved is freed on the way. Error usage
  /// afterwards, as of any that was moved from.
  Tensors operator()(const Tensors& cotangents) &&;

 private:
  void check(const Tensors& cotangents) const;
  std::shared_ptr<const State> state_;
};

struct VjpResult {
  Tensors values;
  Pullback pullback;
  Tensors aux;
};

using ScalarFunction = std::function<Tensor(const Tensors&)>;

/// f's values and the map u -> J^H u (for real inputs J^T u). Errors: dtype when an input is neither floating
/// nor complex.
VjpResult vjp(const Function& f, const Tensors& inputs);
VjpResult vjp_has_aux(const AuxFunction& f, const Tensors& inputs);

/// NOTE: [results of levels] What vjp, jvp, grad and pullbacks return may be the caller's own tensor or share
/// memory with it or with each other: sum(a + b) has one gradient for both, the identity's tangent is the one
/// that was given. Clone what is to be written. Base autograd's gradients are each leaf's own.

/// The gradient of a scalar-valued real f with respect to the inputs in `argnums`; negative ones count from
/// the end. Errors: shape when f's value has more than one element, dtype when it is not real floating point
/// or a chosen input is neither floating nor complex, usage when argnums names no input or one twice.
Function grad(ScalarFunction f, std::vector<int> argnums = {0});
UnaryFunction grad(UnaryFunction f);
/// Value first, then the gradients.
Function value_and_grad(ScalarFunction f, std::vector<int> argnums = {0});
/// f returns (value, aux). Gradients, then aux.
Function grad_has_aux(AuxFunction f, std::vector<int> argnums = {0});
/// Likewise: value, gradients, aux.
Function value_and_grad_has_aux(AuxFunction f, std::vector<int> argnums = {0});

}  // namespace lamella
LAMELLA_API_END
