// exp log sin cos tanh pow over contiguous runs: glibc's vector functions by their ABI names where they keep
// to the limits of NumPy's validation sets, scalar libm elsewhere (f64 exp, sin, cos: the vector forms err by
// up to 3 ULP, the limit is 1). Every lane, the tail's too, goes through the same function: a result does not
// depend on its place in a run.
#pragma once

#include "lamella/kernels/cpu/bodies.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {

#if defined(__AVX2__)
#if defined(__AVX512F__)
using F32Reg = __m512;
using F64Reg = __m512d;
#define LAMELLA_MATH_F32 "_ZGVeN16"
#define LAMELLA_MATH_F64 "_ZGVeN8"
static inline F32Reg load(const float* p) { return _mm512_loadu_ps(p); }
static inline F64Reg load(const double* p) { return _mm512_loadu_pd(p); }
static inline void store(float* p, F32Reg v) { _mm512_storeu_ps(p, v); }
static inline void store(double* p, F64Reg v) { _mm512_storeu_pd(p, v); }
#else
using F32Reg = __m256;
using F64Reg = __m256d;
#define LAMELLA_MATH_F32 "_ZGVdN8"
#define LAMELLA_MATH_F64 "_ZGVdN4"
static inline F32Reg load(const float* p) { return _mm256_loadu_ps(p); }
static inline F64Reg load(const double* p) { return _mm256_loadu_pd(p); }
static inline void store(float* p, F32Reg v) { _mm256_storeu_ps(p, v); }
static inline void store(double* p, F64Reg v) { _mm256_storeu_pd(p, v); }
#endif

F32Reg exp_lanes(F32Reg) asm(LAMELLA_MATH_F32 "v_expf");
F32Reg log_lanes(F32Reg) asm(LAMELLA_MATH_F32 "v_logf");
F64Reg log_lanes(F64Reg) asm(LAMELLA_MATH_F64 "v_log");
F32Reg sin_lanes(F32Reg) asm(LAMELLA_MATH_F32 "v_sinf");
F32Reg cos_lanes(F32Reg) asm(LAMELLA_MATH_F32 "v_cosf");
F32Reg tanh_lanes(F32Reg) asm(LAMELLA_MATH_F32 "v_tanhf");
F64Reg tanh_lanes(F64Reg) asm(LAMELLA_MATH_F64 "v_tanh");
F32Reg pow_lanes(F32Reg, F32Reg) asm(LAMELLA_MATH_F32 "vv_powf");
F64Reg pow_lanes(F64Reg, F64Reg) asm(LAMELLA_MATH_F64 "vv_pow");
#undef LAMELLA_MATH_F32
#undef LAMELLA_MATH_F64

template <class T> struct VectorExp {
  static auto lanes(auto x) { return exp_lanes(x); }
};
template <class T> struct VectorLog {
  static auto lanes(auto x) { return log_lanes(x); }
};
template <class T> struct VectorSin {
  static auto lanes(auto x) { return sin_lanes(x); }
};
template <class T> struct VectorCos {
  static auto lanes(auto x) { return cos_lanes(x); }
};
template <class T> struct VectorTanh {
  static auto lanes(auto x) { return tanh_lanes(x); }
};

template <class T, template <class> class F> void math_line(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = sizeof(F32Reg) / sizeof(T);
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, F<T>::lanes(load(a + i)));
  if (i == n) return;
  T tail[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) tail[j] = i + j < n ? a[i + j] : T(1);
  store(tail, F<T>::lanes(load(tail)));
  for (int64_t j = 0; i + j < n; ++j) o[i + j] = tail[j];
}

template <class T> void pow_line(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = sizeof(F32Reg) / sizeof(T);
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  const T* b = static_cast<const T*>(ins[1]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, pow_lanes(load(a + i), load(b + i)));
  if (i == n) return;
  T base[kLanes], exponent[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) {
    base[j] = i + j < n ? a[i + j] : T(1);
    exponent[j] = i + j < n ? b[i + j] : T(1);
  }
  store(base, pow_lanes(load(base), load(exponent)));
  for (int64_t j = 0; i + j < n; ++j) o[i + j] = base[j];
}
#else
template <class T> using VectorExp = Exp<T>;
template <class T> using VectorLog = Log<T>;
template <class T> using VectorSin = Sin<T>;
template <class T> using VectorCos = Cos<T>;
template <class T> using VectorTanh = Tanh<T>;
template <class T, template <class> class F> void math_line(void* out, const void* const* ins, int64_t n) {
  unary_line<T, F>(out, ins, n);
}
template <class T> void pow_line(void* out, const void* const* ins, int64_t n) {
  binary_line<T, Pow>(out, ins, n);
}
#endif

template <class T> LineFn exp_line() {
  if constexpr (sizeof(T) == 4) return math_line<T, VectorExp>;
  else return unary_line<T, Exp>;
}
template <class T> LineFn sin_line() {
  if constexpr (sizeof(T) == 4) return math_line<T, VectorSin>;
  else return unary_line<T, Sin>;
}
template <class T> LineFn cos_line() {
  if constexpr (sizeof(T) == 4) return math_line<T, VectorCos>;
  else return unary_line<T, Cos>;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
