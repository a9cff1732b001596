// A derivative formula's names as positions of one operator: what goes into a row.
#pragma once

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Error schema when `formula` names something that is neither an argument nor a result of `op`.
BoundFormula bind(const Op& op, const Formula& formula);
/// All formulas of one direction.
std::vector<BoundFormula> bind(const Op& op, const Rules& rules);

}  // namespace lamella
LAMELLA_API_END
