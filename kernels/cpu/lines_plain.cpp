// Lines and folds of the dtypes without a SIMD text: bool, the other integers, complex, 16-byte moves.
// Compiled as scalar and as tiny.
#include "lamella/kernels/cpu/fold_lines.h"
#include "lamella/kernels/cpu/vector_math.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

// Eight sums side by side of at most four terms each, then pairwise: many equal terms round the same way, and
// a long row of them would drift by half a roundoff a term.
template <class F, class T> auto complex_fold(const T* a, int64_t n) -> decltype(F::first(*a)) {
  constexpr int64_t kWidth = kHere.complex_fold, kBlock = kHere.complex_block;
  if (n <= kWidth) return fold_in_a_row<F>(a, n);
  if (n <= kBlock) {
    decltype(F::first(*a)) acc[kWidth];
    for (int64_t j = 0; j < kWidth; ++j) acc[j] = F::first(a[j]);
    for (int64_t i = kWidth; i < n; ++i) acc[i % kWidth] = F::step(acc[i % kWidth], a[i]);
    for (int64_t w = 1; w < kWidth; w *= 2) {
      for (int64_t j = 0; j < kWidth; j += 2 * w) acc[j] = F::merge(acc[j], acc[j + w]);
    }
    return acc[0];
  }
  int64_t half = kBlock;
  while (half * 2 < n) half *= 2;
  return F::merge(complex_fold<F>(a, half), complex_fold<F>(a + half, n - half));
}

/// Integers and bool have no roundings to keep apart.
struct PlainRun {
  template <class F, Order kOrder, class T> static auto fold(const T* a, int64_t n, int64_t) {
    if constexpr (Complex<T> && kOrder == Order::Pairs) return complex_fold<F>(a, n);
    else return fold_in_a_row<F>(a, n);
  }
};

}  // namespace

std::span<const Lines> plain_lines() {
  static constexpr auto kLines = lines_of_rows<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t,
                                               std::complex<float>, std::complex<double>>();
  return kLines;
}

std::span<const Folds> plain_folds() {
  static constexpr auto kFoldLines =
      folds_of_rows<PlainRun, bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t,
                    std::complex<float>, std::complex<double>>();
  return kFoldLines;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
