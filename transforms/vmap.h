// vmap: a function of one example becomes a function of a batch.
#pragma once

#include <functional>

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

using UnaryFunction = std::function<Tensor(const Tensor&)>;
/// A function that also returns values to be handed through: (values, aux).
using AuxFunction = std::function<std::pair<Tensors, Tensors>(const Tensors&)>;

/// Which dim of an argument is mapped: an index (negative from the end), or kNone.
inline constexpr int kNone = -1000;
using InDims = std::vector<int>;

/// What random operators do in lanes: refuse, draw one sample for all, or an independent one each.
enum class Randomness : uint8_t { Error, Same, Different };

struct VmapOptions {
  InDims in_dims = {0};   ///< one for all arguments, or one per argument
  InDims out_dims = {0};  ///< likewise for results; kNone: the result must not depend on the lane
  Randomness randomness = Randomness::Error;
  int64_t size = -1;  ///< lanes, when no argument is mapped; -1: not said
  /// Lanes mapped at a time, to save memory: f runs once for each group, and results are joined. 0: all. What
  /// f draws is as without groups.
  int64_t chunk = 0;
  int64_t first_lane = 0;  ///< number of the first lane, for what lanes draw
  /// Asked in place of out_dims, after the function has run: for results whose number is not known before.
  std::function<InDims()> result_dims = {};
};

/// vmap(f)(x...) stacks f over the mapped dims: equal to the loop over lanes in values, shapes, strides and
/// in whether it raises, for f that changes nothing but what is mapped or its own: f runs once (once for each
/// group of `chunk`), so that a write of values without lanes to a tensor without lanes, an argument of kNone
/// or a captured one, is done once, where the loop does it for each lane. Errors: mapped_size (lanes
/// disagree, none mapped), dim_out_of_range (in_dims, out_dims), randomness, value (chunk < 0, size < -1,
/// first_lane too large), usage (no function); and whatever f raises.
Function vmap(Function f, VmapOptions options = {});
/// A template so that {.chunk = 2}, which g++ takes for a list of dims as well, means options.
template <class = void> Function vmap(Function f, InDims in_dims, InDims out_dims = {0}) {
  return vmap(std::move(f), VmapOptions{std::move(in_dims), std::move(out_dims)});
}
UnaryFunction vmap(UnaryFunction f, int in_dim = 0, int out_dim = 0);

}  // namespace lamella
LAMELLA_API_END
