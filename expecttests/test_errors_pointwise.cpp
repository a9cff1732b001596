// Error texts of pointwise operators: broadcasting, dtypes, scalars, rounding.
#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(PointwiseErrors, Broadcasting) {
  EXPECT_INLINE(refused("add", {x23(), of({2})}), R"(
      [broadcast] add: sizes do not broadcast at dim -1: got a: f64[2,3], b: f64[2]; expected equal \
      sizes or 1)");
  EXPECT_INLINE(refused("mul", {of({4, 1, 3}), of({5, 4})}), R"(
      [broadcast] mul: sizes do not broadcast at dim -1: got a: f64[4,1,3], b: f64[5,4]; expected equal \
      sizes or 1)");
  EXPECT_INLINE(refused("where", {of({2}, DType::Bool), x23(), x23()}), R"(
      [broadcast] where: sizes do not broadcast at dim -1: got condition: bool[2], x: f64[2,3], y: \
      f64[2,3]; expected equal sizes or 1)");
  EXPECT_INLINE(refused("clamp", {x23(), of({2}), Value()}), R"(
      [broadcast] clamp: sizes do not broadcast at dim -1: got x: f64[2,3], min: f64[2]; expected equal \
      sizes or 1)");
  EXPECT_INLINE(refused("complex", {of({2}), of({3})}), R"(
      [broadcast] complex: sizes do not broadcast at dim -1: got real: f64[2], imag: f64[3]; expected \
      equal sizes or 1)");
  EXPECT_INLINE(refused("copy", {of({3}), x23()}), R"(
      [broadcast] copy: src is f64[2,3], expected sizes that broadcast to self: f64[3])");
  EXPECT_INLINE(refused("fold_in", {of({2}, DType::U64), of({3}, DType::U64)}), R"(
      [broadcast] fold_in: sizes do not broadcast at dim -1: got key: u64[2], data: u64[3]; expected \
      equal sizes or 1)");
}

TEST(PointwiseErrors, Bool) {
  EXPECT_INLINE(refused("sub", {of({1}, DType::Bool), of({1}, DType::Bool)}), R"(
      [dtype] sub: a: bool[1], b: bool[1]; expected numbers, not bool)");
  EXPECT_INLINE(refused("pow", {of({1}, DType::Bool), of({1}, DType::Bool)}), R"(
      [dtype] pow: a: bool[1], b: bool[1]; expected numbers, not bool)");
  EXPECT_INLINE(refused("neg", {of({2}, DType::Bool)}), R"([dtype] neg: x is bool[2], expected a number)");
  EXPECT_INLINE(refused("abs", {of({2}, DType::Bool)}), R"([dtype] abs: x is bool[2], expected a number)");
}

TEST(PointwiseErrors, ComplexNumbersHaveNoOrder) {
  EXPECT_INLINE(refused("maximum", {of({2}, DType::C128), of({2})}), R"(
      [dtype] maximum: a: c128[2], b: f64[2]: complex numbers have no order; expected real numbers)");
  EXPECT_INLINE(refused("minimum", {of({2}, DType::C128), of({2})}), R"(
      [dtype] minimum: a: c128[2], b: f64[2]: complex numbers have no order; expected real numbers)");
  EXPECT_INLINE(refused("lt", {of({2}, DType::C128), of({2})}), R"(
      [dtype] lt: a: c128[2], b: f64[2] compare as c128, which has no order; expected real numbers)");
  EXPECT_INLINE(refused("le", {of({2}), of({2}, DType::C64)}), R"(
      [dtype] le: a: f64[2], b: c64[2] compare as c128, which has no order; expected real numbers)");
  EXPECT_INLINE(refused("gt", {of({2}, DType::C128), of({2})}), R"(
      [dtype] gt: a: c128[2], b: f64[2] compare as c128, which has no order; expected real numbers)");
  EXPECT_INLINE(refused("ge", {of({2}, DType::C128), of({2})}), R"(
      [dtype] ge: a: c128[2], b: f64[2] compare as c128, which has no order; expected real numbers)");
  EXPECT_INLINE(refused("clamp", {of({2}, DType::C128), of({}), Value()}), R"(
      [dtype] clamp: x: c128[2] and its bounds compare as c128, which has no order; expected real \
      numbers)");
}

