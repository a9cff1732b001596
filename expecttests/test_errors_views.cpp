// Error texts of views and of the operators that write into a view of a copy.
#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(ViewErrors, Sizes) {
  EXPECT_INLINE(refused("view", {x23(), Dims{-1, -1}}), R"(
      [shape] view: size = [-1,-1] has -1 twice; expected it once at most)");
  EXPECT_INLINE(refused("view", {x23(), Dims{4}}), R"(
      [shape] view: size = [4] has 4 elements; expected 6 as x with sizes [2,3])");
  EXPECT_INLINE(refused("view", {x23(), Dims{-1, 4}}), R"(
      [shape] view: size = [-1,4] for x with sizes [2,3]; expected a product that divides 6)");
  EXPECT_INLINE(refused("view", {x23(), Dims{-2, 3}}), R"(
      [shape] view: size = [-2,3] has a negative entry; expected sizes >= 0, or -1 once)");
  EXPECT_INLINE(refused("view", {of({0, 3}), Dims{-1, 0}}), R"(
      [shape] view: size = [-1,0]: -1 could be anything for x with sizes [0,3], which has no elements; \
      expected no -1)");
  EXPECT_INLINE(refused_plainly("view", {permute(x23(), {1, 0}), Dims{6}}), R"(
      [shape] view: size = [6] for x: f64[3,2] with strides [1,3]; expected a shape that needs no copy: \
      reshape copies)");
  EXPECT_INLINE(refused("view", {x23(), Dims{int64_t{1} << 32, int64_t{1} << 32}}), R"(
      [overflow] view: size = [4294967296,4294967296] has more elements than memory can hold; expected \
      at most 2^58)");
  EXPECT_INLINE(refused("reshape", {x23(), Dims{4}}), R"(
      [shape] reshape: size = [4] has 4 elements; expected 6 as x with sizes [2,3])");
  EXPECT_INLINE(refused("reshape", {x23(), Dims{-1, -1}}), R"(
      [shape] reshape: size = [-1,-1] has -1 twice; expected it once at most)");
  EXPECT_INLINE(refused("reshape", {x23(), Dims{-1, 4}}), R"(
      [shape] reshape: size = [-1,4] for x with sizes [2,3]; expected a product that divides 6)");
  EXPECT_INLINE(refused("reshape", {of({0}), Dims{-1, 0}}), R"(
      [shape] reshape: size = [-1,0]: -1 could be anything for x with sizes [0], which has no elements; \
      expected no -1)");
}

TEST(ViewErrors, Expand) {
  EXPECT_INLINE(refused("expand", {x23(), Dims{3}}), R"(
      [shape] expand: size = [3] has fewer dims than x: f64[2,3]; expected 2 at least)");
  EXPECT_INLINE(refused("expand", {x23(), Dims{2, 4}}), R"(
      [broadcast] expand: size = [2,4] does not fit x: f64[2,3] at dim 1; expected its size, or size 1)");
  EXPECT_INLINE(refused("expand", {x23(), Dims{-1, 2, 3}}), R"(
      [shape] expand: size = [-1,2,3] has -1 for dim 0; expected a size >= 0, or -1 for a dim of x: \
      f64[2,3])");
  EXPECT_INLINE(refused("expand", {x23(), Dims{-2, 3}}), R"(
      [shape] expand: size = [-2,3] has -2 for dim 0; expected a size >= 0, or -1 for a dim of x: \
      f64[2,3])");
  EXPECT_INLINE(refused("expand", {of({1}), Dims{int64_t{1} << 62, 4}}), R"(
      [overflow] expand: size = [4611686018427387904,4] has more elements than memory can hold; \
      expected at most 2^58)");
}

