// Derivative rules as formulas: runs a rule on a sample and writes down what it called on what.
#pragma once

#include <string>
#include <vector>

#include "lamella/dispatch/op.h"

namespace lamella::expect {

/// "mul\n  jvp a: mul(t, b)\n ...\n  vjp a: mul(ct, conj(b))\n": each input's formula in both directions, t
/// its tangent and ct the result's cotangent, on a sample of rank 2 and in complex numbers where the operator
/// has them; or why there is none. Long values get a line of their own, once; operators with the same
/// formulas stand together.
std::string formulas(const std::vector<const Op*>& ops);

}  // namespace lamella::expect
