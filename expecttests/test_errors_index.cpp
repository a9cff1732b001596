// Error texts of indexing, joining, factories and random numbers.
#include <cmath>

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(IndexErrors, Gather) {
  EXPECT_INLINE(refused("gather", {x23(), 1, ints({2, 1}, {0, 3})}), R"(
      [index_out_of_range] gather: index = 3 is out of range for dim 1; expected 0 <= index < 3)");
  EXPECT_INLINE(refused("gather", {x23(), 1, ints({2, 1}, {0, -1})}), R"(
      [index_out_of_range] gather: index = -1 is out of range for dim 1; expected 0 <= index < 3)");
  EXPECT_INLINE(refused("gather", {x23(), 2, ints({2, 1}, {0, 0})}), R"(
      [dim_out_of_range] gather: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("gather", {x23(), 0, ints({1}, {0})}), R"(
      [shape] gather: index is i64[1], expected the rank of x: f64[2,3])");
  EXPECT_INLINE(refused("gather", {x23(), 1, ints({3, 1}, {0, 0, 0})}), R"(
      [shape] gather: index is i64[3,1], expected sizes that do not exceed those of x: f64[2,3] except \
      at dim 1)");
  EXPECT_INLINE(refused("gather", {x23(), 1, of({2, 1})}), R"(
      [dtype] gather: index is f64[2,1], expected i32 or i64)");
}

TEST(IndexErrors, ScatterAdd) {
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({1, 3}, {0, 2, 0}), of({1, 3})}), R"(
      [index_out_of_range] scatter_add: index = 2 is out of range for dim 0; expected 0 <= index < 2)");
  EXPECT_INLINE(refused("scatter_add", {x23(), -3, ints({1, 3}, {0, 1, 0}), of({1, 3})}), R"(
      [dim_out_of_range] scatter_add: dim = -3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({3}, {0, 1, 0}), of({1, 3})}), R"(
      [shape] scatter_add: index is i64[3], expected the rank of x: f64[2,3])");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({1, 4}, {0, 1, 0, 0}), of({1, 4})}), R"(
      [shape] scatter_add: index is i64[1,4], expected sizes that do not exceed those of x: f64[2,3] \
      except at dim 0)");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({1, 3}, {0, 1, 0}), of({3})}), R"(
      [shape] scatter_add: src is f64[3], expected the rank of index: i64[1,3])");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({2, 3}, {0, 1, 0, 0, 1, 0}), of({1, 3})}), R"(
      [shape] scatter_add: index is i64[2,3], expected sizes that do not exceed those of src: f64[1,3])");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, ints({1, 3}, {0, 1, 0}), of({1, 3}, DType::F32)}), R"(
      [dtype] scatter_add: src is f32[1,3], expected the dtype of x: f64[2,3])");
  EXPECT_INLINE(refused("scatter_add", {x23(), 0, of({1, 3}), of({1, 3})}), R"(
      [dtype] scatter_add: index is f64[1,3], expected i32 or i64)");
}

TEST(IndexErrors, IndexSelect) {
  EXPECT_INLINE(refused("index_select", {x23(), 0, full({1}, INT64_MIN)}), R"(
      [index_out_of_range] index_select: index = -9223372036854775808 is out of range for dim 0; \
      expected 0 <= index < 2)");
  EXPECT_INLINE(refused("index_select", {x23(), 1, ints({2}, {0, 3})}), R"(
      [index_out_of_range] index_select: index = 3 is out of range for dim 1; expected 0 <= index < 3)");
  EXPECT_INLINE(refused("index_select", {x23(), 2, ints({1}, {0})}), R"(
      [dim_out_of_range] index_select: dim = 2 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("index_select", {x23(), 0, ints({1, 1}, {0})}), R"(
      [shape] index_select: index is i64[1,1], expected rank 1)");
  EXPECT_INLINE(refused("index_select", {x23(), 0, of({1})}), R"(
      [dtype] index_select: index is f64[1], expected i32 or i64)");
  EXPECT_INLINE(refused("index_select", {of({}), 0, ints({2}, {0, 0})}), R"(
      [shape] index_select: index is i64[2], expected one entry for x: f64[])");
}