TEST(ViewErrors, Dims) {
  EXPECT_INLINE(refused("permute", {x23(), Dims{0, 0}}), R"(
      [shape] permute: dims = [0,0] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("permute", {x23(), Dims{0}}), R"(
      [shape] permute: dims = [0] for x: f64[2,3]; expected 2 dims)");
  EXPECT_INLINE(refused("permute", {x23(), Dims{0, 2}}), R"(
      [dim_out_of_range] permute: dims = 2 is out of range for x: f64[2,3]; expected -2 <= dims < 2)");
  EXPECT_INLINE(refused("transpose", {x23(), 0, 2}), R"(
      [dim_out_of_range] transpose: dim1 = 2 is out of range for x: f64[2,3]; expected -2 <= dim1 < 2)");
  EXPECT_INLINE(refused("transpose", {x23(), -3, 0}), R"(
      [dim_out_of_range] transpose: dim0 = -3 is out of range for x: f64[2,3]; expected -2 <= dim0 < 2)");
  EXPECT_INLINE(refused("squeeze", {x23(), Dims{2}}), R"(
      [dim_out_of_range] squeeze: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("squeeze", {x23(), Dims{0, 0}}), R"(
      [shape] squeeze: dim = [0,0] names dim 0 twice; expected distinct dims)");
  EXPECT_INLINE(refused("unsqueeze", {x23(), 3}), R"(
      [dim_out_of_range] unsqueeze: dim = 3 is out of range for rank 3; expected -3 <= dim < 3)");
  EXPECT_INLINE(refused("unsqueeze", {x23(), -4}), R"(
      [dim_out_of_range] unsqueeze: dim = -4 is out of range for rank 3; expected -3 <= dim < 3)");
}

TEST(ViewErrors, Select) {
  EXPECT_INLINE(refused("select", {x23(), 2, 0}), R"(
      [dim_out_of_range] select: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("select", {x23(), 0, 2}), R"(
      [index_out_of_range] select: index = 2 is out of range for dim 0 of x: f64[2,3]; expected -2 <= \
      index < 2)");
  EXPECT_INLINE(refused("select", {x23(), 0, INT64_MIN}), R"(
      [index_out_of_range] select: index = -9223372036854775808 is out of range for dim 0 of x: \
      f64[2,3]; expected -2 <= index < 2)");
  EXPECT_INLINE(refused("select", {of({}), 0, 0}), R"(
      [dim_out_of_range] select: dim = 0 is out of range for x: f64[]; expected one dim at least)");
  EXPECT_INLINE(refused("select", {of({0}), 0, 0}), R"(
      [index_out_of_range] select: index = 0 is out of range for dim 0 of x: f64[0]; expected 0 <= \
      index < 0)");
}

TEST(ViewErrors, Slice) {
  EXPECT_INLINE(refused("slice", {x23(), 2, 0, 1}), R"(
      [dim_out_of_range] slice: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("slice", {x23(), 0, 0, 2, 0}), R"([value] slice: step = 0, expected step > 0)");
  EXPECT_INLINE(refused("slice", {x23(), 0, 0, 2, -1}), R"([value] slice: step = -1, expected step > 0)");
  EXPECT_INLINE(refused("slice", {of({}), 0}), R"(
      [dim_out_of_range] slice: dim = 0 is out of range for x: f64[]; expected one dim at least)");
}

TEST(ViewErrors, Diagonal) {
  EXPECT_INLINE(refused("diagonal", {of({3})}), R"(
      [shape] diagonal: x is f64[3], expected two dims at least)");
  EXPECT_INLINE(refused("diagonal", {x23(), 0, 0, 0}), R"(
      [shape] diagonal: dim1 = 0 and dim2 = 0 for x: f64[2,3]; expected different dims)");
  EXPECT_INLINE(refused("diagonal", {x23(), 0, 0, -2}), R"(
      [shape] diagonal: dim1 = 0 and dim2 = -2 for x: f64[2,3]; expected different dims)");
  EXPECT_INLINE(refused("diagonal", {x23(), 0, 0, 2}), R"(
      [dim_out_of_range] diagonal: dim2 = 2 is out of range for x: f64[2,3]; expected -2 <= dim2 < 2)");
}

