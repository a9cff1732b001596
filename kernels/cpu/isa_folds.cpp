// Contiguous runs folded to one value, and softmax of one row. Compiled once per LAMELLA_BACKEND.
#include <cmath>

#include "lamella/kernels/cpu/fold_lines.h"
#include "lamella/kernels/cpu/scratch.h"
#include "lamella/kernels/cpu/vector_math.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

// kWidth accumulators side by side, whatever the vectors' width: every instruction set adds in the same
// order.
template <int64_t kWidth, class F, class T> auto fold_side_by_side(const T* a, int64_t n) {
  decltype(F::first(*a)) acc[kWidth];
  for (int64_t j = 0; j < kWidth; ++j) acc[j] = F::first(a[j]);
  int64_t i = kWidth;
  for (; i + kWidth <= n; i += kWidth) {
    for (int64_t j = 0; j < kWidth; ++j) acc[j] = F::step(acc[j], a[i + j]);
  }
  for (; i < n; ++i) acc[i % kWidth] = F::step(acc[i % kWidth], a[i]);
  for (int64_t w = kWidth / 2; w > 0; w /= 2) {
    for (int64_t j = 0; j < w; ++j) acc[j] = F::merge(acc[j], acc[j + w]);
  }
  return acc[0];
}

// Few terms in a row even in short runs: many equal terms round the same way, half a roundoff a term.
template <class F, class T> auto fold_block(const T* a, int64_t n) {
  if (n >= kHere.fold_many) return fold_side_by_side<kHere.fold_many / 2, F>(a, n);
  if (n >= kHere.fold_some) return fold_side_by_side<kHere.fold_some / 2, F>(a, n);
  return fold_in_a_row<F>(a, n);
}

// Pairwise above blocks of 512 (16 terms an accumulator of the usual 32): the error grows with log n.
template <class F, class T> auto fold_pairwise(const T* a, int64_t n) -> decltype(F::first(*a)) {
  constexpr int64_t kBlock = kHere.fold_block;
  if (n <= kBlock) return fold_block<F>(a, n);
  int64_t half = kBlock;
  while (half * 2 < n) half *= 2;
  return F::merge(fold_pairwise<F>(a, half), fold_pairwise<F>(a + half, n - half));
}

struct SimdRun {
  template <class F, Order, class T> static auto fold(const T* a, int64_t n) {
    return fold_pairwise<F>(a, n);
  }
};

template <class T> void exp_of_difference(T* out, const T* in, T most, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] - most;
  const void* ins[] = {out};
  line_of<Exp, T>()(out, ins, n);
}

// The first of n numbers that is x, in blocks whose search is a reduction; n if none is (x is NaN).
template <class T> int64_t first_equal(const T* a, T x, int64_t n) {
  constexpr int64_t kBlock = kHere.search_block;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int found = 0;
    for (int64_t j = 0; j < kBlock; ++j) found |= a[i + j] == x;
    if (found) break;
  }
  while (i < n && a[i] != x) ++i;
  return i;
}

/// NOTE: [logarithm of softmax's sum] log sum exp(x - greatest) is log1p of the sum without one greatest
/// element. The sum with it is rounded near 1 where that element outweighs the rest; its result there, minus
/// that logarithm, would be right to a roundoff of 1 and not of itself.
template <class T> void softmax_row(void* out, const void* in, int64_t n, bool log) {
  constexpr int64_t kChunk = kHere.softmax_chunk;
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in);
  const T most = fold_pairwise<Of<Maximum>>(a, n);
  if (!log) {
    exp_of_difference(o, a, most, n);
    const T total = fold_pairwise<Of<Add>>(o, n);
    for (int64_t i = 0; i < n; ++i) o[i] = o[i] / total;
    return;
  }
  const int64_t greatest = first_equal(a, most, n);
  Scratch<T, kChunk> room;
  T* const chunk = room;
  T total = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    exp_of_difference(chunk, a + i, most, count);
    if (i <= greatest && greatest < i + count) chunk[greatest - i] = 0;
    total += fold_block<Of<Add>>(chunk, count);
  }
  const T log_total = std::log1p(total) + (most - most);  // NaN where the greatest is infinite
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = (a[i] - most) - log_total;
}

}  // namespace

std::span<const Folds> simd_folds() {
  static constexpr auto kFoldLines = folds_of_rows<SimdRun, float, double, int32_t, int64_t>();
  return kFoldLines;
}

SoftmaxRowFn find_softmax(DType dtype) {
  return dtype == DType::F32 ? softmax_row<float> : dtype == DType::F64 ? softmax_row<double> : nullptr;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
