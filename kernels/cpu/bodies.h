// The scalar texts of the real pointwise operators, as function objects. Part of the isa_*.cpp world:
// builtins, no std::.
#pragma once

#include <cstdint>

#include "lamella/core/thresholds.h"
#include "lamella/kernels/cpu/isa.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// Constants of this text: "tiny" is compiled with the lowered ones.
#if defined(LAMELLA_LOWERED)
inline constexpr Thresholds kHere = kLoweredThresholds;
#else
inline constexpr Thresholds kHere = kUsualThresholds;
#endif

template <class T> inline constexpr bool is_real_float =
    std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T> inline constexpr bool is_signed_int = std::is_integral_v<T>&& std::is_signed_v<T>;

// Integer arithmetic goes through unsigned, at least as wide as unsigned int: wrapping, and never a promotion
// to int.
template <class T> struct wrap_type { using type = T; };
template <class T>
requires(std::is_integral_v<T> && sizeof(T) < 4) struct wrap_type<T> {
  using type = uint32_t;
};
template <class T>
requires(std::is_integral_v<T> && sizeof(T) >= 4) struct wrap_type<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T> using wrap = typename wrap_type<T>::type;

#define LAMELLA_FLOAT_BUILTIN(name)                                         \
  static inline float name##_of(float x) { return __builtin_##name##f(x); } \
  static inline double name##_of(double x) { return __builtin_##name(x); }
LAMELLA_FLOAT_BUILTIN(exp)
LAMELLA_FLOAT_BUILTIN(log)
LAMELLA_FLOAT_BUILTIN(sin)
LAMELLA_FLOAT_BUILTIN(cos)
LAMELLA_FLOAT_BUILTIN(tanh)
LAMELLA_FLOAT_BUILTIN(sqrt)
LAMELLA_FLOAT_BUILTIN(fabs)
LAMELLA_FLOAT_BUILTIN(floor)
LAMELLA_FLOAT_BUILTIN(trunc)
#undef LAMELLA_FLOAT_BUILTIN
static inline float fmod_of(float x, float y) { return __builtin_fmodf(x, y); }
static inline double fmod_of(double x, double y) { return __builtin_fmod(x, y); }
static inline float pow_of(float x, float y) { return __builtin_powf(x, y); }
static inline double pow_of(double x, double y) { return __builtin_pow(x, y); }
static inline float copysign_of(float x, float y) { return __builtin_copysignf(x, y); }
static inline double copysign_of(double x, double y) { return __builtin_copysign(x, y); }

template <class T> struct Copy {
  T operator()(T x) const { return x; }
};
template <class T> struct Neg {
  T operator()(T x) const {
    if constexpr (is_real_float<T>) return -x;
    else return T(wrap<T>(0) - wrap<T>(x));
  }
};
template <class T> struct Exp {
  T operator()(T x) const { return exp_of(x); }
};
template <class T> struct Log {
  T operator()(T x) const { return log_of(x); }
};
template <class T> struct Sin {
  T operator()(T x) const { return sin_of(x); }
};
template <class T> struct Cos {
  T operator()(T x) const { return cos_of(x); }
};
template <class T> struct Tanh {
  T operator()(T x) const { return tanh_of(x); }
};
template <class T> struct Sqrt {
  T operator()(T x) const { return sqrt_of(x); }
};
template <class T> struct Abs {
  T operator()(T x) const {
    if constexpr (is_real_float<T>) return fabs_of(x);
    else if constexpr (is_signed_int<T>) return x < 0 ? T(wrap<T>(0) - wrap<T>(x)) : x;
    else return x;
  }
};
template <class T> struct Sign {
  T operator()(T x) const { return T(T(x > T(0)) - T(x < T(0))); }
};
template <class T> struct LogicalNot {
  bool operator()(T x) const { return x == T(0); }
};
template <class T> struct IsNan {
  bool operator()(T x) const { return x != x; }
};
template <class T> struct Reciprocal {
  T operator()(T x) const { return T(1) / x; }
};

