// Matrix product of one f32 or f64 pair: 4 or 6 rows by 2 vectors of C in registers. Compiled once per
// LAMELLA_BACKEND. This file alone allows fused multiply-add.
#include <algorithm>
#include <cstring>

#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T, int kSize> struct Pack {
  typedef T type __attribute__((vector_size(kSize), aligned(sizeof(T)), may_alias));
};
template <class T> struct Pack<T, sizeof(T)> { using type = T; };

/// A right operand's rows as a tile reads them.
template <class T> struct Right {
  const T* data;
  int64_t row;
};
template <class T> Right<T> right_of(const GemmCall& g, int64_t col) {
  return {static_cast<const T*>(g.b) + col, g.b_row};
}

// kRows rows times kCols registers of kSize bytes, over all of k: each element is summed in order of p.
// kMore: to what C has.
template <class T, int kRows, int kCols, int kSize, bool kMore = false>
void tile(const GemmCall& g, const Right<T>& right_operand, int64_t row, int64_t col) {
  using V = typename Pack<T, kSize>::type;
  constexpr int64_t kLanes = kSize / sizeof(T);
  const T* a = static_cast<const T*>(g.a) + row * g.a_row;
  const T* b = right_operand.data;
  T* c = static_cast<T*>(g.c) + row * g.c_row + col;
  V acc[kRows][kCols] = {};
  if constexpr (kMore) {
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kCols; ++j) acc[i][j] = *reinterpret_cast<const V*>(c + i * g.c_row + j * kLanes);
    }
  }
  for (int64_t p = 0; p < g.k; ++p, a += g.a_col, b += right_operand.row) {
    V right[kCols];
#pragma GCC unroll 4
    for (int j = 0; j < kCols; ++j) right[j] = *reinterpret_cast<const V*>(b + j * kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const T left = a[i * g.a_row];
#pragma GCC unroll 4
      for (int j = 0; j < kCols; ++j) acc[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kCols; ++j) *reinterpret_cast<V*>(c + i * g.c_row + j * kLanes) = acc[i][j];
  }
}

template <class T, int kCols, int kSize> void column(const GemmCall& g, int64_t col) {
  const Right<T> right = right_of<T>(g, col);
  int64_t row = 0;
  for (; row + 4 <= g.n; row += 4) tile<T, 4, kCols, kSize>(g, right, row, col);
  for (; row < g.n; ++row) tile<T, 1, kCols, kSize>(g, right, row, col);
}

/// NOTE: [packed columns] Rows of a right operand that lie a kilobyte apart share a few sets of the first
/// cache, and each tile fetches them again. From some size on two registers' columns of it are copied to a
/// block of their own, kDepth rows at a time, for all rows of the left operand; sums go on in C between such
/// blocks. No addition is in another order: bits are those of the operand read in place.
constexpr int64_t kDepth = kHere.gemm_depth;
constexpr int kMany = int(kHere.gemm_tile);

template <class T, bool kMore> void packed_columns(const GemmCall& g, int64_t col) {
  constexpr int64_t kWidth = 2 * kBytes / sizeof(T);
  alignas(kBytes) T block[kDepth * kWidth];
  const Right<T> from = right_of<T>(g, col), right{block, kWidth};
  for (int64_t p = 0; p < g.k; ++p)
    std::memcpy(block + p * kWidth, from.data + p * from.row, kWidth * sizeof(T));
  int64_t row = 0;
  for (; row + kMany <= g.n; row += kMany) tile<T, kMany, 2, kBytes, kMore>(g, right, row, col);
  for (; row + 4 <= g.n; row += 4) tile<T, 4, 2, kBytes, kMore>(g, right, row, col);
  for (; row < g.n; ++row) tile<T, 1, 2, kBytes, kMore>(g, right, row, col);
}

template <class T> void packed(const GemmCall& g, int64_t col) {
  GemmCall part = g;
  for (int64_t first = 0; first < g.k; first += kDepth) {
    part.k = std::min(kDepth, g.k - first);
    part.a = static_cast<const T*>(g.a) + first * g.a_col;
    part.b = static_cast<const T*>(g.b) + first * g.b_row;
    first == 0 ? packed_columns<T, false>(part, col) : packed_columns<T, true>(part, col);
  }
}

// What full vectors leave over: halve the vector until it is one element.
template <class T, int kSize> void columns_left(const GemmCall& g, int64_t col) {
  constexpr int64_t kLanes = kSize / sizeof(T);
  if (col + kLanes <= g.m) {
    column<T, 1, kSize>(g, col);
    col += kLanes;
  }
  if constexpr (kSize > 2 * sizeof(T) && kSize > 16) columns_left<T, kSize / 2>(g, col);
  else
    for (; col < g.m; ++col) column<T, 1, sizeof(T)>(g, col);
}

template <class T> void gemm(const GemmCall& g) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  const bool packs =
      g.n >= kHere.gemm_packed_rows && g.n * g.m >= kHere.gemm_packed / std::max<int64_t>(g.k, 1);
  int64_t col = 0;
  for (; col + 2 * kLanes <= g.m; col += 2 * kLanes) packs ? packed<T>(g, col) : column<T, 2, kBytes>(g, col);
  columns_left<T, kBytes>(g, col);
}

}  // namespace

GemmFn find_gemm(DType dtype) {
  return dtype == DType::F32 ? gemm<float> : dtype == DType::F64 ? gemm<double> : nullptr;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
