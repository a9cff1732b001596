// Vector registers as numbers: what elementary functions are written with. Intrinsics only where the compiler
// finds no short way to look at a comparison or to bound a number, and no operation that instruction sets
// round differently (no fused multiply-add, no estimate).
#pragma once

#include <bit>
#include <iterator>

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

/// Whether a comparison holds in every lane.
template <class Mask> LAMELLA_LANES bool every_lane(Mask mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(__m512i(mask)) == 0xFFFF;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(__m256(mask)) == 0xFF;
#elif defined(__SSE2__)
  return _mm_movemask_ps(__m128(mask)) == 0xF;
#else
  const U64Lanes words = U64Lanes(mask);
  uint64_t all = ~uint64_t(0);
  for (int64_t j = 0; j < kLanesOf<uint64_t>; ++j) all &= words[j];
  return all == ~uint64_t(0);
#endif
}
template <class Mask> LAMELLA_LANES bool any(Mask mask) { return !every_lane(~mask); }

/// Whether low <= x <= high is wrong in some lane: a NaN is outside.
template <class V, class T> LAMELLA_LANES bool any_outside(V x, T low, T high) {
#if defined(__AVX512F__)  // such comparisons are made without a register of their results
  const V least = V{} + low, most = V{} + high;
  if constexpr (sizeof(T) == sizeof(float))
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, least, _CMP_GE_OQ), x, most, _CMP_LE_OQ) != 0xFFFF;
  else return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, least, _CMP_GE_OQ), x, most, _CMP_LE_OQ) != 0xFF;
#else
  return !every_lane((x >= low) & (x <= high));
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

/// c[kFirst] + c[kFirst + 1] x + ... of kCount terms; of `powers` the k-th is x^(2^k).
template <size_t kFirst, size_t kCount, class V, class T> LAMELLA_LANES V terms(const V* powers, const T* c) {
  if constexpr (kCount == 1) {
    return V{} + c[kFirst];
  } else {
    constexpr size_t kHalf = std::bit_floor(kCount - 1);
    return terms<kFirst + kHalf, kCount - kHalf>(powers, c) * powers[std::countr_zero(kHalf)] +
           terms<kFirst, kHalf>(powers, c);
  }
}
/// c[0] + c[1] x + c[2] x^2 + ..., halves apart: the longest chain of operations grows with the logarithm of
/// their number. Of ten terms in f64 that is 7 to 10 % faster than even and odd terms apart.
template <class V, class T, size_t kCount> LAMELLA_LANES V polynomial(V x, const T (&c)[kCount]) {
  V powers[std::bit_width(kCount - 1)] = {x};
  for (size_t k = 1; k < std::size(powers); ++k) powers[k] = powers[k - 1] * powers[k - 1];
  return terms<0, kCount>(powers, c);
}

LAMELLA_LANES F32Lanes absolute(F32Lanes x) { return F32Lanes(U32Lanes(x) & 0x7FFFFFFFu); }
LAMELLA_LANES F64Lanes absolute(F64Lanes x) { return F64Lanes(U64Lanes(x) & 0x7FFFFFFFFFFFFFFFu); }
LAMELLA_LANES U32Lanes sign_of(F32Lanes x) { return U32Lanes(x) & 0x80000000u; }
LAMELLA_LANES U64Lanes sign_of(F64Lanes x) { return U64Lanes(x) & 0x8000000000000000u; }
/// The sign bit of x where it is set in `sign`, turned round.
LAMELLA_LANES F32Lanes turned(F32Lanes x, U32Lanes sign) { return F32Lanes(U32Lanes(x) ^ sign); }
LAMELLA_LANES F64Lanes turned(F64Lanes x, U64Lanes sign) { return F64Lanes(U64Lanes(x) ^ sign); }
/// A NaN stays one, as of the instructions: they give their second operand where one is NaN.
template <class V> LAMELLA_LANES V at_most(V x, decltype(V{}[0] + 0) high) {
  const V most = V{} + high;
#if defined(__AVX512F__)  // the forms with masks: g++ 12 says of the others that they read what was never
                          // written
  if constexpr (sizeof high == sizeof(float)) return _mm512_maskz_min_ps(0xFFFF, most, x);
  else return _mm512_maskz_min_pd(0xFF, most, x);
#elif defined(__AVX2__)
  if constexpr (sizeof high == sizeof(float)) return _mm256_min_ps(most, x);
  else return _mm256_min_pd(most, x);
#elif defined(__SSE2__)
  if constexpr (sizeof high == sizeof(float)) return _mm_min_ps(most, x);
  else return _mm_min_pd(most, x);
#else
  return most < x ? most : x;
#endif
}
template <class V> LAMELLA_LANES V clamped(V x, decltype(V{}[0] + 0) low, decltype(V{}[0] + 0) high) {
  return -at_most(-at_most(x, high), -low);
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
