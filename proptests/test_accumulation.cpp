// Sums over many elements: dtype= as PyTorch means it, and errors that do not grow with the length.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/core/parallel.h"
#include "lamella/core/thresholds.h"
#include "lamella/core/visit.h"
#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/ops/alternatives.h"
#include "lamella/verify/case/compare.h"

namespace {
using namespace lamella;

Tensor f32(std::initializer_list<double> v) { return tensor_of({int64_t(v.size())}, v, DType::F32); }

/// Each on the CPU and on the reference column: (operator, argument dtype) -> values.
void expect_both(const Tensor& x, const std::function<Tensor(const Tensor&)>& f, DType dtype,
                 const std::vector<double>& wanted) {
  for (const Device device : {Device::CPU, Device::Reference}) {
    const Tensor y = to_device(f(to_device(x, device)), Device::CPU);
    EXPECT_EQ(y.dtype(), dtype) << name(device);
    EXPECT_EQ(y.to_vector(), wanted) << name(device);
  }
}

TEST(DtypeArgument, IntegersAndBoolAccumulateInI64) {
  const Tensor bytes = tensor_of({3}, {100, 100, 100}, DType::U8),
               truth = tensor_of({2}, {1, 1}, DType::Bool);
  expect_both(bytes, [](const Tensor& x) { return sum(x); }, DType::I64, {300});
  expect_both(bytes, [](const Tensor& x) { return prod(x); }, DType::I64, {1e6});
  expect_both(bytes, [](const Tensor& x) { return cumsum(x, 0); }, DType::I64, {100, 200, 300});
  expect_both(truth, [](const Tensor& x) { return sum(x); }, DType::I64, {2});
  expect_both(truth, [](const Tensor& x) { return cumsum(x, 0); }, DType::I64, {1, 2});
  expect_both(truth, [](const Tensor& x) { return cumprod(x, 0); }, DType::I64, {1, 1});
}

TEST(DtypeArgument, BoolSumsAreOrAndProductsAnd) {
  const Tensor x = f32({0.5, 0, 2}), nothing = ones({0}, DType::F32);
  expect_both(x, [](const Tensor& t) { return sum(t, {}, false, DType::Bool); }, DType::Bool, {1});
  expect_both(x, [](const Tensor& t) { return prod(t, {}, false, DType::Bool); }, DType::Bool, {0});
  expect_both(nothing, [](const Tensor& t) { return sum(t, {}, false, DType::Bool); }, DType::Bool, {0});
  expect_both(nothing, [](const Tensor& t) { return prod(t, {}, false, DType::Bool); }, DType::Bool, {1});
}

TEST(DtypeArgument, ElementsAreConvertedBeforeTheyAreAdded) {
  const Tensor x = f32({1.5, 1.5, -0.5}), wide = f32({2049, 2049, 70000, -70000});
  expect_both(x, [](const Tensor& t) { return sum(t, {}, false, DType::I32); }, DType::I32, {2});
  expect_both(x, [](const Tensor& t) { return cumsum(t, 0, DType::I64); }, DType::I64, {1, 2, 2});
  expect_both(x, [](const Tensor& t) { return prod(t, {}, false, DType::I64); }, DType::I64, {0});
  const auto head = [](const Tensor& t) { return slice(t, 0, 0, 2); };
  expect_both(wide, [&](const Tensor& t) { return sum(head(t), {}, false, DType::F16); }, DType::F16, {4096});
  expect_both(wide, [&](const Tensor& t) { return cumsum(head(t), 0, DType::F16); }, DType::F16,
              {2048, 4096});
  expect_both(wide, [&](const Tensor& t) { return mean(head(t), {}, false, DType::F16); }, DType::F16,
              {2048});
  const Tensor overflow = sum(slice(wide, 0, 2, 4), {}, false, DType::F16);
  EXPECT_TRUE(std::isnan(overflow.item<double>())) << str(overflow);  // inf - inf, as in PyTorch
  const Tensor complex_to_real = sum(full({2}, c128(1, 5), DType::C128), {}, false, DType::F64);
  EXPECT_EQ(complex_to_real.item<double>(), 2);
}

TEST(DtypeArgument, MeanNeedsAFloatingResultAndScansANumber) {
  const Tensor whole = tensor_of({2}, {1, 2}, DType::I64), x = f32({1, 2});
  expect_both(whole, [](const Tensor& t) { return mean(t, {}, false, DType::F64); }, DType::F64, {1.5});
  EXPECT_THROW(mean(whole), Error);
  EXPECT_THROW(mean(x, {}, false, DType::I64), Error);
  EXPECT_THROW(mean(x, {}, false, DType::Bool), Error);
  EXPECT_THROW(cumsum(x, 0, DType::Bool), Error);
  EXPECT_THROW(cumprod(x, 0, DType::Bool), Error);
}

/// The greatest |got - exact| / (u * sum |x|) over the prefixes of n copies of `value`.
double scan_error(int64_t lines, int64_t n, double value, DType dtype, double u) {
  const Tensor x = full({n, lines}, value, dtype);
  const Tensor y = lines == 1 ? reshape(cumsum(reshape(x, {n}), 0), {n, 1}) : cumsum(x, 0);
  const double each = full({1}, value, dtype).item<double>();
  double worst = 0;
  const auto values = to(y, DType::F64);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < lines; j += 7) {
      const f128 exact = f128(each) * (i + 1);
      const f128 got = values.data<double>()[i * lines + j];
      const f128 off = got > exact ? got - exact : exact - got;
      worst = std::max(worst, double(off / (u * exact)));
    }
  return worst;
}