TEST(IndexErrors, IndexAdd) {
  EXPECT_INLINE(refused("index_add", {x23(), 0, ints({1}, {2}), of({1, 3})}), R"(
      [index_out_of_range] index_add: index = 2 is out of range for dim 0; expected 0 <= index < 2)");
  EXPECT_INLINE(refused("index_add", {x23(), 0, ints({2}, {0, 1}), of({1, 3})}), R"(
      [shape] index_add: src is f64[1,3], expected sizes [2,3]: those of x: f64[2,3] with 2 at dim 0)");
  EXPECT_INLINE(refused("index_add", {x23(), 0, ints({1}, {0}), of({1, 3}, DType::F32)}), R"(
      [dtype] index_add: src is f32[1,3], expected the dtype of x: f64[2,3])");
  EXPECT_INLINE(refused("index_add", {x23(), 3, ints({1}, {0}), of({1, 3})}), R"(
      [dim_out_of_range] index_add: dim = 3 is out of range for x: f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("index_add", {x23(), 0, ints({1, 1}, {0}), of({1, 3})}), R"(
      [shape] index_add: index is i64[1,1], expected rank 1)");
  EXPECT_INLINE(
      refused("index_add", {of({2}, DType::I64), 0, ints({1}, {0}), of({1}, DType::I64)}, {{"alpha", 0.5}}),
      R"([dtype] index_add: alpha = 0.5 does not fit x: i64[2]; expected a number of its kind)");
}

TEST(IndexErrors, Join) {
  EXPECT_INLINE(refused("cat", {Tensors{}}), R"(
      [value] cat: tensors is empty, expected one tensor at least)");
  EXPECT_INLINE(refused("cat", {Tensors{x23(), of({2})}}), R"(
      [shape] cat: tensors[1] is f64[2], expected rank 2 as f64[2,3])");
  EXPECT_INLINE(refused("cat", {Tensors{x23(), of({2, 2})}}), R"(
      [shape] cat: tensors[1] is f64[2,2], expected the sizes of f64[2,3] except at dim 0)");
  EXPECT_INLINE(refused("cat", {Tensors{x23(), x23()}, 2}), R"(
      [dim_out_of_range] cat: dim = 2 is out of range for rank 2; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused("cat", {Tensors{of({}), of({})}}), R"(
      [shape] cat: tensors[0] is f64[], expected one dim at least)");
  EXPECT_INLINE(refused("stack", {Tensors{}}), R"(
      [value] stack: tensors is empty, expected one tensor at least)");
  EXPECT_INLINE(refused("stack", {Tensors{x23(), of({2, 2})}}), R"(
      [shape] stack: tensors[1] is f64[2,2], expected the sizes of f64[2,3])");
  EXPECT_INLINE(refused("stack", {Tensors{x23(), x23()}, 3}), R"(
      [dim_out_of_range] stack: dim = 3 is out of range for rank 3; expected -3 <= dim < 3)");
}

