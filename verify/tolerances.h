// How many units of roundoff times the condition of the result each operator may be off. The one place where tolerances live.
#pragma once

#include <string_view>

namespace lamella::verify {

struct Tolerance {
  std::string_view op;
  double value = 8, derivative = 16, second = 64;
  double absolute = 0;  ///< derivatives: plus this times u times the sum of magnitudes of the direction
  std::string_view reason = "";
};

inline constexpr Tolerance kDefaultTolerance{.op = ""};

/// Operators that need more than the default, each with its reason.
inline constexpr Tolerance kTolerances[] = {
    {.op = "tanh", .absolute = 2, .reason = "1 - y*y cancels for large x: exact up to u, not relative to the tiny result"},
};

inline const Tolerance& tolerance(std::string_view op) {
  for (const Tolerance& t : kTolerances)
    if (t.op == op) return t;
  return kDefaultTolerance;
}

}  // namespace lamella::verify
