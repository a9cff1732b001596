// Cutting plans: see parts.h.
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {

namespace {
int64_t unit_of(int dim, Units units) { return dim == 0 ? units.dim0 : dim == 1 ? units.dim1 : 1; }

/// The outermost one of some length, else that of the most units. Sizes of 1 are gone from plans.
int dim_to_cut(const IterPlan& plan, Units units) {
  int best = 0;
  int64_t most = 0;
  for (int d = plan.rank - 1; d >= 0; --d) {
    const int64_t size = plan.sizes[d], unit = unit_of(d, units);
    if (size >= std::max(thresholds().shared_out, 2 * unit)) return d;
    if ((size + unit - 1) / unit > most) most = (size + unit - 1) / unit, best = d;
  }
  return best;
}
}  // namespace

Cut cut_of(const IterPlan& plan, int64_t each, Units units) {
  const int dim = dim_to_cut(plan, units);
  const int64_t size = plan.size(dim), inside = plan.numel / std::max<int64_t>(size, 1);
  const int64_t unit = unit_of(dim, units);
  const int64_t wanted = std::max<int64_t>(cost::tile_of(each) / std::max<int64_t>(inside, 1), 1);
  const int64_t step = (wanted + unit - 1) / unit * unit;
  return {dim, step, (size + step - 1) / step};
}

void set_part(IterPlan& part, const IterPlan& plan, const Cut& cut, int64_t p) {
  const int64_t size = plan.sizes[cut.dim], from = p * cut.step;
  part.sizes[cut.dim] = std::min(cut.step, size - from);
  part.numel = plan.numel / size * part.sizes[cut.dim];
  for (int k = 0; k < plan.operands; ++k) part.data[k] = plan.data[k] + from * plan.strides[k][cut.dim];
}

void detail::each_part(const IterPlan& plan, int64_t each, Units units, PartFn run, void* body) {
  const Cut cut = cut_of(plan, each, units);
  if (cut.parts <= 1) return run(body, plan);
  parallel_for(cut.parts, [&](int64_t first, int64_t last) {
    IterPlan part = plan;
    for (int64_t p = first; p < last; ++p) {
      set_part(part, plan, cut, p);
      run(body, part);
    }
  });
}

}  // namespace lamella::kernels