TEST(FactoryErrors, Sizes) {
  EXPECT_INLINE(refused("zeros", {Dims{-1}}), R"(
      [shape] zeros: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("ones", {Dims{2, -1}}), R"(
      [shape] ones: size = [2,-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("full", {Dims{-1}, 1}), R"(
      [shape] full: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("empty", {Dims{-1}}), R"(
      [shape] empty: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("rand", {Dims{-1}}), R"(
      [shape] rand: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("randn", {Dims{3, -1}}), R"(
      [shape] randn: size = [3,-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("new_zeros", {x23(), Dims{-1}}), R"(
      [shape] new_zeros: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("new_full", {x23(), Dims{-1}, 1}), R"(
      [shape] new_full: size = [-1] has a negative entry; expected sizes >= 0)");
  EXPECT_INLINE(refused("eye", {-1}), R"([shape] eye: n = -1, m = -1; expected sizes >= 0)");
  EXPECT_INLINE(refused("eye", {2, -1}), R"([shape] eye: n = 2, m = -1; expected sizes >= 0)");
}

TEST(FactoryErrors, Overflow) {
  const int64_t huge = int64_t{1} << 32;
  EXPECT_INLINE(refused("zeros", {Dims{huge, huge}}), R"(
      [overflow] zeros: size = [4294967296,4294967296] has more elements than memory can hold; expected \
      at most 2^58)");
  EXPECT_INLINE(refused("empty", {Dims{huge, huge}}), R"(
      [overflow] empty: size = [4294967296,4294967296] has more elements than memory can hold; expected \
      at most 2^58)");
  EXPECT_INLINE(refused("rand", {Dims{huge, huge}}), R"(
      [overflow] rand: size = [4294967296,4294967296] has more elements than memory can hold; expected \
      at most 2^58)");
  EXPECT_INLINE(refused("new_zeros", {x23(), Dims{huge, huge}}), R"(
      [overflow] new_zeros: size = [4294967296,4294967296] has more elements than memory can hold; \
      expected at most 2^58)");
  EXPECT_INLINE(refused("eye", {huge, huge}), R"(
      [overflow] eye: n = 4294967296, m = 4294967296 are more elements than memory can hold; expected \
      at most 2^58)");
  EXPECT_INLINE(refused("full", {Dims{0, 2786357852644344240, 11, 15, 10, 16}, 1}), R"(
      [overflow] full: size = [0,2786357852644344240,11,15,10,16] has more elements than memory can \
      hold; expected at most 2^58)");
  EXPECT_INLINE(refused("arange", {0, 1e30}), R"(
      [overflow] arange: end = 1e+30 is 1e+30 steps away, more than memory can hold; expected at most \
      2^58)");
  EXPECT_INLINE(refused("zeros", {Dims(65, 1)}), R"(
      [shape] zeros: size has 65 entries, expected at most 64 dims)");
}

TEST(FactoryErrors, Arange) {
  EXPECT_INLINE(refused("arange", {0, (int64_t{1} << 58) + 1}), R"(
      [overflow] arange: end = 288230376151711745 is 2.8823e+17 steps away, more than memory can hold; \
      expected at most 2^58)");
  EXPECT_INLINE(refused("arange", {0, 3, 0}), R"(
      [value] arange: step = 0, expected a step that is not 0 in i64)");
  EXPECT_INLINE(refused("arange", {INT64_MIN + 5, INT64_MIN + 2}), R"(
      [value] arange: step = 1 leads away from end = -9223372036854775806, starting at \
      -9223372036854775803; expected the other sign)");
  EXPECT_INLINE(refused("arange", {0, 3, -1}), R"(
      [value] arange: step = -1 leads away from end = 3, starting at 0; expected the other sign)");
  EXPECT_INLINE(refused("arange", {3, 0, 1}), R"(
      [value] arange: step = 1 leads away from end = 0, starting at 3; expected the other sign)");
  EXPECT_INLINE(refused("arange", {0, 3, 0.5}, {{"dtype", DType::I64}}), R"(
      [value] arange: step = 0.5, expected a step that is not 0 in i64)");
  EXPECT_INLINE(refused("arange", {0, INFINITY}), R"([value] arange: end = inf, expected a finite number)");
  EXPECT_INLINE(refused("arange", {std::nan(""), 1}), R"(
      [value] arange: start = nan, expected a finite number)");
  EXPECT_INLINE(refused("arange", {0, 3, Scalar(c128(0, 1))}), R"(
      [dtype] arange: step = 0+1j is complex, expected a real number)");
  EXPECT_INLINE(refused("arange", {3}, {{"dtype", DType::Bool}}), R"(
      [dtype] arange: dtype = bool, expected a real number type)");
  EXPECT_INLINE(refused("arange", {3}, {{"dtype", DType::C64}}), R"(
      [dtype] arange: dtype = c64, expected a real number type)");
}

TEST(FactoryErrors, Full) {
  EXPECT_INLINE(refused("full", {Dims{2}, Scalar(c128(0, 1))}, {{"dtype", DType::F64}}), R"(
      [dtype] full: fill_value = 0+1j is complex, expected a real number for f64)");
}

TEST(RandomErrors, Keys) {
  EXPECT_INLINE(refused("rand", {Dims{2}}, {{"key", of({}, DType::F64)}}), R"(
      [dtype] rand: key is f64[], expected u64)");
  EXPECT_INLINE(refused("randn", {Dims{2}}, {{"key", of({2}, DType::I64)}}), R"(
      [dtype] randn: key is i64[2], expected u64)");
  EXPECT_INLINE(refused("fold_in", {of({}, DType::I64), of({}, DType::U64)}), R"(
      [dtype] fold_in: key is i64[], expected u64)");
  EXPECT_INLINE(refused("fold_in", {of({}, DType::U64), of({}, DType::I64)}), R"(
      [dtype] fold_in: data is i64[], expected u64)");
  EXPECT_INLINE(refused("split_key", {of({}, DType::I64), 2}), R"(
      [dtype] split_key: key is i64[], expected u64)");
  EXPECT_INLINE(refused("split_key", {of({}, DType::U64), -1}), R"(
      [value] split_key: num = -1, expected num >= 0)");
}

TEST(RandomErrors, DTypes) {
  EXPECT_INLINE(refused("rand", {Dims{2}}, {{"dtype", DType::C64}}), R"(
      [dtype] rand: dtype = c64, expected a floating dtype)");
  EXPECT_INLINE(refused("rand", {Dims{2}}, {{"dtype", DType::I64}}), R"(
      [dtype] rand: dtype = i64, expected a floating dtype)");
  EXPECT_INLINE(refused("randn", {Dims{2}}, {{"dtype", DType::I64}}), R"(
      [dtype] randn: dtype = i64, expected a floating or complex dtype)");
}
}  // namespace
