// Derivatives that are ordinary numbers where a rule may overflow, vanish or lose its digits on the way,
// against formulas.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

double of(const Tensor& x, int64_t at = 0) {
  return to(reshape(x, {x.numel()}), DType::F64)[at].item<double>();
}
Tensor number(double value, DType dtype) { return full({1}, value, dtype); }
double eps(DType d) {
  return d == DType::F16 ? 0x1p-10 : d == DType::BF16 ? 0x1p-7 : d == DType::F32 ? 0x1p-23 : 0x1p-52;
}

/// The pullback of ones, of the first input.
Tensor slope(const Function& f, const Tensors& xs) {
  VjpResult r = vjp(f, xs);
  return r.pullback({ones_like(r.values[0])})[0];
}
Tensor second(const Function& f, const Tensors& xs, size_t in = 0) {
  const Function first = [&](const Tensors& x) { return Tensors{slope(f, x)}; };
  VjpResult r = vjp(first, xs);
  return r.pullback({ones_like(r.values[0])})[in];
}

TEST(Slopes, OfHypotWhereItOverflows) {
  const Function f = [](const Tensors& x) { return Tensors{hypot(x[0], x[1])}; };
  for (const auto& [dtype, large] : {std::pair{DType::F16, 6e4}, {DType::F32, 3e38}, {DType::F64, 1.5e308}}) {
    const Tensor a = number(large, dtype);
    EXPECT_NEAR(of(slope(f, {a, a})), std::sqrt(0.5), 2 * eps(dtype));
    EXPECT_NEAR(of(jvp(f, {a, a}, {ones_like(a), Tensor()}).tangents[0]), std::sqrt(0.5), 2 * eps(dtype));
  }
  EXPECT_EQ(of(slope(f, {number(0, DType::F64), number(0, DType::F64)})), 0);
}

TEST(Slopes, SecondOnesOfHypotDoNotCancel) {
  const Function f = [](const Tensors& x) { return Tensors{hypot(x[0], x[1])}; };
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64})
    for (const double small : {0.5, 0.0625, 0.03125}) {
      const double want = small * small / std::pow(std::hypot(4, small), 3);
      EXPECT_NEAR(of(second(f, {number(4, dtype), number(small, dtype)})), want,
                  8 * eps(dtype) * want + (dtype == DType::F16 ? 0x1p-24 : 0));
    }
}

TEST(Slopes, SecondOnesOfAtanFarOut) {
  const Function f = [](const Tensors& x) { return Tensors{atan(x[0])}; };
  for (const auto& [dtype, x] : {std::pair{DType::F32, 0x1p36},
                                 {DType::F32, 0x1p40},
                                 {DType::BF16, 0x1p38},
                                 {DType::F64, 0x1p300},
                                 {DType::F64, 0x1p-3},
                                 {DType::F32, -0x1p40}}) {
    const double want = -2 * x / (1 + x * x) / (1 + x * x);
    EXPECT_NEAR(of(second(f, {number(x, dtype)})), want, 8 * eps(dtype) * std::fabs(want)) << x;
  }
  EXPECT_EQ(of(second(f, {number(INFINITY, DType::F64)})), 0);
}

TEST(Slopes, SecondOnesOfAtan2NearTheOrigin) {
  const Function f = [](const Tensors& v) { return Tensors{atan2(v[0], v[1])}; };
  const double x = 0x1p-73, y = 0x1p-120;
  for (const DType dtype : {DType::BF16, DType::F32}) {
    EXPECT_EQ(of(second(f, {number(0, dtype), number(x, dtype)})), 0);
    const double want = -2 * y / x / x / x;  // -2 x y / r^4
    EXPECT_NEAR(of(second(f, {number(y, dtype), number(x, dtype)})), want, -8 * eps(dtype) * want);
  }
}

TEST(Slopes, OfHalvesOfExponentials) {
  const Function gauss = [](const Tensors& x) { return Tensors{erf(x[0])}; };
  const Function both = [](const Tensors& x) { return Tensors{logaddexp(x[0], x[1])}; };
  for (const double x : {1.3, 5.7, 7.3, 8.8}) {
    const double rounded = of(number(x, DType::BF16)),
                 want = 2 / std::sqrt(M_PI) * std::exp(-rounded * rounded);
    EXPECT_NEAR(of(slope(gauss, {number(x, DType::BF16)})), want, 2 * eps(DType::BF16) * want) << x;
    const double apart = of(number(10 * x, DType::BF16)) + of(number(0.3, DType::BF16));
    const double part = 1 / (1 + std::exp(apart));
    EXPECT_NEAR(of(slope(both, {number(-10 * x, DType::BF16), number(0.3, DType::BF16)})), part,
                2 * eps(DType::BF16) * part)
        << x;
  }
  EXPECT_EQ(of(second(gauss, {number(INFINITY, DType::F64)})), 0);
}

TEST(Slopes, OfPowersOfHalvesInTheExponent) {
  const Function f = [](const Tensors& x) { return Tensors{pow(x[1], x[0])}; };
  const double a = of(number(1.001, DType::F16)), b = 12000;
  EXPECT_NEAR(of(slope(f, {number(b, DType::F16), number(a, DType::F16)})), std::pow(a, b) * std::log(a),
              std::pow(a, b) * std::log(a) * 2 * eps(DType::F16));
}

TEST(Slopes, OfThousandsOfTies) {
  const int64_t n = 70000;
  const Tensor x = zeros({n}, DType::F16), t = full({n}, 1e-3, DType::F16);
  const Function greatest = [](const Tensors& v) { return Tensors{amax(v[0])}; };
  const Function least = [](const Tensors& v) { return Tensors{amin(v[0])}; };
  for (const Function& f : {greatest, least})
    EXPECT_NEAR(of(jvp(f, {x}, {t}).tangents[0]), 1e-3, 1e-3 * eps(DType::F16));
}

/// One element has three quarters, the others the rest.
TEST(Slopes, OfSoftmaxOfThousands) {
  const int64_t n = 3000;
  const Tensor x = zeros({n}, DType::F16), u = zeros({n}, DType::F16);
  fill_(select(x, 0, 0), 9);
  fill_(select(u, 0, 0), 1e-3);
  const Function f = [](const Tensors& v) { return Tensors{softmax(v[0], 0)}; };
  const Tensor y = to(f({x})[0], DType::F64);
  const double want = of(u) * of(y) * (1 - of(y));
  EXPECT_NEAR(of(vjp(f, {x}).pullback({u})[0]), want, 0.02 * want);
  const Tensor rest = full({n}, 1e-3, DType::F16);  // alike for all: none changes
  EXPECT_LT(std::fabs(of(vjp(f, {x}).pullback({rest})[0])), 4e-3 * of(rest));
}

}  // namespace
