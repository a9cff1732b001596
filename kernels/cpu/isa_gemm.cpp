// Matrix product of one f32 or f64 pair: 4 rows by 2 vectors of C in registers. Compiled once per
// LAMELLA_BACKEND. This file alone allows fused multiply-add.
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

// Rows r0.. (kRows of them) times kCols registers of kSize bytes, over all of k: each element is summed in
// order of p.
template <class T, int kRows, int kCols, int kSize> void tile(const GemmCall& g, int64_t row, int64_t col) {
  using V = typename Pack<T, kSize>::type;
  constexpr int64_t kLanes = kSize / sizeof(T);
  const T* a = static_cast<const T*>(g.a) + row * g.a_row;
  const T* b = static_cast<const T*>(g.b) + col;
  T* c = static_cast<T*>(g.c) + row * g.c_row + col;
  V acc[kRows][kCols] = {};
  for (int64_t p = 0; p < g.k; ++p, a += g.a_col, b += g.b_row) {
    V right[kCols];
#pragma GCC unroll 4
    for (int j = 0; j < kCols; ++j) right[j] = *reinterpret_cast<const V*>(b + j * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const T left = a[i * g.a_row];
#pragma GCC unroll 4
      for (int j = 0; j < kCols; ++j) acc[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kCols; ++j) *reinterpret_cast<V*>(c + i * g.c_row + j * kLanes) = acc[i][j];
  }
}

template <class T, int kCols, int kSize> void column(const GemmCall& g, int64_t col) {
  int64_t row = 0;
  for (; row + 4 <= g.n; row += 4) tile<T, 4, kCols, kSize>(g, row, col);
  for (; row < g.n; ++row) tile<T, 1, kCols, kSize>(g, row, col);
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
  int64_t col = 0;
  for (; col + 2 * kLanes <= g.m; col += 2 * kLanes) column<T, 2, kBytes>(g, col);
  columns_left<T, kBytes>(g, col);
}

}  // namespace

GemmFn find_gemm(DType dtype) {
  return dtype == DType::F32 ? gemm<float> : dtype == DType::F64 ? gemm<double> : nullptr;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
