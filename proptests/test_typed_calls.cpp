// How operators are called in C++: by position, by name, as methods of what people type most.
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/verify/case/compare.h"

namespace {
using namespace lamella;
using verify::differs;

Tensor x23() { return tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64); }

TEST(TypedCalls, ArgumentsByNameAreThoseByPosition) {
  const Tensor x = x23(), y = x * 0.5;
  const Tensor rows = sum(x, IntArg({1}), true);
  EXPECT_EQ(differs(sum(x, {.dim = {1}, .keepdim = true}), rows), "");
  EXPECT_EQ(differs(sum(x, {.keepdim = true}), sum(x, std::nullopt, true)), "");
  EXPECT_EQ(sum(x, {.dtype = DType::F32}).dtype(), DType::F32);
  EXPECT_EQ(differs(amax(x, {.dim = {0}}), amax(x, {0})), "");
  EXPECT_EQ(differs(var(x, {.dim = {1}, .correction = 0}), var(x, {1}, 0)), "");
  EXPECT_EQ(differs(add(x, y, {.alpha = 2}), add(x, y, 2)), "");
  EXPECT_EQ(differs(add(x, 3, {.alpha = 2}), x + 6), "");
  EXPECT_EQ(differs(add(3, x, {.alpha = 2}), 3 + x * 2), "");
  EXPECT_EQ(differs(div(x, 2, {.rounding_mode = "floor"}), div(x, 2, "floor")), "");
  EXPECT_EQ(differs(clamp(x, {.max = y}), clamp(x, {}, y)), "");
  EXPECT_EQ(differs(slice(x, {.dim = 1, .start = 1}), slice(x, 1, 1)), "");
  EXPECT_EQ(differs(arange(0, {.end = 6, .step = 2}), arange(0, 6, 2)), "");
  EXPECT_EQ(zeros({2}, {.dtype = DType::F64}).dtype(), DType::F64);
  EXPECT_EQ(cat({x, x}, {.dim = 1}).size(1), 6);
  EXPECT_EQ(next_key({.device = Device::CPU}).device(), Device::CPU);
}

TEST(TypedCalls, FormsTakeArgumentsByName) {
  const Tensor x = x23(), y = x * 0.5, out = zeros({2}, DType::F64);
  EXPECT_TRUE(sum_out(out, x, {.dim = {1}}).is_same(out));
  EXPECT_EQ(differs(out, sum(x, {1})), "");
  const Tensor z = clone(x);
  EXPECT_TRUE(add_(z, y, {.alpha = 2}).is_same(z));
  EXPECT_EQ(differs(z, x * 2), "");
  EXPECT_TRUE(add_(z, 1, {.alpha = 2}).is_same(z));
  EXPECT_EQ(differs(z, x * 2 + 2), "");
}

TEST(TypedCalls, AnOutOfAnotherDtypeHoldsTheResult) {
  const Tensor halves = tensor_of({2}, {1, 0.3}, DType::F16), wide = zeros({2}, DType::F32);
  EXPECT_EQ(differs(exp_out(wide, halves), to(exp(halves), DType::F32)), "");
  const Tensor bytes = zeros({2}, DType::U8), truths = zeros({2}, DType::Bool);
  EXPECT_EQ(full_out(bytes, {2}, 100.7, DType::Bool).to_vector(), (std::vector<double>{1, 1}));
  EXPECT_EQ(fill_out(bytes, truths, -3).to_vector(), (std::vector<double>{1, 1}));
  EXPECT_EQ(copy_out(bytes, truths, tensor_of({2}, {0.5, 300})).to_vector(), (std::vector<double>{1, 1}));
  const Tensor steps = zeros({3}, DType::F64);
  EXPECT_EQ(differs(arange_out(steps, 0.1, 1.0, 0.3), to(arange(0.1, 1.0, 0.3), DType::F64)), "");
}

