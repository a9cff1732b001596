// Lines along one dim: the plan of everything else.
#pragma once

#include "lamella/core/check.h"
#include "lamella/kernels/cpu/pointwise.h"

namespace lamella::kernels {

/// The plan over all dims of `views` (equal sizes there) except those for which skip(dim) holds.
template <class Skip> IterPlan plan_where(std::span<const View> views, Skip&& skip) {
  int64_t sizes[IterPlan::kMaxDims], strides[IterPlan::kMaxOperands][IterPlan::kMaxDims];
  PlanOperand operands[IterPlan::kMaxOperands];
  LAMELLA_CHECK(views[0].rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}",
                views[0].rank, IterPlan::kMaxDims);
  int rank = 0;
  for (int d = 0; d < views[0].rank; ++d) {
    if (skip(d)) continue;
    sizes[rank] = views[0].sizes[d];
    for (size_t k = 0; k < views.size(); ++k) strides[k][rank] = views[k].strides[d];
    ++rank;
  }
  for (size_t k = 0; k < views.size(); ++k)
    operands[k] = {views[k].as<char>(), strides[k], itemsize(views[k].dtype)};
  return make_plan({operands, views.size()}, rank, sizes);
}

/// A view's extent along `dim` and its step in bytes; a rank-0 tensor is one line of one element.
inline int64_t line_size(const View& v, int64_t dim) { return v.rank == 0 ? 1 : v.sizes[dim]; }
inline int64_t line_step(const View& v, int64_t dim) {
  return v.rank == 0 ? 0 : v.strides[dim] * itemsize(v.dtype);
}

}  // namespace lamella::kernels
