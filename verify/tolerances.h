// How many units of roundoff times the condition of the result each operator may be off. The one place where
// tolerances live.
#pragma once

#include <string_view>

namespace lamella::verify {

struct Tolerance {
  std::string_view op;
  double value = 8, derivative = 16, second = 64;  ///< units of roundoff, times the condition
  double value_floor = 0;                          ///< values: plus this many units, whatever the condition
  double derivative_floor = 0;  ///< derivatives: plus this many times the sum of magnitudes of the direction,
                                ///< to be multiplied with `derivative`
  std::string_view reason = "";
};

inline constexpr Tolerance kDefaultTolerance{.op = ""};

/// Operators that need more than the default, each with its reason.
inline constexpr Tolerance kTolerances[] = {
    {.op = "tanh",
     .derivative_floor = 2,
     .reason = "1 - y*y cancels where y is close to 1: right to u, not relative to the tiny derivative"},
    {.op = "softmax", .derivative_floor = 1, .reason = "u - sum(u*y) cancels where one y is close to 1"},
    {.op = "log_softmax",
     .value_floor = 2,
     .derivative_floor = 1,
     .reason = "the logarithm of a sum close to 1 is right to u; so is u - exp(y)*sum(u)"},
    {.op = "layer_norm",
     .derivative_floor = 4,
     .reason = "the parts of the cotangent along 1 and along y are taken out by subtraction"},
    {.op = "native_layer_norm", .derivative_floor = 4, .reason = "as layer_norm"},
    {.op = "sign",
     .derivative_floor = 4,
     .reason = "complex: the radial part of a direction is taken out by subtraction"},
    {.op = "abs", .derivative_floor = 4, .reason = "complex, second order: as sign"},
};

inline const Tolerance& tolerance(std::string_view op) {
  for (const Tolerance& t : kTolerances)
    if (t.op == op) return t;
  return kDefaultTolerance;
}

}  // namespace lamella::verify
