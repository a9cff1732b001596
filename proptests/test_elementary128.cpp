// exp and tanh of f128 against libquadmath, which computes both in another way.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <quadmath.h>
#include <random>

#include "lamella/ops/functions.h"
#include "lamella/verify/oracle/modes.h"
#include "lamella/verify/oracle/oracle.h"

namespace {

using namespace lamella;
using Operator = Tensor (*)(const Tensor&);

f128 on_reference_column(Operator op, f128 x) {
  static const Tensor in = verify::to_reference(zeros({}, DType::F64));
  *static_cast<f128*>(in.raw_data()) = x;
  const verify::ReferenceRun there;
  return *static_cast<const f128*>(op(in).raw_data());
}
f128 exp128(f128 x) {
  return on_reference_column([](const Tensor& t) { return exp(t); }, x);
}
f128 tanh128(f128 x) {
  return on_reference_column([](const Tensor& t) { return tanh(t); }, x);
}

/// In units of the last place of `want`, which is finite.
double units_off(f128 got, f128 want) {
  int exponent = 0;
  frexpq(want, &exponent);
  return double(fabsq(got - want) / ldexpq(1, std::max(exponent, -16381) - 113));
}

/// 113 random bits and a random sign, of the order 2^exponent.
f128 random_number(std::mt19937_64& words, int exponent) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  return ldexpq(f128(uniform(words)) + ldexpq(uniform(words), -60), exponent);
}

TEST(Elementary128, EqualsLibquadmathAtEveryMagnitude) {
  std::mt19937_64 words(11);
  for (int i = 0; i < 30000; ++i) {
    const f128 x = random_number(words, i % 3 == 0 ? -int(words() % 140) : int(words() % 20) - 6);
    if (x < 11356 && x > -11433) { ASSERT_LE(units_off(exp128(x), expq(x)), 1) << double(x); }
    ASSERT_LE(units_off(tanh128(x), tanhq(x)), 5) << double(x);
    ASSERT_EQ(tanh128(-x), -tanh128(x)) << double(x);
  }
}

TEST(Elementary128, EqualsLibquadmathNextToMultiplesOfLn2) {
  const f128 ln2 = logq(2);
  for (int k = -16000; k <= 16000; k += 37)
    for (int side = -1; side <= 1; ++side) {
      const f128 x = k * ln2 * (1 + side * ldexpq(1, -110));
      ASSERT_LE(units_off(exp128(x), expq(x)), 1) << k;
    }
}

TEST(Elementary128, EdgesOfTheRange) {
  const f128 infinity = std::numeric_limits<double>::infinity(), nan = std::nan(""), huge = ldexpq(1, 16000);
  EXPECT_TRUE(exp128(infinity) == infinity && exp128(11356.6) == infinity && exp128(huge) == infinity);
  EXPECT_TRUE(exp128(-infinity) == 0 && exp128(-11434) == 0 && exp128(-huge) == 0);
  EXPECT_TRUE(exp128(0) == 1 && exp128(-0.0) == 1 && exp128(1 / huge) == 1);
  EXPECT_TRUE(exp128(11356.5) < infinity && exp128(-11433.4) > 0);
  EXPECT_TRUE(exp128(nan) != exp128(nan) && tanh128(nan) != tanh128(nan));
  EXPECT_TRUE(tanh128(infinity) == 1 && tanh128(-infinity) == -1 && tanh128(45) == 1);
  EXPECT_TRUE(tanh128(0) == 0 && signbitq(tanh128(-0.0)) && tanh128(1 / huge) == 1 / huge);
}

}  // namespace
