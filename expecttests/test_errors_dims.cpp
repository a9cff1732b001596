// Error texts of reductions, scans and what else works along dims.
#include <cmath>

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(DimErrors, OutOfRange) {
  EXPECT_INLINE(refused("cumsum", {x23(), 2}), R"(
      [dim_out_of_range] cumsum: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("cumprod", {x23(), -3}), R"(
      [dim_out_of_range] cumprod: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("softmax", {x23(), 2}), R"(
      [dim_out_of_range] softmax: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("log_softmax", {x23(), -3}), R"(
      [dim_out_of_range] log_softmax: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("sort", {x23(), 2}), R"(
      [dim_out_of_range] sort: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("flip", {x23(), Dims{0, 2}}), R"(
      [dim_out_of_range] flip: dims = 2 is out of range for x: f64[2,3]; expected -2 <= dims < 2)");
  EXPECT_INLINE(refused("sum", {x23(), Dims{0, -3}}), R"(
      [dim_out_of_range] sum: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("prod", {x23(), Dims{2}}), R"(
      [dim_out_of_range] prod: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("mean", {x23(), Dims{2}}), R"(
      [dim_out_of_range] mean: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("var", {x23(), Dims{-3}}), R"(
      [dim_out_of_range] var: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("amax", {x23(), Dims{2}}), R"(
      [dim_out_of_range] amax: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("amin", {x23(), Dims{-3}}), R"(
      [dim_out_of_range] amin: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("argmax", {x23(), 2}), R"(
      [dim_out_of_range] argmax: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
}

TEST(DimErrors, OfRankZero) {
  EXPECT_INLINE(refused("cumsum", {of({}), 1}), R"(
      [dim_out_of_range] cumsum: dim = 1 is out of range for x: f64[]; expected -1 <= dim < 1)");
  EXPECT_INLINE(refused("sum", {of({}), Dims{-2}}), R"(
      [dim_out_of_range] sum: dim = -2 is out of range for x: f64[]; expected -1 <= dim < 1)");
  EXPECT_INLINE(refused("argmax", {of({}), 1}), R"(
      [dim_out_of_range] argmax: dim = 1 is out of range for x: f64[]; expected -1 <= dim < 1)");
  EXPECT_INLINE(refused("sort", {of({}), 1}), R"(
      [dim_out_of_range] sort: dim = 1 is out of range for x: f64[]; expected -1 <= dim < 1)");
}

TEST(DimErrors, NamedTwice) {
  EXPECT_INLINE(refused("sum", {x23(), Dims{0, 0}}), R"(
      [shape] sum: dim = [0,0] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("prod", {x23(), Dims{1, -1}}), R"(
      [shape] prod: dim = [1,-1] names dim 1 twice; expected distinct dims)");
  EXPECT_INLINE(refused("mean", {x23(), Dims{0, -2}}), R"(
      [shape] mean: dim = [0,-2] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("var", {x23(), Dims{1, 1}}), R"(
      [shape] var: dim = [1,1] names dim 1 twice; expected distinct dims)");
  EXPECT_INLINE(refused("amax", {x23(), Dims{0, 0}}), R"(
      [shape] amax: dim = [0,0] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("amin", {x23(), Dims{0, 0}}), R"(
      [shape] amin: dim = [0,0] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("flip", {x23(), Dims{1, 1}}), R"(
      [shape] flip: dims = [1,1] names dim 1 twice; expected distinct dims)");
}

TEST(DimErrors, NothingToChooseFrom) {
  EXPECT_INLINE(refused("amax", {of({2, 0}), Dims{1}}), R"(
      [shape] amax: dim 1 of x: f64[2,0] is empty; expected at least one element to choose from)");
  EXPECT_INLINE(refused("amin", {of({0}), Dims{}}), R"(
      [shape] amin: dim 0 of x: f64[0] is empty; expected at least one element to choose from)");
  EXPECT_INLINE(refused("argmax", {of({2, 0}), 1}), R"(
      [shape] argmax: dim 1 of x: f64[2,0] is empty; expected at least one element to choose from)");
  EXPECT_INLINE(refused("argmax", {of({0}), Value()}), R"(
      [shape] argmax: dim 0 of x: f64[0] is empty; expected at least one element to choose from)");
}

TEST(DimErrors, DTypes) {
  EXPECT_INLINE(refused("cumsum", {x23(), 0}, {{"dtype", DType::Bool}}), R"(
      [dtype] cumsum: dtype = bool, expected a number's dtype)");
  EXPECT_INLINE(refused("cumprod", {x23(), 0}, {{"dtype", DType::Bool}}), R"(
      [dtype] cumprod: dtype = bool, expected a number's dtype)");
  EXPECT_INLINE(refused("mean", {of({2}, DType::I64)}), R"(
      [dtype] mean: x is i64[2] and the result would be i64; expected a floating or complex dtype)");
  EXPECT_INLINE(refused("mean", {x23()}, {{"dtype", DType::I64}}), R"(
      [dtype] mean: x is f64[2,3] and the result would be i64; expected a floating or complex dtype)");
  EXPECT_INLINE(refused("amax", {of({2}, DType::C64)}), R"(
      [dtype] amax: x is c64[2], which has no order; expected a real dtype)");
  EXPECT_INLINE(refused("amin", {of({2}, DType::C64)}), R"(
      [dtype] amin: x is c64[2], which has no order; expected a real dtype)");
  EXPECT_INLINE(refused("argmax", {of({2}, DType::C64)}), R"(
      [dtype] argmax: x is c64[2], expected a real number's dtype)");
  EXPECT_INLINE(refused("argmax", {of({2}, DType::Bool)}), R"(
      [dtype] argmax: x is bool[2], expected a real number's dtype)");
  EXPECT_INLINE(refused("sort", {of({2}, DType::C64)}), R"(
      [dtype] sort: x is c64[2], which has no order; expected a real dtype)");
  EXPECT_INLINE(refused("softmax", {of({2}, DType::I64), 0}), R"(
      [dtype] softmax: x is i64[2]; expected a floating dtype)");
  EXPECT_INLINE(refused("softmax", {of({2}), 0}, {{"dtype", DType::C64}}), R"(
      [dtype] softmax: dtype is c64; expected a floating dtype)");
  EXPECT_INLINE(refused("log_softmax", {of({2}, DType::C64), 0}), R"(
      [dtype] log_softmax: x is c64[2]; expected a floating dtype)");
}

TEST(DimErrors, SumToSize) {
  EXPECT_INLINE(refused("sum_to_size", {x23(), Dims{1, 2, 3}}), R"(
      [shape] sum_to_size: size = [1,2,3] has more dims than x: f64[2,3]; expected sizes that broadcast \
      to x)");
  EXPECT_INLINE(refused("sum_to_size", {x23(), Dims{2, 2}}), R"(
      [shape] sum_to_size: size = [2,2] does not broadcast to x: f64[2,3]; expected equal sizes or 1)");
  EXPECT_INLINE(refused("sum_to_size", {x23(), Dims{-1, 3}}), R"(
      [shape] sum_to_size: size = [-1,3] does not broadcast to x: f64[2,3]; expected equal sizes or 1)");
}

TEST(DimErrors, Var) {
  EXPECT_INLINE(refused("var", {of({2}, DType::I64)}), R"(
      [dtype] var: x is i64[2], expected a floating or complex dtype)");
  EXPECT_INLINE(refused("var", {of({2}, DType::Bool)}), R"(
      [dtype] var: x is bool[2], expected a floating or complex dtype)");
  EXPECT_INLINE(refused("var", {x23()}, {{"correction", INFINITY}}), R"(
      [value] var: correction = inf, expected a finite number)");
  EXPECT_INLINE(refused("var", {of({20, 20})}, {{"correction", std::nan("")}}), R"(
      [value] var: correction = nan, expected a finite number)");
}

TEST(DimErrors, LayerNorm) {
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{2}}), R"(
      [shape] layer_norm: normalized_shape = [2] for x: f64[2,3]; expected the last sizes of x, at \
      least one)");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{}}), R"(
      [shape] layer_norm: normalized_shape = [] for x: f64[2,3]; expected the last sizes of x, at least \
      one)");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{1, 2, 3}}), R"(
      [shape] layer_norm: normalized_shape = [1,2,3] for x: f64[2,3]; expected the last sizes of x, at \
      least one)");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{3}, of({2})}), R"(
      [shape] layer_norm: weight is f64[2], expected normalized_shape = [3])");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{3}, of({3}), of({1, 3})}), R"(
      [shape] layer_norm: bias is f64[1,3], expected normalized_shape = [3])");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{3}, of({3}, DType::I64)}), R"(
      [dtype] layer_norm: weight is i64[3], expected a floating dtype)");
  EXPECT_INLINE(refused("layer_norm", {of({2, 3}, DType::I64), Dims{3}}), R"(
      [dtype] layer_norm: x is i64[2,3], expected a floating dtype)");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{3}, Value(), Value(), INFINITY}), R"(
      [value] layer_norm: eps = inf, expected a finite number)");
  EXPECT_INLINE(refused("layer_norm", {x23(), Dims{3}, Value(), Value(), std::nan("")}), R"(
      [value] layer_norm: eps = nan, expected a finite number)");
  EXPECT_INLINE(refused("native_layer_norm", {x23(), Dims{2}, Value(), Value(), 1e-5}), R"(
      [shape] native_layer_norm: normalized_shape = [2] for x: f64[2,3]; expected the last sizes of x, \
      at least one)");
}
}  // namespace
