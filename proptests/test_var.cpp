// var: known answers, degrees of freedom, and rows in one pass, which have the composite's bits.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "lamella/core/parallel.h"
#include "lamella/core/thresholds.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/alternatives.h"
#include "lamella/verify/case/compare.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;

Tensor normal(const Dims& sizes, DType dtype = DType::F32) {
  return to(randn(sizes, scalar_tensor(5, DType::U64)), dtype);
}

TEST(Var, DividesByDegreesOfFreedom) {
  const Tensor x = f64({2, 4}, {1, 2, 3, 6, 0, 0, 4, 4});
  EXPECT_EQ(text(var(x, {1}, 0).to_vector()), "[3.5, 4]");
  EXPECT_EQ(text(var(x, {1}, 2).to_vector()), "[7, 8]");
  EXPECT_EQ(text(var(x, {1}, -4).to_vector()), "[1.75, 2]");
  EXPECT_EQ(text(var(x, {-2}, 0.5).to_vector()), text({0.5 / 1.5, 2 / 1.5, 0.5 / 1.5, 2 / 1.5}));
  EXPECT_EQ(verify::differs(var(x), var(x, IntArg{0, 1}, 1)), "");
  EXPECT_EQ(text(var(x, IntArg({}), 0).to_vector()), "[4]");
  EXPECT_EQ(call("var", {x, Dims{1}, Value()})[0].to_vector(), var(x, {1}).to_vector());
  EXPECT_TRUE(std::ranges::equal(var(x, {1}, 0, true).sizes(), Dims{2, 1}));
}

TEST(Var, IsRealAndKeepsThePrecision) {
  const Tensor parts = f64({3, 1, 0, 0}), z = complex(parts, flip(parts, {0}));
  const Tensor y = var(z, std::nullopt, 0);
  EXPECT_EQ(y.dtype(), DType::F64);
  EXPECT_EQ(y.item<double>(), 3);
  EXPECT_EQ(var(to(z, DType::C64)).dtype(), DType::F32);
  const Tensor half = to(f64({40, 41, 44, 102}), DType::F16);  // of squares that no f16 holds
  EXPECT_EQ(var(half).dtype(), DType::F16);
  EXPECT_EQ(verify::differs(var(half), to(var(to(half, DType::F32)), DType::F16)), "");
}

/// Some roundoffs apart from each other; differences from `far` are exact in f64.
Tensor near(double far, double unit, const Dims& sizes, DType dtype) {
  return to(round(normal(sizes, DType::F64) * 4.0) * unit + far, dtype);
}

/// The square of what the mean is off by was part of the result: 70 % of it for f32 between 10^6 and a half
/// more.
TEST(Var, KeepsItsDigitsFarFromZero) {
  struct Far {
    double far, unit, roundoff;
    DType dtype;
  };
  for (const auto [far, unit, roundoff, dtype] : {Far{0x1p23, 1, 0x1p-20, DType::F32},
                                                  {1e6, 0.0625, 0x1p-20, DType::F32},
                                                  {0x1p52, 1, 0x1p-48, DType::F64},
                                                  {1e15, 0.125, 0x1p-48, DType::F64}})
    for (const Dims& sizes : {Dims{3, 1003}, {3, 7}, {2, 60'000}}) {
      const Tensor x = near(far, unit, sizes, dtype), apart = to(x, DType::F64) - far;
      const auto expect = [&](const Tensor& y, const Tensor& want) {
        for (const double off : abs(to(y, DType::F64) / want - 1.0).to_vector())
          EXPECT_LE(off, roundoff) << far << " " << str(sizes);
      };
      const auto rows = [](const Tensor& t) { return var(t, {-1}); };
      expect(rows(x), rows(apart));
      expect(vmap(rows)(x), rows(apart));
      expect(var(complex(x, x), {1}), 2.0 * rows(apart));
      expect(lamella::std(x, {1}), lamella::std(apart, {1}));
      expect(var(transpose(x, 0, 1), {0}), rows(apart));
    }
}

/// Squares of f32 and of bf16 vanish below 10^-22 and overflow above 10^19.
TEST(Var, RootsOfNarrowDtypesAreThoseOfWideOnes) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::C64})
    for (const int exponent : {-110, -83, 62, 100}) {
      const double scale = std::ldexp(1, exponent);
      const Tensor x = to(normal({3, 40}), dtype), scaled = x * scale;
      const auto rows = [](const Tensor& t) { return lamella::std(t, {-1}); };
      EXPECT_EQ(verify::differs(rows(scaled), rows(x) * scale), "") << dtype << " " << exponent;
      const auto total = [&](const Tensor& t) { return sum(rows(t)); };
      if (!is_complex(dtype)) EXPECT_EQ(verify::differs(grad(total)(scaled), grad(total)(x)), "") << dtype;
    }
}

/// A mean that is one roundoff off is the same number apart from each of them.
TEST(Var, OfEqualNumbersIsNone) {
  for (const DType dtype : {DType::F32, DType::F64})
    for (const int64_t n : {3, 10, 49, 1000}) {
      const Tensor x = full({n}, 0.1, dtype);
      EXPECT_EQ(var(x).item<double>(), 0) << n;
      const auto f = [](const Tensor& t) { return lamella::std(t); };
      EXPECT_EQ(verify::differs(grad(f)(x), zeros({n}, dtype)), "") << n;
    }
}

