// What a batch rule sees: physical arguments, where their mapped dims are, and helpers to line them up.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [batch rules] `frame` holds the values one level down, with the mapped dim still where the caller
/// put it. A rule computes physical results with the mapped dim in front and writes them to `results` (or
/// `list`); a result that does not depend on the lane may be marked not mapped. Logical shapes have been
/// checked before: a rule never raises a static error.
struct BatchCall {
  const Frame& frame;
  const int*
      dims;  ///< per parameter; kNotMapped for what is not mapped, and for parameters that are no tensor
  const std::vector<int>* list_dims;  ///< per parameter: mapped dims of the entries of a list
  int64_t size;                       ///< lanes
  const Frame& logical;               ///< the same call as the user made it: sizes() are logical
  const Inferred& lane;  ///< what its shape function said; empty for views, and where values decide
  Tensor* results;
  Tensors* list;
  bool mapped[kMaxResults] = {true, true, true, true};  ///< per result

  static constexpr int kNotMapped = -1;
  bool is_mapped(int i) const { return dims[i] != kNotMapped; }
  int logical_rank(int i) const { return logical.tensor(i).rank(); }
  /// Parameter i with the mapped dim in front; what is not mapped is expanded.
  Tensor front(int i) const;
  /// Likewise, with size-1 dims inserted behind the mapped dim until the logical rank is `rank`. What is not
  /// mapped stays as it is.
  Tensor front_padded(int i, int rank) const;
  Tensors front_list(int i) const;
};

/// `t` with dim `from` moved to the front.
Tensor to_front(const Tensor& t, int from);
/// `t` once for each of `size` lanes, which are its dim 0: a view.
Tensor expand_front(const Tensor& t, int64_t size);
/// Moves dim 0 to `to` (negative: from the end).
Tensor from_front(const Tensor& t, int to);

namespace ops {
/// The class rule of everything that takes dims by Dim/Dim[] and shapes by Size: all operands to the front,
/// dims up by one, sizes prefixed.
void batch_front(BatchCall& b);
/// The class rule of Broadcast.
void batch_broadcast(BatchCall& b);
}  // namespace ops

}  // namespace lamella
LAMELLA_API_END
