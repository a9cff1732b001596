// Base autograd: tensors that require grad, backward, and hooks. The same nodes as the grad level, outside
// all levels. docs/autograd.md has the order of hooks and the table of PyTorch's names.
#pragma once

#include <functional>
#include <memory>

#include "lamella/dispatch/value.h"
#include "lamella/transforms/stop_gradient.h"

LAMELLA_API_BEGIN
namespace lamella {

/// A tensor sharing x's memory that requires grad: a leaf. Errors: dtype unless floating or complex; level
/// for a wrapped tensor.
Tensor requires_grad(const Tensor& x);
/// Makes the handle x itself, plain until now, a leaf; returns it. Errors as requires_grad's; value when x
/// carries derivatives already or is a view of a tensor that does.
const Tensor& requires_grad_(const Tensor& x);
/// Whether backward from x reaches some leaf.
bool is_grad_required(const Tensor& x);
/// Whether no operator made x what it is for autograd: leaves that require grad, and plain tensors.
bool is_leaf(const Tensor& x);
/// Counts the writes to x's memory, through whatever handle. Error level for a wrapped tensor.
uint32_t version_of(const Tensor& x);

struct BackwardOptions {
  /// The gradients themselves carry derivatives, also under NoGrad and in a hook (not in inference mode). A
  /// leaf then holds its gradient, whose graph ends in the leaf: both are freed with the leaf's last handle,
  /// or by clear_grad().
  bool create_graph = false;
};

/// Adds d root / d leaf to every leaf root depends on. `cotangent` is 1 by default and then root must have
/// one element. Gradients are dense and share no memory with other tensors (without create_graph). The graph
/// stays usable as long as handles to it exist, so backward may be called again, also from several threads.
/// When a rule or a hook raises, no gradient has changed (see add_accumulated_hook).
/// Errors: shape, value (a saved tensor was written in place since), not_differentiable when root does not
/// require grad.
void backward(const Tensor& root, const Tensor& cotangent = {}, BackwardOptions options = {});
/// Likewise of a root that is given away, as a result just made is: its handle is empty afterwards, and where
/// it was the last one, what a node saved is freed once the node has run.
void backward(Tensor&& root, const Tensor& cotangent = {}, BackwardOptions options = {});
/// Likewise for the sum over several roots; `cotangents` is empty, or has one for each root (undefined: 1).
void backward(const Tensors& roots, const Tensors& cotangents = {}, BackwardOptions options = {});

namespace autograd {
struct GradOptions {
  bool create_graph = false;
  bool allow_unused = false;  ///< undefined for an input that no output depends on, instead of an error
};
/// The gradients of the sum of `outputs` (weighted with `cotangents`, as for backward) with respect to
/// `inputs`: leaves, or any tensors on the way. No leaf's gradient changes. Errors: as backward's;
/// not_differentiable for an input that does not require grad or, without allow_unused, that no output
/// depends on.
Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents = {},
             GradOptions options = {});
}  // namespace autograd

/// What backward has added up in a leaf, or in a tensor that retain_grad() named; undefined before the first
/// backward. Error usage for other tensors.
Tensor grad_of(const Tensor& x);
void clear_grad(const Tensor& x);
/// Lets backward add up x's gradient as it does a leaf's; a write to x in place takes it along. Error
/// not_differentiable when x does not require grad.
void retain_grad(const Tensor& x);

/// A hook that can be taken away again; forgetting the handle leaves it where it is.
class HookHandle {
 public:
  struct State;
  explicit HookHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void remove();  ///< of a handle that was moved from: nothing

 private:
  std::shared_ptr<State> state_;
};

/// Called in backward when x's cotangent is complete; a defined result, of the same shape and dtype, takes
/// its place. Belongs to what x is now: a later write to x gives x another history. Hooks run in the order in
/// which they were added, before retained gradients are added up and before what x was computed from. They
/// may call backward. They may not write to what they are given, which other paths may show (error value of
/// the backward). Error not_differentiable when x does not require grad.
using TensorHook = std::function<Tensor(const Tensor& cotangent)>;
HookHandle add_hook(const Tensor& x, TensorHook hook);

/// Called at the end of a backward that changed the leaf's gradient, when all gradients are in place, with
/// the leaf's new gradient. What it raises leaves the gradients as they are then: added up. Error usage
/// unless x is a leaf.
using AccumulatedHook = std::function<void(const Tensor& gradient)>;
HookHandle add_accumulated_hook(const Tensor& leaf, AccumulatedHook hook);

/// Around the rule of the operator x is a result of. `before` gets the cotangents of its results (undefined:
/// none came), after the hooks of tensors; a list of the same length that it returns takes their place.
/// `after` gets those it gives to its inputs, one for each input that carries derivatives (undefined: none,
/// or in autograd::grad one that leads to no input asked for), and the former; what it returns takes their
/// place likewise. Neither may write to what it is given (error value of the backward). Error usage for
/// leaves, not_differentiable for tensors that do not require grad.
struct NodeHook {
  std::function<Tensors(const Tensors& cotangents)> before = {};
  std::function<Tensors(const Tensors& to_inputs, const Tensors& cotangents)> after = {};
};
HookHandle add_node_hook(const Tensor& x, NodeHook hook);

/// While alive on this thread, nothing is recorded by base autograd, nor by levels of grad and jvp that were
/// open before (NoGradLevels). Views made meanwhile are not followed: they are detached. Leaves may be
/// written.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  NoGradLevels levels_;
  uint64_t saved_;
};

/// While alive on this thread, base autograd records again, and levels do, under NoGrad or in a hook; not in
/// inference mode.
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace lamella
LAMELLA_API_END
