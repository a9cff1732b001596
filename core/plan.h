// The iteration plan: the one place that turns strided operands of equal sizes into loops. Pointwise and
// reduction use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lamella/core/limits.h"
#include "lamella/core/view.h"

LAMELLA_API_BEGIN
namespace lamella {

/// One operand of a plan: like View, but strides count bytes per element step and may be negative (flip).
struct PlanOperand {
  char* data;
  const int64_t* strides;  ///< in elements, one per dim
  int64_t itemsize;
};

/// Loops in execution order: dim 0 is the innermost. Dims of size 1 are gone, dims are sorted by stride (the
/// first operand, the output, decides) and neighbours that form one run in every operand are merged. Lives on
/// the stack, never allocates.
struct IterPlan {
  static constexpr int kMaxDims = lamella::kMaxDims;
  static constexpr int kMaxOperands = kMaxPlanOperands;

  int rank = 0;        ///< dims left after merging; sizes[0] is valid (1) even when this is 0
  int given_rank = 0;  ///< dims before
  int operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];  ///< in bytes
  int64_t itemsize[kMaxOperands];
  char* data[kMaxOperands];

  int64_t size(int dim) const { return dim < rank ? sizes[dim] : 1; }
  int64_t stride(int operand, int dim) const { return dim < rank ? strides[operand][dim] : 0; }
  /// Whether the innermost run of `operand` has no gaps.
  bool packed(int operand) const { return sizes[0] == 1 || strides[operand][0] == itemsize[operand]; }
};

/// REQUIRES: every operand has `rank` strides. Errors: shape beyond kMaxDims, usage beyond kMaxOperands.
IterPlan make_plan(std::span<const PlanOperand> operands, int rank, const int64_t* sizes);
/// REQUIRES: all views have equal sizes.
IterPlan make_plan(std::span<const View> outs, std::span<const View> ins);

/// "plan 4 dims -> 2: sizes (6, 128) | 4, 512 | 4, 0": sizes innermost first, then the byte strides of each
/// operand.
std::string str(const IterPlan& plan);

/// Calls f(char* const* pointers) once per index of the dims >= first, in order; nothing when the plan is
/// empty.
template <class F> void for_each_outer(const IterPlan& plan, int first, F&& f) {
  if (plan.numel == 0) return;
  char* at[IterPlan::kMaxOperands];
  for (int k = 0; k < plan.operands; ++k) at[k] = plan.data[k];
  int64_t index[IterPlan::kMaxDims];
  for (int d = first; d < plan.rank; ++d) index[d] = 0;
  for (;;) {
    f(static_cast<char* const*>(at));
    int d = first;
    for (; d < plan.rank; ++d) {
      if (++index[d] < plan.sizes[d]) break;
      for (int k = 0; k < plan.operands; ++k) at[k] -= plan.strides[k][d] * (plan.sizes[d] - 1);
      index[d] = 0;
    }
    if (d >= plan.rank) return;
    for (int k = 0; k < plan.operands; ++k) at[k] += plan.strides[k][d];
  }
}

}  // namespace lamella
LAMELLA_API_END
