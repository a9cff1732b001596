// Ways of large operands: products whose right operand is packed, transposes and rows that pass the caches.
#include <gtest/gtest.h>

#include "lamella/core/thresholds.h"
#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/ops/alternatives.h"
#include "lamella/verify/case/compare.h"

namespace {
using namespace lamella;

Tensor numbers(Dims sizes, DType d, int64_t seed) {
  return to(randn(sizes, full({}, Scalar(seed), DType::U64), DType::F64), d);
}

/// NOTE: [packed columns] promises the bits of the operand read in place, as products of few rows read it.
TEST(LargeProducts, PackedColumnsAreThoseReadInPlace) {
  const OpTable* const before = &OpTable::current();
  add_alternatives();
  choose_kernels("test", {"matmul=own"});
  struct Sizes {
    int64_t n, k, m;
  };
  for (const DType d : {DType::F32, DType::F64})
    for (const auto [n, k, m] : {Sizes{100, 300, 69}, {33, 1030, 64}, {96, 256, 96}, {107, 257, 129}}) {
      ASSERT_GE(n * k * m, kUsualThresholds.gemm_packed);
      const Tensor a = numbers({n, k}, d, 1), b = numbers({k, m}, d, 2), whole = matmul(a, b);
      for (int64_t row = 0; row < n; row += 8) {
        const int64_t end = std::min(n, row + 8);
        const Tensor part = contiguous(slice(whole, 0, row, end));
        EXPECT_EQ(verify::differs(matmul(slice(a, 0, row, end), b), part), "") << n << ", row " << row;
      }
      const Tensor across = transpose(contiguous(transpose(a, 0, 1)), 0, 1);  // its columns are gapless
      EXPECT_EQ(verify::differs(matmul(across, b), whole), "") << n;
    }
  OpTable::take_back(before);
}

/// Element by element, each a tensor of its own.
Tensor by_elements(const Tensor& x) {
  const Tensor flat = zeros({x.numel()}, x.dtype());
  Dims index(x.rank(), 0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    Tensor at = x;
    for (int k = 0; k < x.rank(); ++k) at = select(at, 0, index[k]);
    copy_(select(flat, 0, i), at);
    for (int k = x.rank() - 1; k >= 0 && ++index[k] == x.size(k); --k) index[k] = 0;
  }
  return reshape(flat, x.sizes());
}

/// The usual sizes of blocks, as if nothing fitted the caches: see NOTE: [across].
TEST(LargeTransposes, AreThoseOfTheirElements) {
  Thresholds t = kUsualThresholds;
  t.lowered = true;
  const ScopedThresholds all_pass(t);
  for (const DType d : {DType::F32, DType::F64, DType::I32, DType::C64, DType::F16})
    for (const Dims& sizes : {Dims{128, 64}, {64, 128}, {129, 65}, {127, 200}, {300, 191}, {2, 140, 70}}) {
      const Tensor x = numbers(sizes, d, 3), across = transpose(x, -1, -2), here = clone(across);
      const Tensor y = numbers(across.sizes(), d, 4);
      const Tensor sum = add(y, across), twice = add(across, across);
      EXPECT_EQ(verify::differs(here, by_elements(across)), "");
      EXPECT_EQ(verify::differs(contiguous(transpose(here, -1, -2)), x), "");
      EXPECT_EQ(verify::differs(sum, add(y, here)), "");
      EXPECT_EQ(verify::differs(twice, add(here, here)), "");
    }
}

/// By the instruction set that is used: 67 MB and more pass most last-level caches; a few rows stay inside.
/// Of an odd number of elements, so that rows begin anywhere in a line.
TEST(LargeRows, AreThoseOfAFewAtATime) {
  constexpr int64_t kSize = 2051, kRows = 4097;
  const Tensor x = rand({kRows, kSize}, full({}, Scalar(5), DType::U64)), y = add(x, 1);
  const Tensor row = numbers({kSize}, DType::F32, 6);
  const Tensor turned = remainder(mul(arange(0, kRows), 7), kRows);  // each row once
  const auto results = [&](const Tensor& a, const Tensor& b, const Tensor& at) {
    return std::vector<Tensor>{add(a, b),
                               neg(a),
                               clone(a),
                               where(lt(a, 0.5), a, b),
                               layer_norm(a, {kSize}, row, row),
                               layer_norm(a, {kSize}),
                               index_select(x, 0, at)};
  };
  const std::vector<Tensor> whole = results(x, y, turned);
  for (int64_t from = 0; from < kRows; from += 200) {
    const auto part = [&](const Tensor& t) { return slice(t, 0, from, std::min(kRows, from + 200)); };
    const std::vector<Tensor> few = results(part(x), part(y), part(turned));
    for (size_t i = 0; i < few.size(); ++i)
      ASSERT_EQ(verify::differs(part(whole[i]), few[i]), "") << "result " << i << ", row " << from;
  }
}
}  // namespace
