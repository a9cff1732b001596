// Derivative rules as formulas: runs a rule on a sample and writes down what it called on what.
#pragma once

#include <string>

#include "lamella/dispatch/op.h"

namespace lamella::expect {

/// "jvp a: mul(t, b)\n ...\nvjp a: mul(ct, conj(b))\n": each input's formula in both directions, t its
/// tangent and ct the result's cotangent; or why there is none. Long values get a line of their own, once.
std::string formulas(const Op& op);

/// What a composite calls, likewise: "composed: ...\n".
std::string composed(const Op& op);

/// What they are shown on: of rank 2 and of complex numbers where the operator has them.
Values shown_sample(const Op& op);

}  // namespace lamella::expect