TEST(Var, IsNaNWithoutDegreesOfFreedom) {
  const auto all_nan = [](const Tensor& y) {
    for (const double v : y.to_vector()) EXPECT_TRUE(std::isnan(v)) << str(y);
    EXPECT_GT(y.numel(), 0);
  };
  for (const Device device : {Device::CPU, Device::Reference}) {
    const auto on = [device](const Tensor& t) { return to_device(t, device); };
    const auto back = [](const Tensor& t) { return to_device(t, Device::CPU); };
    const Tensor pair = on(f64({2, 2}, {1, 2, 3, 3})), long_row = on(normal({2, 40}));
    all_nan(back(var(pair, {1}, 2)));
    all_nan(back(var(pair, {1}, 2.5)));
    all_nan(back(var(long_row, {1}, 40)));
    all_nan(back(var(on(number(3)))));
    all_nan(back(var(on(f64({2, 0}, {})), {1}, 0)));
    all_nan(back(var(on(f64({2, 0}, {})), {1}, -1)));
    EXPECT_EQ(back(var(on(number(3)), std::nullopt, 0)).item<double>(), 0);
    EXPECT_EQ(var(on(f64({0, 2}, {})), {1}).numel(), 0);
  }
}

TEST(Var, HasTheDerivativeOfItsDefinition) {
  const Tensor x = f64({1, 2, 6});
  const auto f = [](const Tensor& t) { return var(t); };
  EXPECT_EQ(text(grad(f)(x).to_vector()), "[-2, -1, 3]");
  EXPECT_EQ(text(jvp([&](const Tensors& ts) { return Tensors{f(ts[0])}; }, {x}, {f64({1, 0, 1})})
                     .tangents[0]
                     .to_vector()),
            "[1]");
  EXPECT_EQ(text(vmap(f)(f64({2, 2}, {1, 3, 0, 0})).to_vector()), "[2, 0]");
}

/// What the composite says, operator by operator.
Tensor composed(const Tensor& x, const Dims& dims, double divisor) {
  const Tensor nearly = x - mean(x, Ints(dims), true), apart = nearly - mean(nearly, Ints(dims), true);
  return sum(apart * apart, Ints(dims)) / Scalar(divisor);
}

/// Lengths about ends of blocks and of what a row keeps side by side; one and several dims.
void expect_bits_of_the_composite() {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const int64_t n : {9, 16, 17, 33, 64, 511, 512, 513, 600, 1024, 1025, 1537, 5000}) {
      const Tensor x = normal({3, n}, dtype) + 100.0;
      EXPECT_EQ(verify::differs(var(x, {1}), composed(x, {1}, double(n) - 1)), "") << n;
      EXPECT_EQ(verify::differs(var(x), composed(x, {0, 1}, double(3 * n) - 1)), "") << n;
      EXPECT_EQ(verify::differs(var(x, {0}, 0), composed(x, {0}, 3)), "") << n;
    }
    const Tensor block = normal({4, 1, 5, 40}, dtype), across = transpose(block, 0, 3);
    EXPECT_EQ(verify::differs(var(block, IntArg{-1, 2}, 0), composed(block, {2, 3}, 200)), "");
    EXPECT_EQ(verify::differs(var(block, IntArg{1, 3}), composed(block, {1, 3}, 39)), "");
    EXPECT_EQ(verify::differs(var(block, IntArg{0, 3}), composed(block, {0, 3}, 159)), "");
    EXPECT_EQ(verify::differs(var(across, IntArg{2, 3}), composed(across, {2, 3}, 19)), "");
    const Tensor infinite = clone(block);
    fill_(select(select(infinite, 0, 1), -1, 7), INFINITY);
    EXPECT_EQ(verify::differs(var(infinite, {-1}), composed(infinite, {3}, 39)), "");
  }
}

TEST(Var, RowsInOnePassHaveTheBitsOfTheComposite) { expect_bits_of_the_composite(); }

TEST(Var, LikewiseUnderLoweredThresholds) {
  const ScopedThresholds lowered(kLoweredThresholds);
  expect_bits_of_the_composite();
}

/// The composite adds as that says, so one pass stands back.
TEST(Var, FollowsAnotherKernelOfSum) {
  const OpTable* const before = &OpTable::current();
  add_alternatives();
  OpTable::choose("sum", int(Device::CPU), "plain");
  expect_bits_of_the_composite();
  OpTable::take_back(before);
}

/// Many rows, a few long ones, and one: shared out, cut, and cut.
TEST(Var, BitsAreThoseOfOneTile) {
  const Tensor many = normal({700, 900}), few = normal({3, 300'001}), one = normal({1'000'003});
  const auto of = [&] { return Tensors{var(many, {1}), var(few, {1}), var(one)}; };
  Thresholds whole = kUsualThresholds;
  whole.parallel = std::numeric_limits<int64_t>::max();
  const Tensors want = [&] {
    const ScopedThresholds scope(whole);
    return of();
  }();
  for (const int n : {1, 2, 7}) {
    const ScopedThreads on(n);
    EXPECT_EQ(verify::differs(of(), want), "") << n;
  }
}

}  // namespace