TEST(ViewErrors, Scatter) {
  EXPECT_INLINE(refused("select_scatter", {x23(), of({2}), 0, 0}), R"(
      [shape] select_scatter: src is f64[2], expected sizes [3], those of the part of x: f64[2,3] it \
      replaces)");
  EXPECT_INLINE(refused("select_scatter", {x23(), of({3}), 2, 0}), R"(
      [dim_out_of_range] select_scatter: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("select_scatter", {x23(), of({3}), 0, -3}), R"(
      [index_out_of_range] select_scatter: index = -3 is out of range for dim 0 of x: f64[2,3]; \
      expected -2 <= index < 2)");
  EXPECT_INLINE(refused("select_scatter", {x23(), of({3}, DType::C128), 0, 0}), R"(
      [dtype] select_scatter: src is c128[3], expected a dtype that x: f64[2,3] can hold)");
  EXPECT_INLINE(refused("slice_scatter", {x23(), of({2, 2}), 1, 0, 1}), R"(
      [shape] slice_scatter: src is f64[2,2], expected sizes [2,1], those of the part of x: f64[2,3] it \
      replaces)");
  EXPECT_INLINE(refused("slice_scatter", {x23(), x23(), 0, 0, 2, 0}), R"(
      [value] slice_scatter: step = 0, expected step > 0)");
  EXPECT_INLINE(refused("slice_scatter", {of({}), of({}), 0}), R"(
      [dim_out_of_range] slice_scatter: dim = 0 is out of range for x: f64[]; expected one dim at least)");
  EXPECT_INLINE(refused("diagonal_scatter", {x23(), of({3})}), R"(
      [shape] diagonal_scatter: src is f64[3], expected sizes [2], those of the part of x: f64[2,3] it \
      replaces)");
  EXPECT_INLINE(refused("diagonal_scatter", {x23(), of({2}), 0, 1, 1}), R"(
      [shape] diagonal_scatter: dim1 = 1 and dim2 = 1 for x: f64[2,3]; expected different dims)");
  EXPECT_INLINE(refused("diagonal_scatter", {of({3}), of({3})}), R"(
      [shape] diagonal_scatter: x is f64[3], expected two dims at least)");
}

TEST(ViewErrors, Split) {
  EXPECT_INLINE(refused("roll", {x23(), Dims{1, 2}, Dims{0}}), R"(
      [shape] roll: shifts = [1,2] has 2 entries; expected as many as dims)");
  EXPECT_INLINE(refused("roll", {x23(), Dims{1, 2}}), R"(
      [shape] roll: shifts = [1,2] has 2 entries; expected one, for dims = None)");
  EXPECT_INLINE(refused("split", {x23(), 0}), R"([value] split: split_size = 0, expected split_size > 0)");
  EXPECT_INLINE(refused("split", {x23(), -1}), R"([value] split: split_size = -1, expected split_size > 0)");
  EXPECT_INLINE(refused("split", {x23(), 1, 2}), R"(
      [dim_out_of_range] split: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("split", {of({}), 1}), R"([shape] split: x is f64[], expected one dim at least)");
  EXPECT_INLINE(refused("split_with_sizes", {x23(), Dims{1, 2}}), R"(
      [value] split_with_sizes: split_sizes = [1,2], expected sizes >= 0 that add up to 2, the size of \
      dim 0)");
  EXPECT_INLINE(refused("split_with_sizes", {x23(), Dims{3, -1}}), R"(
      [value] split_with_sizes: split_sizes = [3,-1], expected sizes >= 0 that add up to 2, the size of \
      dim 0)");
  EXPECT_INLINE(refused("split_with_sizes", {x23(), Dims{1}}), R"(
      [value] split_with_sizes: split_sizes = [1] add up to 1, expected size 2 of dim 0)");
  EXPECT_INLINE(refused("split_with_sizes", {x23(), Dims{1, 1}, 2}), R"(
      [dim_out_of_range] split_with_sizes: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim \
      < 2)");
  EXPECT_INLINE(refused("split_with_sizes", {of({}), Dims{1}}), R"(
      [shape] split_with_sizes: x is f64[], expected one dim at least)");
}
}  // namespace
