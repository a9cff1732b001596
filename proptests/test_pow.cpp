// Powers: complex ones at wide exponents, and derivatives where the base is 0.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

double wave(uint64_t i) { return std::sin(double(i) * 1.618033988749895 + 0.3); }

/// |got - want| in units of 2^-53 |want|, less what the argument y log x of the exponential explains: its
/// size times the roundoff of the 80 bits it is computed in.
double excess(c128 a, c128 b, c128 got, const Tensor& want) {
  const double re = real(to_device(want, Device::CPU)).item<double>(),
               im = imag(to_device(want, Device::CPU)).item<double>();
  const double size = std::hypot(re, im), off = std::hypot(got.real() - re, got.imag() - im);
  return off / size * 0x1p53 - std::abs(b * std::log(a)) * 0x1p-9;
}

TEST(Pow, ComplexExponentsOfAllSizesAreRight) {
  int compared = 0;
  double worst = 0;
  for (int e = -60; e <= 40; ++e)
    for (uint64_t i = 0; i < 40; ++i) {
      const c128 a = std::ldexp(1.0, int(i) % 7 - 3) * c128(wave(8 * i), wave(8 * i + 1));
      c128 b = std::ldexp(1.0, e) * c128(wave(8 * i + 2), wave(8 * i + 3));
      // Huge exponents overflow unless y log x is nearly imaginary: the base then lies near the unit circle.
      c128 base = a;
      if (e > 6) {
        base = std::polar(1 + std::ldexp(wave(8 * i + 4), -e), 3 * wave(8 * i + 5));
        b = b.real();
      }
      const Tensor x = full({1}, base, DType::C128), y = full({1}, b, DType::C128);
      const c128 got = pow(x, y).item<c128>();
      const auto widened = [](const Tensor& t) { return to(to_device(t, Device::Reference), DType::C256); };
      const Tensor want = to(pow(widened(x), widened(y)), DType::C128);
      if (!std::isfinite(got.real()) || std::abs(got) < 1e-290) continue;
      ++compared;
      worst = std::max(worst, excess(base, b, got, want));
    }
  EXPECT_GT(compared, 3000);
  EXPECT_LE(worst, 3);
}

/// At a base of 0 derivatives exist for b > 1; in both orders they are the same.
TEST(Pow, MixedDerivativesAtABaseOfZero) {
  for (const double exponent : {1.5, 2.0, 3.0}) {
    const Tensor a = zeros({}, DType::F64), b = full({}, exponent, DType::F64);
    const auto f = [](const Tensors& x) { return pow(x[0], x[1]); };
    const auto slope_of = [&](int first, int second) {
      const Function inner = grad(f, {first});
      return grad([&](const Tensors& x) { return inner(x)[0]; }, {second})({a, b})[0].item<double>();
    };
    EXPECT_EQ(slope_of(0, 1), 0) << exponent;
    EXPECT_EQ(slope_of(1, 0), 0) << exponent;
    EXPECT_EQ(slope_of(1, 1), 0) << exponent;
    EXPECT_EQ(slope_of(0, 0), exponent == 2 ? 2 : exponent > 2 ? 0 : INFINITY) << exponent;
  }
}

/// The power is taken of all bits of the scalar, and so are its derivatives.
TEST(Pow, DerivativesOfHalvesKeepAWiderScalar) {
  const auto derivative = [](const Tensor& a, const Tensor& b, int of) {
    return grad([](const Tensors& x) { return sum(pow(x[0], x[1])); }, {of})({a, b})[0].to_vector()[0];
  };
  const Tensor a = tensor_of({1}, {-3}, DType::BF16), b = tensor_of({}, {-39.125}, DType::F64);
  EXPECT_TRUE(std::isnan(pow(a, b).to_vector()[0]));
  EXPECT_TRUE(std::isnan(derivative(a, b, 0)));  // bf16 holds no -39.125, but the whole number -39
  const Tensor two = tensor_of({1}, {2}, DType::BF16), odd = tensor_of({}, {16.9375}, DType::F64);
  const double slope = 16.9375 * std::pow(2, 15.9375);
  EXPECT_NEAR(derivative(two, odd, 0), slope, slope / 128);
  const Tensor near_one = tensor_of({}, {1.0009765625}, DType::F64);
  const double log_of_it = std::log(1.0009765625) * std::pow(1.0009765625, 2);
  EXPECT_NEAR(derivative(near_one, two, 1), log_of_it, log_of_it / 128);
}
}  // namespace
