// The oracle's second derivatives against formulas, and what it says of its own error.
#include <gtest/gtest.h>
#include <quadmath.h>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/verify/oracle.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct Known {
  const char* op;
  f128 (*second)(f128 x);
};

f128 tanh_second(f128 x) { return -2 * tanhq(x) * (1 - tanhq(x) * tanhq(x)); }

/// d2 op(x) / dx2 as the oracle finds it, and how far off it says that may be.
std::pair<f128, f128> second_of(const char* name, double x) {
  Case c(*OpTable::current().find(name), {}, {.layouts = false});
  c.args[0] = full({}, x, DType::F64);
  Oracle oracle(c, c.inexact());
  return {oracle.hessian({1})(0, 0), oracle.hessian_noise({1})(0, 0)};
}

/// Far below what is rounded away in f64, 1e-16, and within what the oracle says itself.
TEST(Oracle, SecondDerivativesAreRight) {
  const Known known[] = {{"exp", [](f128 x) { return expq(x); }},
                         {"log", [](f128 x) { return -1 / (x * x); }},
                         {"sin", [](f128 x) { return -sinq(x); }},
                         {"tanh", tanh_second}};
  for (const Known& k : known)
    for (double x = 0.05; x < 5; x += 0.11) {
      const auto [got, noise] = second_of(k.op, x);
      const f128 want = k.second(x), off = fabsq(got - want);
      EXPECT_LE(double(off / fabsq(want)), 1e-17) << k.op << " " << x;
      EXPECT_LE(double(off), double(noise)) << k.op << " " << x;
      EXPECT_LE(double(noise / fmaxq(1, fabsq(want))), 1e-16) << k.op << " " << x;
    }
}
}  // namespace