TEST(PointwiseErrors, Scalars) {
  EXPECT_INLINE(refused("add", {of({2}, DType::I64), of({2}, DType::I64)}, {{"alpha", 0.5}}), R"(
      [dtype] add: alpha = 0.5 does not fit a result of i64; expected a number of its kind)");
  EXPECT_INLINE(refused("sub", {x23(), x23()}, {{"alpha", Scalar(c128(0, 1))}}), R"(
      [dtype] sub: alpha = 0+1j does not fit a result of f64; expected a number of its kind)");
  EXPECT_INLINE(refused("fill", {x23(), Scalar(c128(0, 1))}), R"(
      [dtype] fill: value = 0+1j is complex, expected a real number for x: f64[2,3])");
  EXPECT_INLINE(refused("full_like", {x23(), Scalar(c128(0, 1))}), R"(
      [dtype] full_like: value = 0+1j is complex, expected a real number for f64)");
  EXPECT_INLINE(refused("new_full", {x23(), Dims{2}, Scalar(c128(0, 1))}), R"(
      [dtype] new_full: value = 0+1j is complex, expected a real number for f64)");
}

TEST(PointwiseErrors, Division) {
  EXPECT_INLINE(refused("div", {of({2}), of({2})}, {{"rounding_mode", std::string("round")}}), R"(
      [value] div: rounding_mode = "round", expected "floor" or "trunc")");
  EXPECT_INLINE(refused("div", {of({2}), of({2})}, {{"rounding_mode", std::string()}}), R"(
      [value] div: rounding_mode = "", expected "floor" or "trunc")");
  EXPECT_INLINE(
      refused("div", {of({2}, DType::C128), of({2}, DType::C128)}, {{"rounding_mode", std::string("floor")}}),
      R"([dtype] div: a: c128[2], b: c128[2]; expected real numbers for rounding_mode = "floor")");
  EXPECT_INLINE(
      refused("div", {ints({2}, {1, 2}), ints({2}, {1, 0})}, {{"rounding_mode", std::string("trunc")}}), R"(
      [value] div: b holds 0 and the division is in i64; expected b != 0)");
  EXPECT_INLINE(refused("div", {ints({2}, {1, 2}), ints({}, {0})}, {{"rounding_mode", std::string("floor")}}),
                R"([value] div: b holds 0 and the division is in i64; expected b != 0)");
}

TEST(PointwiseErrors, Choices) {
  EXPECT_INLINE(refused("where", {x23(), x23(), x23()}), R"(
      [dtype] where: condition is f64[2,3], expected bool)");
  EXPECT_INLINE(refused("clamp", {x23(), Value(), Value()}), R"(
      [value] clamp: min and max are both None, expected one at least)");
}

TEST(PointwiseErrors, ComplexParts) {
  EXPECT_INLINE(refused("imag", {x23()}), R"([dtype] imag: x is f64[2,3], expected a complex tensor)");
  EXPECT_INLINE(refused("real_part", {x23()}), R"(
      [dtype] real_part: x is f64[2,3], expected a complex tensor)");
  EXPECT_INLINE(refused("complex", {of({2}), of({2}, DType::F32)}), R"(
      [dtype] complex: real: f64[2], imag: f32[2]; expected the same dtype)");
  EXPECT_INLINE(refused("complex", {of({2}, DType::F16), of({2}, DType::F16)}), R"(
      [dtype] complex: real: f16[2], imag: f16[2]; expected both f32 or both f64)");
  EXPECT_INLINE(refused("complex", {of({2}, DType::I64), of({2}, DType::I64)}), R"(
      [dtype] complex: real: i64[2], imag: i64[2]; expected both f32 or both f64)");
}
}  // namespace