TEST(TypedCalls, AListWithoutNamesIsDims) {
  const Tensor x = x23(), all = sum(x), rows = sum(x, IntArg({1}));
  const std::vector<int64_t> dims = {1};
  for (const Tensor& y : {sum(x, {}), sum(x, {{}}), sum(x, std::nullopt), sum(x, IntArg({})), sum(x, Dims{})})
    EXPECT_EQ(differs(y, all), "");
  for (const Tensor& y : {sum(x, {1}), sum(x, {{1}}), sum(x, {IntArg({1})}), sum(x, Dims{1}), sum(x, dims),
                          sum(x, Ints(dims)), sum(x, {-1}, false)})
    EXPECT_EQ(differs(y, rows), "");
  EXPECT_EQ(differs(sum(x, {0, 1}), all), "");
  EXPECT_EQ(differs(sum(x, {{0, 1}}), all), "");
  EXPECT_EQ(differs(sum(x, {.dim = {}}), all), "");
  EXPECT_EQ(differs(sum(x, {.dim = {0, 1}}), all), "");
  EXPECT_EQ(differs(sum(x, {.dim = x.sizes().first(0)}), all), "");
  EXPECT_EQ(differs(amax(x, {1}), amax(x, IntArg({1}))), "");
  EXPECT_EQ(differs(clamp(x, {}, x), x), "");
  EXPECT_THROW(clamp(x, {}, {}), Error) << "two undefined bounds";
  EXPECT_EQ(differs(add(x, x, {}), x), "") << "a Scalar without a value is 0";
}

template <class T>
concept IsDims = requires(const Tensor& x, T t) {
  sum(x, t);
};
static_assert(IsDims<Dims> && IsDims<std::nullopt_t> && IsDims<SumOptions> && !IsDims<Keywords>);
static_assert(!IsDims<int> && !IsDims<bool> && !IsDims<double> && !IsDims<MeanOptions>,
              "a dim is a list of one");

TEST(TypedCalls, AnAggregateOwnsWhatItWasWrittenWith) {
  SumOptions by_name = {.dim = {1}};
  by_name.keepdim = true;
  const MeanOptions none;
  EXPECT_EQ(differs(sum(x23(), by_name), sum(x23(), {1}, true)), "");
  EXPECT_EQ(differs(mean(x23(), none), mean(x23())), "");
  std::vector<int64_t> dims = {0};
  const AmaxOptions first = {.dim = dims};
  dims[0] = 1;
  EXPECT_EQ(differs(amax(x23(), first), amax(x23(), {0})), "");
}

TEST(TypedCalls, MethodsAreTheFunctions) {
  const Tensor x = x23();
  EXPECT_EQ(differs(x[1], select(x, 0, 1)), "");
  EXPECT_TRUE(x[-1].read().shares_storage(x));
  EXPECT_EQ(x[1][2].item<double>(), 6);
  EXPECT_THROW(x[2], Error);
  EXPECT_EQ(differs(x.sum({1}, true), sum(x, {1}, true)), "");
  EXPECT_EQ(differs(x.mean(), mean(x)), "");
  EXPECT_EQ(differs(x.reshape({3, 2}), reshape(x, {3, 2})), "");
  EXPECT_EQ(differs(x.view({6}), view(x, {6})), "");
  EXPECT_EQ(differs(x.transpose(0, 1), transpose(x, 0, 1)), "");
  EXPECT_EQ(x.to(DType::I32).dtype(), DType::I32);
  EXPECT_EQ(x.to(Device::Reference).device(), Device::Reference);
  const Tensor w = requires_grad(x23());
  (w * w)[1].sum().backward();
  EXPECT_EQ(grad_of(w).to_vector(), (std::vector<double>{0, 0, 0, 8, 10, 12}));
}

TEST(TypedCalls, ComparisonsAreElementByElement) {
  const Tensor x = tensor_of({3}, {1, 2, 3}), y = tensor_of({3}, {3, 2, 1});
  EXPECT_EQ(differs(x == y, eq(x, y)), "");
  EXPECT_EQ(differs(x != y, ne(x, y)), "");
  EXPECT_EQ(differs(x < y, lt(x, y)), "");
  EXPECT_EQ(differs(x <= y, le(x, y)), "");
  EXPECT_EQ(differs(x > 2, gt(x, 2)), "");
  EXPECT_EQ(differs(2 >= x, ge(2, x)), "");
  EXPECT_EQ(differs(2 == x, eq(x, 2)), "");
  EXPECT_EQ((x < 2).dtype(), DType::Bool);
}
}  // namespace
