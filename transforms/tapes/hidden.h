// Elements that an operator leaves out, on their way back through a tape.
#pragma once

#include <functional>

#include "lamella/transforms/machine/tape.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [hidden elements] `where`, `clamp`, `maximum` and `minimum` leave out elements of their arguments,
/// which are often those where another operator below is singular: where(x > 0, sqrt(x), 0). Their cotangent
/// is 0 there, the slope below infinite, and 0 * inf is NaN, although the function is smooth. So these rules
/// say which elements they hide, and pointwise operators below hide them too: what they give back is 0 there
/// at any slope, and so are its derivatives, as the zeros come from `where` itself. Zeros that merely happen
/// are multiplied as ever: their derivatives need not be 0. The mark passes through pointwise operators,
/// where an element of a broadcast operand is hidden if all that it takes part in is, and through views,
/// whose transposes carry it; what is neither gets zeros and knows nothing of it. All paths to a node have to
/// agree. `linear` operators have finite slopes and only pass it on.

/// What a node gives along one edge, and the elements of it that are left out.
struct Given {
  Tensor cotangent, hidden;
};

/// Marks of nodes that wait for their turn, by place.
class HiddenElements {
 public:
  /// Whether any place had marks.
  bool any() const { return !marks_.empty(); }
  void forget(uint32_t at) {
    if (at < marks_.size()) marks_[at] = {};
  }
  /// What a cotangent for the one output at a place leaves out: all that have come leave it out in common.
  void arrive(uint32_t at, bool first, const Tensor& hidden);
  /// What node `n` at a place gives along edge `e` by the formula that gave `ct`, without the elements hidden
  /// above, and what it hides itself. `fit` brings a cotangent to the shape and dtype of the edge's input.
  Given through(const Node& n, uint32_t at, const Edge& e, const BoundFormula& formula, const RuleArgs& args,
                Tensor ct, const std::function<Tensor(const Tensor&)>& fit) const;

 private:
  Tensors marks_;  ///< shorter, or empty, where nothing is left out
};

}  // namespace lamella
LAMELLA_API_END
