// Loops over contiguous elements, one body each.
#pragma once

#include "lamella/core/thresholds.h"
#include "lamella/kernels/bodies/all.h"
#include "lamella/kernels/cpu/isa.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// Constants of this text: "tiny" is compiled with the lowered ones.
#if defined(LAMELLA_LOWERED)
inline constexpr Thresholds kHere = kLoweredThresholds;
#else
inline constexpr Thresholds kHere = kUsualThresholds;
#endif

// Short runs of small tensors: four at a time, without the entry cost of the vector loop.
inline constexpr int64_t kShort = kHere.short_run;

template <class R, class F> [[gnu::always_inline]] static inline void short_run(R* o, int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const R r0 = f(i), r1 = f(i + 1), r2 = f(i + 2), r3 = f(i + 3);
    o[i] = r0, o[i + 1] = r1, o[i + 2] = r2, o[i + 3] = r3;
    asm volatile("");  // keeps the compiler from making a vector loop of this one
  }
  for (; i < n; ++i) {
    o[i] = f(i);
    asm volatile("");
  }
}

// ivdep: an input may be the output itself, element for element; partial overlap never gets here.
template <class F, class A> void line_of_one(void* out, const void* const* ins, int64_t n) {
  using R = decltype(F{}(A{}));
  R* o = static_cast<R*>(out);
  const A* a = static_cast<const A*>(ins[0]);
  if (n < kShort) return short_run(o, n, [a](int64_t i) { return F{}(a[i]); });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(a[i]);
}

template <class F, class A, class B = A> void line_of_two(void* out, const void* const* ins, int64_t n) {
  using R = decltype(F{}(A{}, B{}));
  R* o = static_cast<R*>(out);
  const A* a = static_cast<const A*>(ins[0]);
  const B* b = static_cast<const B*>(ins[1]);
  if (n < kShort) return short_run(o, n, [a, b](int64_t i) { return F{}(a[i], b[i]); });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(a[i], b[i]);
}

/// The first operand is a condition.
template <class F, class T> void line_of_three(void* out, const void* const* ins, int64_t n) {
  T* o = static_cast<T*>(out);
  const uint8_t* c = static_cast<const uint8_t*>(ins[0]);
  const T* a = static_cast<const T*>(ins[1]);
  const T* b = static_cast<const T*>(ins[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(c[i], a[i], b[i]);
}

template <class B, class T> constexpr LineFn line_of_body() {
  if constexpr (requires(T x) { B{}(x); }) return line_of_one<B, T>;
  else if constexpr (requires(T x) { B{}(x, x); }) return line_of_two<B, T>;
  else return line_of_three<B, T>;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
