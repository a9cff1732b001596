// Hidden elements: marks that meet, and pass through operators.
#include "lamella/transforms/tapes/hidden.h"

#include <algorithm>

#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"

namespace lamella {

void HiddenElements::arrive(uint32_t at, bool first, const Tensor& hidden) {
  if (marks_.size() <= at) marks_.resize(at + 1);
  Tensor& here = marks_[at];
  if (first) here = hidden;
  else if (here.defined()) here = hidden.defined() ? logical_and(here, hidden) : Tensor();
}

namespace {
bool is_pointwise(const Node& n) { return n.op && n.op->shape == ShapeClass::Broadcast; }
bool carries_marks(const Node& n) { return is_pointwise(n) || (n.op && n.op->is_view()); }

/// Marks of elements by what moves cotangents of these sizes: hidden where none that is not arrives.
template <class F> Tensor moved(const Tensor& marks, Ints sizes, F&& move) {
  const Tensor hidden = std::ranges::equal(marks.sizes(), sizes) ? marks : expand(marks, sizes);
  return eq(move(to(logical_not(hidden), DType::F32)), 0.0);
}
}  // namespace

Given HiddenElements::through(const Node& n, uint32_t at, const Edge& e, const BoundFormula& formula,
                              const RuleArgs& args, Tensor ct,
                              const std::function<Tensor(const Tensor&)>& fit) const {
  const Tensor above = at < marks_.size() ? marks_[at] : Tensor();
  Tensor hidden;
  if (formula.hidden && carries_marks(*e.node)) hidden = formula.hidden(args);
  if (above.defined() && is_pointwise(n)) {
    if (!n.op->has(kLinear)) ct = where(above, zeros_like(ct), ct);
    hidden = hidden.defined() ? logical_or(above, hidden) : above;
  } else if (above.defined() && n.op->is_view() && carries_marks(*e.node)) {
    hidden = moved(above, args.directions[0].sizes(), [&](const Tensor& shown) {
      return formula.one({{&shown, 1}, args.saved});
    });
  }
  if (e.fix) {
    const Tensor fitted = fit(ct);
    if (hidden.defined() && !std::ranges::equal(ct.sizes(), fitted.sizes()))
      hidden =
          moved(hidden, ct.sizes(), [&](const Tensor& shown) { return sum_to_size(shown, fitted.sizes()); });
    ct = fitted;
  }
  if (!e.node->op) hidden = {};  // nobody asks a leaf
  return {std::move(ct), std::move(hidden)};
}

}  // namespace lamella
