// Vector registers as numbers: what elementary functions are written with. No intrinsics but for one look at
// a comparison, and no operation that instruction sets round differently (no fused multiply-add, no estimate).
#pragma once

#include "lamella/kernels/cpu/registers.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {

template <class T> using LanesOf = typename RegisterOf<T, kRegisterBytes>::type;
using F32Lanes = LanesOf<float>;
using F64Lanes = LanesOf<double>;
using I32Lanes = LanesOf<int32_t>;   // of the width of f32: comparisons are of this type
using U32Lanes = LanesOf<uint32_t>;  // bits of f32; may wrap
using I64Lanes = LanesOf<int64_t>;
using U64Lanes = LanesOf<uint64_t>;
template <class T> inline constexpr int64_t kLanesOf = kRegisterBytes / int64_t(sizeof(T));

/// Half of the lanes of an f32 register, which are as many as f64 has.
using HalfF32Lanes = typename RegisterOf<float, kRegisterBytes / 2>::type;
using HalfU32Lanes = typename RegisterOf<uint32_t, kRegisterBytes / 2>::type;

// Inlined everywhere: a call would pass registers by the rules of one instruction set.
#define LAMELLA_LANES [[gnu::always_inline]] static inline

LAMELLA_LANES F32Lanes load(const float* p) { return loaded<F32Lanes>(p); }
LAMELLA_LANES F64Lanes load(const double* p) { return loaded<F64Lanes>(p); }
LAMELLA_LANES void store(float* p, F32Lanes v) { stored(p, v); }
LAMELLA_LANES void store(double* p, F64Lanes v) { stored(p, v); }

/// All lanes x.
template <class V> LAMELLA_LANES V all_of(decltype(V{}[0] + 0) x) { return V{} + x; }

/// Whether a comparison holds in some lane.
template <class Mask> LAMELLA_LANES bool any(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(__m512i(mask)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(__m256(mask)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps(__m128(mask)) != 0;
#else
  const U64Lanes words = U64Lanes(mask);
  uint64_t some = 0;
  for (int64_t j = 0; j < kLanesOf<uint64_t>; ++j) some |= words[j];
  return some != 0;
#endif
}

/// Of a register the lanes k + kFirst.
template <int64_t kFirst, class Half, class V> LAMELLA_LANES Half half_of(V x) {
  return [x]<int... k>(std::integer_sequence<int, k...>) {
    return Half(__builtin_shufflevector(x, x, (int(kFirst) + k)...));
  }
  (std::make_integer_sequence<int, int(kLanesOf<double>)>{});
}
LAMELLA_LANES F64Lanes low_doubles(F32Lanes x) {
  return __builtin_convertvector(half_of<0, HalfF32Lanes>(x), F64Lanes);
}
LAMELLA_LANES F64Lanes high_doubles(F32Lanes x) {
  return __builtin_convertvector(half_of<kLanesOf<double>, HalfF32Lanes>(x), F64Lanes);
}
template <class V, class Half> LAMELLA_LANES V of_halves(Half low, Half high) {
  return [=]<int... k>(std::integer_sequence<int, k...>) {
    return V(__builtin_shufflevector(low, high, k...));
  }
  (std::make_integer_sequence<int, int(kLanesOf<float>)>{});
}
/// Both rounded to f32.
LAMELLA_LANES F32Lanes floats_of(F64Lanes low, F64Lanes high) {
  return of_halves<F32Lanes>(__builtin_convertvector(low, HalfF32Lanes),
                             __builtin_convertvector(high, HalfF32Lanes));
}
/// The lower 32 bits of each lane.
LAMELLA_LANES U32Lanes words_of(U64Lanes low, U64Lanes high) {
  return of_halves<U32Lanes>(__builtin_convertvector(low, HalfU32Lanes),
                             __builtin_convertvector(high, HalfU32Lanes));
}

/// c[kFirst] + x (c[kFirst + kStep] + x (c[kFirst + 2 kStep] + ...)).
template <size_t kFirst, size_t kStep, class V, class T, size_t kCount>
LAMELLA_LANES V every(V x, const T (&c)[kCount]) {
  constexpr size_t kTerms = (kCount - kFirst + kStep - 1) / kStep;
  V sum = V{} + c[kFirst + (kTerms - 1) * kStep];
  [&]<size_t... k>(std::index_sequence<k...>) {
    ((sum = sum * x + c[kFirst + (kTerms - 2 - k) * kStep]), ...);
  }
  (std::make_index_sequence<kTerms - 1>{});
  return sum;
}
/// c[0] + c[1] x + c[2] x^2 + ..., even and odd powers apart: each waits for half as many operations.
template <class V, class T, size_t kCount> LAMELLA_LANES V polynomial(V x, const T (&c)[kCount]) {
  const V square = x * x;
  return every<1, 2>(square, c) * x + every<0, 2>(square, c);
}

LAMELLA_LANES F32Lanes absolute(F32Lanes x) { return F32Lanes(U32Lanes(x) & 0x7FFFFFFFu); }
LAMELLA_LANES F64Lanes absolute(F64Lanes x) { return F64Lanes(U64Lanes(x) & 0x7FFFFFFFFFFFFFFFu); }
LAMELLA_LANES U32Lanes sign_of(F32Lanes x) { return U32Lanes(x) & 0x80000000u; }
LAMELLA_LANES U64Lanes sign_of(F64Lanes x) { return U64Lanes(x) & 0x8000000000000000u; }
/// The sign bit of x where it is set in `sign`, turned round.
LAMELLA_LANES F32Lanes turned(F32Lanes x, U32Lanes sign) { return F32Lanes(U32Lanes(x) ^ sign); }
LAMELLA_LANES F64Lanes turned(F64Lanes x, U64Lanes sign) { return F64Lanes(U64Lanes(x) ^ sign); }
/// A NaN stays one.
template <class V, class T> LAMELLA_LANES V at_most(V x, T high) { return x > high ? V{} + high : x; }
template <class V, class T> LAMELLA_LANES V clamped(V x, T low, T high) {
  return at_most(x < low ? V{} + low : x, high);
}
/// Without the lower 27 bits: products of two such numbers are exact.
LAMELLA_LANES F64Lanes shortened(F64Lanes x) { return F64Lanes(U64Lanes(x) & 0xFFFFFFFFF8000000u); }

/// The lanes of y where `rare` holds, by the function of one number.
template <class V, class M, class F, class... X>
[[gnu::always_inline]] static inline V one_by_one(V y, M rare, F f, X... x) {
  for (int64_t j = 0; j < kLanesOf<decltype(y[0] + 0)>; ++j)
    if (rare[j]) y[j] = f(x[j]...);
  return y;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
