// exp log sin cos tanh pow over contiguous runs: glibc's vector functions by their ABI names where they keep
// to the limits of NumPy's validation sets, scalar libm elsewhere (f64 exp, sin, cos: the vector forms err by
// up to 3 ULP, the limit is 1). Every lane, the tail's too, goes through the same function: a result does not
// depend on its place in a run.
#pragma once

#include "lamella/kernels/cpu/lines.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {

/// Whether lines of a body go through vector functions. They differ by the instruction set, in roundings too.
template <class B, class T> inline constexpr bool has_lanes = false;
template <class T> inline constexpr bool has_lanes<Log, T> = Floating<T>;
template <class T> inline constexpr bool has_lanes<Tanh, T> = Floating<T>;
template <class T> inline constexpr bool has_lanes<Pow, T> = Floating<T>;
template <> inline constexpr bool has_lanes<Exp, float> = true;
template <> inline constexpr bool has_lanes<Sin, float> = true;
template <> inline constexpr bool has_lanes<Cos, float> = true;

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

static inline auto lanes(Exp, auto x) { return exp_lanes(x); }
static inline auto lanes(Log, auto x) { return log_lanes(x); }
static inline auto lanes(Sin, auto x) { return sin_lanes(x); }
static inline auto lanes(Cos, auto x) { return cos_lanes(x); }
static inline auto lanes(Tanh, auto x) { return tanh_lanes(x); }
static inline auto lanes(Pow, auto x, auto y) { return pow_lanes(x, y); }

template <class B, class T> void lanes_of_one(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = sizeof(F32Reg) / sizeof(T);
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, lanes(B{}, load(a + i)));
  if (i == n) return;
  T tail[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) tail[j] = i + j < n ? a[i + j] : T(1);
  store(tail, lanes(B{}, load(tail)));
  for (int64_t j = 0; i + j < n; ++j) o[i + j] = tail[j];
}

template <class B, class T> void lanes_of_two(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = sizeof(F32Reg) / sizeof(T);
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  const T* b = static_cast<const T*>(ins[1]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, lanes(B{}, load(a + i), load(b + i)));
  if (i == n) return;
  T left[kLanes], right[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) {
    left[j] = i + j < n ? a[i + j] : T(1);
    right[j] = i + j < n ? b[i + j] : T(1);
  }
  store(left, lanes(B{}, load(left), load(right)));
  for (int64_t j = 0; i + j < n; ++j) o[i + j] = left[j];
}

template <class B, class T> constexpr LineFn line_of_lanes() {
  if constexpr (requires(T x) { B{}(x); }) return lanes_of_one<B, T>;
  else return lanes_of_two<B, T>;
}
#else
template <class B, class T> constexpr LineFn line_of_lanes() { return line_of_body<B, T>(); }
#endif

/// The one place that says which text a body has for T.
template <class B, class T> constexpr LineFn line_of() {
  if constexpr (has_lanes<B, T>) return line_of_lanes<B, T>();
  else return line_of_body<B, T>();
}
/// Null where the row does not take T, and where the lowered text takes the chosen instruction set's.
template <size_t kRow, class T> constexpr LineFn line_of_row() {
  using B = BodyOf<kRow>;
  if constexpr (!takes<T>(std::get<kRow>(kPointwise).takes)) return nullptr;
  else if constexpr (has_lanes<B, T> && kHere.lowered) return nullptr;
  else return line_of<B, T>();
}
template <size_t kRow, class... T> constexpr Lines lines_of_row() {
  Lines lines{};
  ((lines[size_t(dtype_of<T>)] = line_of_row<kRow, T>()), ...);
  return lines;
}
/// Of all rows, for these types.
template <class... T> constexpr std::array<Lines, kPointwiseRows> lines_of_rows() {
  return []<size_t... kRow>(std::index_sequence<kRow...>) {
    return std::array{lines_of_row<kRow, T...>()...};
  }
  (std::make_index_sequence<kPointwiseRows>{});
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