TEST(Accumulation, ErrorsOfScansDoNotGrowWithTheLength) {
  for (const int64_t lines : {1, 16}) {  // along the memory and across it
    EXPECT_LE(scan_error(lines, 200'000 / lines, 0.1, DType::F64, 0x1p-53), 2) << lines;
    EXPECT_LE(scan_error(lines, 200'000 / lines, 0.1, DType::F32, 0x1p-24), 2) << lines;
  }
}

/// A million products in [0, 1): one sum of them in f32 is off by 0.0004 of itself, and
/// beyond 2^24 it stays where it is.
TEST(Accumulation, ErrorsOfProductsDoNotGrowWithTheInnerSize) {
  const int64_t n = 1'000'003;
  const Tensor a = rand({n}, scalar_tensor(3, DType::U64)), rows = expand(a, {3, n});
  const double want = sum(square(to(a, DType::F64))).item<double>();
  const OpTable* const before = &OpTable::current();
  add_alternatives();
  for (const char* kernel : {"matmul=built_in", "matmul=own"}) {
    choose_kernels("test", {kernel});
    const Tensor products[] = {dot(a, a), mv(rows, a), mm(rows, expand(unsqueeze(a, 1), {n, 2})),
                               real(dot(to(a, DType::C64), to(a, DType::C64)))};
    for (const Tensor& y : products)
      for (const double v : y.to_vector()) EXPECT_NEAR(v, want, 1e-5 * want) << kernel << " " << str(y);
  }
  OpTable::take_back(before);
  const Tensor ones = expand(full({1}, 1, DType::F32), {(int64_t{1} << 24) + 2});
  EXPECT_EQ(dot(ones, ones).item<double>(), 0x1p24 + 2);
}

/// Tiles of rows and columns, and columns shared out: parts of the inner size are the same in each.
void expect_bits_of_one_thread() {
  for (const DType d : {DType::F32, DType::F64, DType::F16, DType::C64})
    for (const Dims& sizes : {Dims{130, 3333, 150}, {20, 3333, 64}, {1, 50'000, 3}}) {
      const auto drawn = [&](int64_t rows, int64_t columns) {
        return to(randn({rows, columns}, scalar_tensor(rows, DType::U64)), d);
      };
      const Tensor a = drawn(sizes[0], sizes[1]), b = drawn(sizes[1], sizes[2]);
      const auto on = [&](int n) {
        const ScopedThreads scope(n);
        return mm(a, b);
      };
      const Tensor want = on(1);
      for (const int n : {2, 7}) EXPECT_EQ(verify::differs(on(n), want), "") << d << " " << str(sizes);
    }
}

TEST(Accumulation, LongProductsHaveTheBitsOfOneThread) {
  expect_bits_of_one_thread();
  const ScopedThresholds lowered(kLoweredThresholds);
  expect_bits_of_one_thread();
}

TEST(Accumulation, ScansKeepInfinitiesAndNaN) {
  const double inf = INFINITY;
  const Tensor x = tensor_of({5}, {1, inf, 2, -inf, 3}, DType::F64);
  const std::vector<double> y = cumsum(x, 0).to_vector();
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], inf);
  EXPECT_EQ(y[2], inf);
  EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
  EXPECT_EQ(str(cumsum(tensor_of({3}, {1.5e308, 1.5e308, -1.5e308}, DType::F64), 0)),
            "f64[3] [1.5e+308, inf, inf]");
}

/// alpha times src was rounded to the half dtype before it was added: 2 * 53120 is infinite in f16.
TEST(Accumulation, TermsOfHalvesTimesANumberRoundOnce) {
  const Tensor x = tensor_of({2}, {-65504, 1}, DType::F16), index = tensor_of({2}, {0, 1}, DType::I64),
               src = tensor_of({2}, {53120, 1 + 0x1p-10}, DType::F16);
  const std::vector<double> wanted = {2.0 * 53120 - 65504, 4 + 0x1p-8};
  EXPECT_EQ(index_add(x, 0, index, src, 2).to_vector()[0], wanted[0]);
  EXPECT_EQ(index_add(x, 0, index, src, 3).to_vector()[1], wanted[1]);
  const Tensor lanes_index = tensor_of({1, 2}, {0, 1}, DType::I64);
  const Function lane = [&](const Tensors& in) { return Tensors{index_add(x, 0, in[0], src, 2)}; };
  EXPECT_EQ(vmap(lane)(Tensors{lanes_index})[0].to_vector(), index_add(x, 0, index, src, 2).to_vector());
}

TEST(Accumulation, ManyAdditionsToOneElementRoundOnce) {
  for (const DType d : {DType::F16, DType::BF16, DType::F32}) {
    const int64_t n = 4096;
    const Tensor index = zeros({n}, DType::I64), src = full({n}, 0.25, d), x = zeros({1}, d);
    EXPECT_EQ(scatter_add(x, 0, index, src).item<double>(), 1024) << d;
    EXPECT_EQ(index_add(x, 0, index, src).item<double>(), 1024) << d;
  }
}
}  // namespace
