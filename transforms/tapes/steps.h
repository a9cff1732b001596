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
/// What node `n` saved, with its history. Tapes hold values: a result comes from the node itself, an argument
/// from where its edge leads. `kept` holds it, and `list`, where the value is that, shows it.
const void* with_history(TapeHooks& hooks, Node& n, BoundSave what, const void* value, TensorSpan& list,
                         Tensors& kept);

}  // namespace lamella
LAMELLA_API_END
