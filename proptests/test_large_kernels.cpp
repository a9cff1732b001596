// Ways of large operands: products whose right operand is packed, transposes that pass the caches.
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
}  // namespace
