// Base autograd: tensors that require grad, and backward. The same nodes as the grad level, outside all
// levels.
#pragma once

#include "lamella/dispatch/value.h"

namespace lamella {

/// A tensor sharing x's memory that requires grad: a leaf. Errors: dtype unless floating or complex; level
/// for a wrapped tensor.
Tensor requires_grad(const Tensor& x);
bool is_grad_required(const Tensor& x);

struct BackwardOptions {
  /// The gradients themselves carry derivatives. A leaf then holds its gradient, whose graph holds the leaf:
  /// clear_grad() frees both.
  bool create_graph = false;
};

/// Adds d root / d leaf to every leaf root depends on. `cotangent` is 1 by default and then root must have
/// one element. The graph stays usable as long as handles to it exist, so backward may be called again.
/// Errors: shape, value (a saved tensor was written in place since), not_differentiable when root does not
/// require grad.
void backward(const Tensor& root, const Tensor& cotangent = {}, BackwardOptions options = {});

/// What backward has added up in a leaf; undefined before the first backward.
Tensor grad_of(const Tensor& leaf);
void clear_grad(const Tensor& leaf);
/// The same memory without the graph.
Tensor detach(const Tensor& x);

/// While alive on this thread, nothing is recorded by base autograd.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace lamella
