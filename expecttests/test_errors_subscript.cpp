// Error texts of subscripts.
#include "lamella/ops/subscript.h"

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

std::string place(std::initializer_list<Index> indices) {
  const Tensor x = x23();
  return refused([&] { (void)x[indices].read(); });
}

TEST(SubscriptErrors, Indices) {
  EXPECT_INLINE(place({0, 3}), R"(
      [index_out_of_range] subscript: indices[1] = 3 is out of range for dim 1 of x: f64[2,3]; expected \
      -3 <= index < 3)");
  EXPECT_INLINE(place({-3}), R"(
      [index_out_of_range] subscript: indices[0] = -3 is out of range for dim 0 of x: f64[2,3]; \
      expected -2 <= index < 2)");
  EXPECT_INLINE(place({0, 0, 0}), R"(
      [dim_out_of_range] subscript: indices are for 3 dims of x: f64[2,3]; expected at most 2)");
  EXPECT_INLINE(place({0, Slice{0, 4, 0}}), R"(
      [value] subscript: indices[1] is a Slice of step = 0, expected step > 0)");
  EXPECT_INLINE(place({Ellipsis, 0, Ellipsis}), R"(
      [value] subscript: indices[2] is a second Ellipsis; expected one at most)");
  EXPECT_INLINE(refused([] { (void)Tensor()[0].read(); }), R"(
      [undefined] subscript: x is an undefined tensor; expected a defined one)");
}

TEST(SubscriptErrors, Masks) {
  const Tensor two = ones({2}, DType::Bool), three = ones({3}, DType::Bool);
  EXPECT_INLINE(place({two, three}), R"(
      [value] subscript: indices[1] is a second mask; expected one at most: logical_and combines them)");
  EXPECT_INLINE(place({three}), R"(
      [shape] subscript: indices[0] is bool[3], expected the sizes [2] of x: f64[2,3] from dim 0 on)");
  EXPECT_INLINE(place({arange(2)}), R"(
      [dtype] subscript: indices[0] is i64[2], expected bool, a mask: index_select and gather take \
      tensors of integers)");
  EXPECT_INLINE(place({Tensor()}), R"(
      [undefined] subscript: indices[0] is an undefined tensor; expected a mask: a defined tensor of \
      bool)");
  EXPECT_INLINE(refused([] {
                  (void)empty({2}, DType::F32, Device::Meta)[empty({2}, DType::Bool, Device::Meta)].read();
                }),
                R"(
      [no_kernel] subscript: mask is bool[2], and how many elements it selects has to be known \
      (nonzero: the shape of the result depends on the values of x: bool[2], which are not visible here \
      (meta or under vmap); expected a tensor whose values are); expected a mask with values, equally \
      many of them true in each lane of vmap: where(mask, x, y) keeps the shape)");
}

TEST(SubscriptErrors, Values) {
  const Tensor x = x23(), rows = eq(tensor_of({2}, {1, 0}), 1);
  EXPECT_INLINE(refused([&] { x[0] = Tensor(); }), R"(
      [undefined] subscript: value is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { x[0] += Tensor(); }), R"(
      [undefined] subscript: value is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { x[0] = zeros({2}); }), R"(
      [broadcast] copy: sizes do not broadcast at dim -1: got self: f64[3], src: f32[2]; expected equal \
      sizes or 1)");
  EXPECT_INLINE(refused([&] {
                  x[rows] = zeros({2, 3});
                }),
                R"(
      [broadcast] subscript: value is f32[2,3], expected size 1 or 1 at dim 0: as many as mask selects)");
  EXPECT_INLINE(refused([&] {
                  x[rows] += zeros({2, 2});
                }),
                R"(
      [broadcast] subscript: value is f32[2,2], expected sizes that broadcast to f64[2,3] with the 1 \
      dims of mask, from dim 0 on, as one)");
}
}  // namespace
