// Wrong loop plans: the right kernel, whose loops are one short, take a wrong step or begin in a wrong place.
#include <algorithm>
#include <map>

#include "lamella/core/plan_watch.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/mutant_level.h"
#include "lamella/verify/runner.h"

namespace lamella::verify {

namespace {

bool has_kernel(const Op& op) {
  return op.kernel.cpu && !op.composite && !op.has(kRandom) && takes_tensors(op);
}

/// What the plans of an operator's kernel were like in drawn cases.
struct PlanTraits {
  int operands = 0, rank = 0;
  bool gaps = false;  ///< an inner run had some
}* noting = nullptr;

void note(IterPlan& p) {
  noting->operands = std::max(noting->operands, p.operands);
  noting->rank = std::max(noting->rank, p.rank);
  for (int k = 0; k < p.operands; ++k) noting->gaps |= p.rank > 0 && p.strides[k][0] > p.itemsize[k];
}

const PlanTraits& plans_of(const Op& op) {
  static std::map<std::string, PlanTraits> known;
  const auto [at, fresh] = known.try_emplace(op.name);
  if (!fresh) return at->second;
  noting = &at->second;
  const WatchPlans watch(note);
  for (uint64_t i = 0; i < 100; ++i)
    (void)status_of([&] {
      (void)probe(Probe::Forward, op, choices_of(i, laws().front(), op, i), {.dtypes = mask(DType::F64)});
    });
  return at->second;
}

int operands(const Op& op) { return plans_of(op).operands; }
bool plans(const Op& op) { return has_kernel(op) && plans_of(op).operands > 0; }
bool plans_two_dims(const Op& op) { return plans(op) && plans_of(op).rank >= 2; }
bool plans_gaps(const Op& op) { return plans(op) && plans_of(op).gaps; }

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

/// Elements a shortened loop leaves out are zero, whatever lay there before; a result written in place keeps
/// what it had.
void clear_results(const KernelCall& c) {
  for (const View& out : c.outs) {
    const bool read = std::ranges::any_of(c.ins, [&](const View& in) { return in.data == out.data; });
    if (read || right_row().shape == ShapeClass::Index) continue;
    Dims at(out.rank);
    const size_t bytes = size_t(itemsize(out.dtype));
    for (int64_t i = 0, n = out.numel(); i < n; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < out.rank; ++d) offset += at[d] * out.strides[d];
      std::fill_n(out.as<char>() + size_t(offset) * bytes, bytes, char(0));
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
      {"plan_inner_one_short", "kernel", "The innermost loop is one short.", plans, put<inner_one_short>},
      {"plan_vector_tail_dropped", "kernel", "The innermost loop ends at a multiple of four.", plans,
       put<vector_tail_dropped>},
      {"plan_outer_dim_dropped", "kernel", "The outermost loop runs once.", plans_two_dims,
       put<outer_dim_dropped>},
      {"plan_begins_late", "kernel", "The innermost loop begins at its second element.", plans,
       put<begins_late>},
      {"plan_taken_for_packed", "kernel", "The innermost stride of an operand is that of dense elements.",
       plans_gaps, put<taken_for_packed>, operands},
      {"plan_inner_stride_zero", "kernel", "The innermost stride of an operand is 0.", plans,
       put<inner_stride_zero>, operands},
      {"plan_runs_backwards", "kernel", "An operand's innermost run is read or written backwards.", plans,
       put<runs_backwards>, operands},
      {"plan_outer_stride_of_inner", "kernel", "An operand's next dim has the stride of the innermost.",
       plans_two_dims, put<outer_stride_of_inner>, operands},
  };
}

}  // namespace lamella::verify
