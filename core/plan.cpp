// Building and printing iteration plans.
#include "lamella/core/plan.h"

#include <utility>

#include "lamella/core/check.h"
#include "lamella/core/plan_watch.h"

namespace lamella {
namespace {

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Whether dim b belongs inside dim a. A stride of 0 says nothing about order, so the next operand is asked.
bool runs_inside(const IterPlan& p, int b, int a) {
  for (int k = 0; k < p.operands; ++k) {
    const int64_t sa = magnitude(p.strides[k][a]), sb = magnitude(p.strides[k][b]);
    if (sa != 0 && sb != 0 && sa != sb) return sb < sa;
  }
  return false;
}

void swap_dims(IterPlan& p, int a, int b) {
  std::swap(p.sizes[a], p.sizes[b]);
  for (int k = 0; k < p.operands; ++k) std::swap(p.strides[k][a], p.strides[k][b]);
}

// Insertion sort: "says nothing" is not transitive, which std::sort would not survive; ranks are small.
void sort_dims(IterPlan& p) {
  for (int d = 1; d < p.rank; ++d) {
    for (int e = d; e > 0 && runs_inside(p, e, e - 1); --e) swap_dims(p, e, e - 1);
  }
}

bool continues(const IterPlan& p, int inner, int outer) {
  for (int k = 0; k < p.operands; ++k) {
    if (p.strides[k][outer] != p.strides[k][inner] * p.sizes[inner]) return false;
  }
  return true;
}

void coalesce(IterPlan& p) {
  int kept = 0;
  for (int d = 1; d < p.rank; ++d) {
    if (continues(p, kept, d)) {
      p.sizes[kept] *= p.sizes[d];
      continue;
    }
    ++kept;
    if (kept != d) swap_dims(p, kept, d);
  }
  if (p.rank > 0) p.rank = kept + 1;
}

/// Made where the caller wants it: a plan is three kilobytes, so this has one variable to return and nothing
/// else.
IterPlan merged_plan(std::span<const PlanOperand> operands, int rank, const int64_t* sizes) {
  IterPlan p;
  p.given_rank = rank;
  p.operands = int(operands.size());
  for (int k = 0; k < p.operands; ++k) {
    p.data[k] = operands[k].data;
    p.itemsize[k] = operands[k].itemsize;
    p.strides[k][0] = p.itemsize[k];
  }
  p.sizes[0] = 1;
  for (int d = rank - 1; d >= 0; --d) {
    p.numel *= sizes[d];
    if (sizes[d] == 1) continue;
    p.sizes[p.rank] = sizes[d];
    for (int k = 0; k < p.operands; ++k) p.strides[k][p.rank] = operands[k].strides[d] * p.itemsize[k];
    ++p.rank;
  }
  if (p.numel == 0) return p;
  sort_dims(p);
  coalesce(p);
  return p;
}

thread_local constinit int usual_rank = IterPlan::kMaxDims;  // -1 while plans are watched
thread_local constinit PlanWatcher plan_watcher = nullptr;

[[noreturn, gnu::cold, gnu::noinline]] void refuse_operands(size_t n) {
  fail(ErrorCode::Usage, "a loop through {} tensors, expected at most {}", n, kMaxPlanOperands);
}

IterPlan watched_plan(std::span<const PlanOperand> operands, int rank, const int64_t* sizes) {
  LAMELLA_CHECK(rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}", rank,
                IterPlan::kMaxDims);
  const PlanWatcher watcher = plan_watcher;
  const WatchPlans off(nullptr);
  IterPlan p = make_plan(operands, rank, sizes);
  watcher(p);
  return p;
}

}  // namespace

WatchPlans::WatchPlans(PlanWatcher watcher) : saved_(plan_watcher) {
  plan_watcher = watcher;
  usual_rank = watcher ? -1 : IterPlan::kMaxDims;
}
WatchPlans::~WatchPlans() {
  plan_watcher = saved_;
  usual_rank = saved_ ? -1 : IterPlan::kMaxDims;
}

IterPlan make_plan(std::span<const PlanOperand> operands, int rank, const int64_t* sizes) {
  if (rank > usual_rank) [[unlikely]]
    return watched_plan(operands, rank, sizes);
  if (operands.size() > size_t(kMaxPlanOperands)) [[unlikely]]
    refuse_operands(operands.size());
  return merged_plan(operands, rank, sizes);
}

IterPlan make_plan(std::span<const View> outs, std::span<const View> ins) {
  PlanOperand operands[IterPlan::kMaxOperands];
  int count = 0;
  if (outs.size() + ins.size() > size_t(kMaxPlanOperands)) [[unlikely]]
    refuse_operands(outs.size() + ins.size());
  for (const View& v : outs) operands[count++] = {v.as<char>(), v.strides, itemsize(v.dtype)};
  for (const View& v : ins) operands[count++] = {v.as<char>(), v.strides, itemsize(v.dtype)};
  const View& shape = outs.empty() ? ins[0] : outs[0];
  return make_plan({operands, size_t(count)}, shape.rank, shape.sizes);
}

std::string str(const IterPlan& plan) {
  std::ostringstream text;
  text << "plan " << plan.given_rank << " dims -> " << plan.rank << ": sizes (";
  for (int d = 0; d < plan.rank; ++d) text << (d ? ", " : "") << plan.sizes[d];
  text << ")";
  for (int k = 0; k < plan.operands; ++k) {
    text << " |";
    for (int d = 0; d < plan.rank; ++d) text << (d ? ", " : " ") << plan.strides[k][d];
  }
  return std::move(text).str();
}

}  // namespace lamella