template <class T> struct Add {
  T operator()(T a, T b) const { return T(wrap<T>(a) + wrap<T>(b)); }
};
template <class T> struct Sub {
  T operator()(T a, T b) const { return T(wrap<T>(a) - wrap<T>(b)); }
};
template <class T> struct Mul {
  T operator()(T a, T b) const { return T(wrap<T>(a) * wrap<T>(b)); }
};
template <class T> struct Div {
  T operator()(T a, T b) const { return a / b; }
};

// Python's floor division: the remainder has the divisor's sign, so that a == b * (a // b) + a % b up to
// rounding.
template <class T> struct DivFloor {
  T operator()(T a, T b) const {
    if constexpr (is_real_float<T>) {
      if (b == T(0)) return a / b;
      const T mod = fmod_of(a, b);
      T div = (a - mod) / b;
      if (mod != T(0) && (b < T(0)) != (mod < T(0))) div -= T(1);
      if (div == T(0)) return copysign_of(T(0), a / b);
      const T floored = floor_of(div);
      return div - floored > T(0.5) ? floored + T(1) : floored;
    } else if constexpr (is_signed_int<T>) {
      if (b == T(-1)) return T(wrap<T>(0) - wrap<T>(a));  // the smallest number / -1 would trap
      const T q = T(a / b);
      return a % b != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
    } else {
      return T(a / b);
    }
  }
};
template <class T> struct DivTrunc {
  T operator()(T a, T b) const {
    if constexpr (is_real_float<T>) return trunc_of(a / b);
    else if constexpr (is_signed_int<T>) return b == T(-1) ? T(wrap<T>(0) - wrap<T>(a)) : T(a / b);
    else return T(a / b);
  }
};
template <class T> struct Pow {
  T operator()(T a, T b) const {
    if constexpr (is_real_float<T>) {
      return pow_of(a, b);
    } else {
      if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
      wrap<T> result = 1, base = wrap<T>(a);
      for (auto e = std::make_unsigned_t<T>(b); e != 0; e >>= 1) {
        if (e & 1) result *= base;
        base *= base;
      }
      return T(result);
    }
  }
};
template <class T> struct Maximum {
  T operator()(T a, T b) const { return (a < b || b != b) ? b : a; }
};
template <class T> struct Minimum {
  T operator()(T a, T b) const { return (b < a || b != b) ? b : a; }
};

template <class T> struct Eq {
  bool operator()(T a, T b) const { return a == b; }
};
template <class T> struct Ne {
  bool operator()(T a, T b) const { return a != b; }
};
template <class T> struct Lt {
  bool operator()(T a, T b) const { return a < b; }
};
template <class T> struct Le {
  bool operator()(T a, T b) const { return a <= b; }
};
template <class T> struct Gt {
  bool operator()(T a, T b) const { return a > b; }
};
template <class T> struct Ge {
  bool operator()(T a, T b) const { return a >= b; }
};
template <class T> struct LogicalAnd {
  bool operator()(T a, T b) const { return (a != T(0)) & (b != T(0)); }
};
template <class T> struct LogicalOr {
  bool operator()(T a, T b) const { return (a != T(0)) | (b != T(0)); }
};

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
template <class T, template <class> class F> void unary_line(void* out, const void* const* ins, int64_t n) {
  using R = decltype(F<T>{}(T{}));
  R* o = static_cast<R*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  if (n < kShort) return short_run(o, n, [a](int64_t i) { return F<T>{}(a[i]); });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F<T>{}(a[i]);
}

template <class T, template <class> class F> void binary_line(void* out, const void* const* ins, int64_t n) {
  using R = decltype(F<T>{}(T{}, T{}));
  R* o = static_cast<R*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  const T* b = static_cast<const T*>(ins[1]);
  if (n < kShort) return short_run(o, n, [a, b](int64_t i) { return F<T>{}(a[i], b[i]); });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = F<T>{}(a[i], b[i]);
}

template <class T> void where_line(void* out, const void* const* ins, int64_t n) {
  T* o = static_cast<T*>(out);
  const uint8_t* c = static_cast<const uint8_t*>(ins[0]);
  const T* a = static_cast<const T*>(ins[1]);
  const T* b = static_cast<const T*>(ins[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = c[i] ? a[i] : b[i];
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
