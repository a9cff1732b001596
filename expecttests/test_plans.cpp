// Iteration plans: how layouts become loops. Sizes innermost first, then the byte strides of each operand.
#include "lamella/core/plan.h"
#include "lamella/lamella.h"

#include "expect.h"

namespace {
using namespace lamella;

/// The plan of one output and its inputs, broadcast to it.
std::string plan(const Tensor& out, const Tensors& ins) {
  std::vector<View> views;
  Tensors kept;
  for (const Tensor& t : ins) kept.push_back(expand(t, out.sizes()));
  for (const Tensor& t : kept) views.push_back(t.view_of());
  const View to = out.view_of();
  return str(make_plan({&to, 1}, views));
}

TEST(Plan, ContiguousIsOneLoop) {
  EXPECT_INLINE(plan(empty({4, 3, 2}), {empty({4, 3, 2}), empty({4, 3, 2})}), R"(
      plan 3 dims -> 1: sizes (24) | 4 | 4 | 4)");
  EXPECT_INLINE(plan(empty({}), {empty({})}), R"(plan 0 dims -> 0: sizes () | |)");
  EXPECT_INLINE(plan(empty({1, 1}), {empty({1, 1})}), R"(plan 2 dims -> 0: sizes () | |)");
}

TEST(Plan, SizeOneDisappears) {
  EXPECT_INLINE(plan(empty({4, 1, 2}), {empty({4, 1, 2})}), R"(
    plan 3 dims -> 1: sizes (8) | 4 | 4)");
}

TEST(Plan, BroadcastOperandsHaveStrideZero) {
  EXPECT_INLINE(plan(empty({4, 6}), {empty({6}), empty({4, 1})}), R"(
      plan 2 dims -> 2: sizes (6, 4) | 4, 24 | 4, 0 | 0, 4)");
  EXPECT_INLINE(plan(empty({4, 6}), {empty({})}), R"(plan 2 dims -> 1: sizes (24) | 4 | 0)");
  EXPECT_INLINE(plan(empty({2, 3, 4, 5}), {empty({4, 5}), empty({2, 3, 1, 1})}), R"(
      plan 4 dims -> 2: sizes (20, 6) | 4, 80 | 4, 0 | 0, 4)");
}

TEST(Plan, TheOutputDecidesTheOrder) {
  const Tensor t = permute(empty({4, 6}), {1, 0});
  EXPECT_INLINE(plan(empty({6, 4}), {t}), R"(plan 2 dims -> 2: sizes (4, 6) | 4, 16 | 24, 4)");
  EXPECT_INLINE(plan(t, {empty({6, 4})}), R"(plan 2 dims -> 2: sizes (6, 4) | 4, 24 | 16, 4)");
  EXPECT_INLINE(plan(t, {t}), R"(plan 2 dims -> 1: sizes (24) | 4 | 4)");
}

TEST(Plan, SlicesKeepTheirGaps) {
  const Tensor x = empty({4, 6});
  EXPECT_INLINE(plan(empty({4, 3}), {slice(x, 1, 0, 6, 2)}), R"(plan 2 dims -> 1: sizes (12) | 4 | 8)");
  EXPECT_INLINE(plan(empty({2, 6}), {slice(x, 0, 1, 4, 2)}), R"(
      plan 2 dims -> 2: sizes (6, 2) | 4, 24 | 4, 48)");
  EXPECT_INLINE(plan(empty({2, 6}), {slice(x, 0, 1, 3)}), R"(plan 2 dims -> 1: sizes (12) | 4 | 4)");
  EXPECT_INLINE(plan(empty({4}), {diagonal(x)}), R"(plan 1 dims -> 1: sizes (4) | 4 | 28)");
}

TEST(Plan, MixedItemSizes) {
  EXPECT_INLINE(plan(empty({4, 6}, DType::Bool), {empty({4, 6}, DType::F64), empty({6}, DType::F16)}), R"(
      plan 2 dims -> 2: sizes (6, 4) | 1, 6 | 8, 48 | 2, 0)");
}

TEST(Plan, EmptyHasNoElements) {
  EXPECT_INLINE(plan(empty({3, 0, 2}), {empty({3, 0, 2})}), R"(
    plan 3 dims -> 3: sizes (2, 0, 3) | 4, 8, 8 | 4, 8, 8)");
}

TEST(Plan, ManyDims) {
  const Dims sizes{2, 3, 2, 3, 2, 3};
  EXPECT_INLINE(plan(empty(sizes), {empty(sizes)}), R"(plan 6 dims -> 1: sizes (216) | 4 | 4)");
  EXPECT_INLINE(plan(empty(sizes), {permute(empty(sizes), {4, 5, 2, 3, 0, 1})}), R"(
      plan 6 dims -> 3: sizes (6, 6, 6) | 4, 24, 144 | 144, 24, 4)");
}
}  // namespace
