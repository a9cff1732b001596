// Steps of a tape that somebody looks at.
#pragma once

#include <functional>

#include "lamella/transforms/tapes/hidden.h"
#include "lamella/transforms/tapes/hooks.h"
#include "lamella/transforms/tapes/watch.h"

LAMELLA_API_BEGIN
namespace lamella {

/// `run` computes what node `n` gives along its edges, into `given`; the watch looks at that, and the hooks
/// may replace it. Either may be null.
void look_at_step(TapeWatch* watch, TapeHooks* hooks, Node& n, TensorSpan cotangents,
                  std::vector<Given>& given, const std::function<void()>& run);
/// sum + ct: a NaN here is the node's, and so is what is recorded.
void sum_watched(TapeWatch& watch, Node& n, Tensor& sum, const Tensor& ct);
/// Who receives gradients: leaves of a level, like these, or of base autograd, which knows its own.
struct Receivers {
  std::span<const NodeOutput> targets;
  TensorSpan like;
  TapeHooks* hooks = nullptr;
};
/// What node `n` gives a leaf along an edge is of the leaf's sizes and dtype. Nobody else knows those of a
/// value on the way; rules of the operators there refuse what does not fit, or hand it on. Errors naming the
/// operator, its rule and the argument: shape, dtype.
void check_gradient(const Node& n, const Edge& e, const Tensor& ct, const Receivers& receivers);
/// Entry `e.element` of what a rule for a list gave. Error shape likewise: it gave fewer.
const Tensor& entry_of(const Tensors& all, const Node& n, const Edge& e);
/// What a jvp rule for parameter `input` gave is one tangent for each of `n` results. Error shape likewise.
Tensors for_results(Tensors all, const Op& op, int input, size_t n);
/// A tangent in the result's sizes, to which it must broadcast. Error shape likewise.
Tensor expanded_tangent(const Tensor& t, const Tensor& result, const Op& op, int input);
/// What node `n` saved, with its history. Tapes hold values: a result comes from the node itself, an argument
/// from where its edge leads. `kept` holds it, and `list`, where the value is that, shows it.
const void* with_history(TapeHooks& hooks, Node& n, BoundSave what, const void* value, TensorSpan& list,
                         Tensors& kept);

}  // namespace lamella
LAMELLA_API_END
