// Wrong loop plans: the right kernel, whose loops are one short, take a wrong step or begin in a wrong place.
#include <algorithm>
#include <map>

#include "lamella/core/plan_watch.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

/// What the plans of an operator's own kernel were like in drawn cases.
struct PlanTraits {
  int operands = 0, rank = 0;
  bool run = false;                         ///< an innermost dim of two or more elements
  bool tail = false;                        ///< one of more than four, and no multiple of four
  bool gaps[IterPlan::kMaxOperands] = {};   ///< an inner run of the operand had some
  bool moves[IterPlan::kMaxOperands] = {};  ///< an inner stride was not 0
  bool outer[IterPlan::kMaxOperands] = {};  ///< the next dim's stride was greater
}* plan_noting = nullptr;

void note(IterPlan& p) {
  if (p.numel == 0) return;
  plan_noting->operands = std::max(plan_noting->operands, p.operands);
  plan_noting->rank = std::max(plan_noting->rank, p.rank);
  plan_noting->run |= p.sizes[0] > 1;
  plan_noting->tail |= p.sizes[0] > 4 && p.sizes[0] % 4;
  for (int k = 0; k < p.operands && p.sizes[0] > 1; ++k) {
    plan_noting->gaps[k] |= p.strides[k][0] > p.itemsize[k];
    plan_noting->moves[k] |= p.strides[k][0] != 0;
    plan_noting->outer[k] |= p.rank >= 2 && p.strides[k][1] > p.strides[k][0];
  }
}

const PlanTraits& plans_of(const Op& op) {
  static std::map<std::string, PlanTraits> known;
  const auto [at, fresh] = known.try_emplace(op.name);
  if (!fresh) return at->second;
  plan_noting = &at->second;
  observe(op, [](Op& row) {
    row.kernel.cpu = [](const KernelCall& c) {
      const WatchPlans watch(note);
      right_row().kernel.cpu(c);
    };
    row.kernel.lines = {};
  });
  return at->second;
}

bool runs_two(const Op& op) { return may_have_kernel(op) && plans_of(op).run; }
bool runs_tail(const Op& op) { return may_have_kernel(op) && plans_of(op).tail; }
bool plans_two_dims(const Op& op) { return may_have_kernel(op) && plans_of(op).rank >= 2; }

/// The operands of which a trait holds: the sites of a perturbation of one operand.
template <bool (PlanTraits::*Trait)[IterPlan::kMaxOperands]> uint32_t where(const Op& op) {
  uint32_t bits = 0;
  for (int k = 0; k < IterPlan::kMaxOperands; ++k) bits |= uint32_t((plans_of(op).*Trait)[k]) << k;
  return bits;
}

/// The operand that the bug is about, or one that there is not.
int operand(const IterPlan& p) { return live_bug.operand < p.operands ? live_bug.operand : -1; }

void count(IterPlan& p) {
  p.numel = 1;
  for (int d = 0; d < p.rank; ++d) p.numel *= p.sizes[d];
}

void inner_one_short(IterPlan& p) {
  if (p.sizes[0] > 1) --p.sizes[0];
  count(p);
}
void vector_tail_dropped(IterPlan& p) {
  if (p.sizes[0] > 4) p.sizes[0] -= p.sizes[0] % 4;
  count(p);
}
void outer_dim_dropped(IterPlan& p) {
  if (p.rank >= 2) --p.rank;
  count(p);
}
/// Every operand begins one step in; the loop is shorter by as much.
void begins_late(IterPlan& p) {
  if (p.sizes[0] < 2) return;
  for (int k = 0; k < p.operands; ++k) p.data[k] += p.strides[k][0];
  inner_one_short(p);
}
void taken_for_packed(IterPlan& p) {
  const int k = operand(p);
  if (k >= 0 && p.strides[k][0] > p.itemsize[k]) p.strides[k][0] = p.itemsize[k];
}
void inner_stride_zero(IterPlan& p) {
  const int k = operand(p);
  if (k >= 0 && p.sizes[0] > 1) p.strides[k][0] = 0;
}
void runs_backwards(IterPlan& p) {
  const int k = operand(p);
  if (k < 0 || p.sizes[0] < 2) return;
  p.data[k] += p.strides[k][0] * (p.sizes[0] - 1);
  p.strides[k][0] = -p.strides[k][0];
}
void outer_stride_of_inner(IterPlan& p) {
  const int k = operand(p);
  if (k >= 0 && p.rank >= 2 && p.strides[k][1] > p.strides[k][0]) p.strides[k][1] = p.strides[k][0];
}

/// Elements a shortened loop leaves out hold bytes of 1, whatever lay there before; a result written in place
/// keeps what it had.
void clear_results(const KernelCall& c) {
  for (const View& out : c.outs) {
    const bool read = std::ranges::any_of(c.ins, [&](const View& in) { return in.data == out.data; });
    if (read || right_row().shape == ShapeClass::Index) continue;
    Dims at(out.rank);
    const size_t bytes = size_t(itemsize(out.dtype));
    for (int64_t i = 0, n = out.numel(); i < n; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < out.rank; ++d) offset += at[d] * out.strides[d];
      std::fill_n(out.as<char>() + size_t(offset) * bytes, bytes, char(1));
      for (int d = out.rank - 1; d >= 0 && ++at[d] == out.sizes[d]; --d) at[d] = 0;
    }
  }
}

template <PlanWatcher W> void put(Op& row) {
  live_bug.counted = true;
  row.kernel.cpu = [](const KernelCall& c) {
    clear_results(c);
    const WatchPlans watch([](IterPlan& p) {
      if (p.numel == 0) return;
      live_bug.reached.fetch_add(1, std::memory_order_relaxed);
      W(p);
    });
    right_row().kernel.cpu(c);
  };
  row.kernel.lines = {};  // they need no plan
}

}  // namespace

std::vector<Mutant> plan_mutants() {
  return {
      {"plan_inner_one_short", "kernel", "The innermost loop is one short.", runs_two, put<inner_one_short>},
      {"plan_vector_tail_dropped", "kernel", "The innermost loop ends at a multiple of four.", runs_tail,
       put<vector_tail_dropped>},
      {"plan_outer_dim_dropped", "kernel", "The outermost loop runs once.", plans_two_dims,
       put<outer_dim_dropped>},
      {"plan_begins_late", "kernel", "The innermost loop begins at its second element.", runs_two,
       put<begins_late>},
      {"plan_taken_for_packed", "kernel", "The innermost stride of an operand is that of dense elements.",
       runs_two, put<taken_for_packed>, where<&PlanTraits::gaps>},
      {"plan_inner_stride_zero", "kernel", "The innermost stride of an operand is 0.", runs_two,
       put<inner_stride_zero>, where<&PlanTraits::moves>},
      {"plan_runs_backwards", "kernel", "An operand's innermost run is read or written backwards.", runs_two,
       put<runs_backwards>, where<&PlanTraits::moves>},
      {"plan_outer_stride_of_inner", "kernel", "An operand's next dim has the stride of the innermost.",
       plans_two_dims, put<outer_stride_of_inner>, where<&PlanTraits::outer>},
  };
}

}  // namespace lamella::verify
