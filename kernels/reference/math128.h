// Elementary functions at all precisions of the oracle: libm up to c128; for f128 our exp and tanh
// (elementary128.h), libquadmath for the others and for c256.
#pragma once

#include <cmath>
#include <complex>
#include <quadmath.h>

#include "lamella/core/dtype.h"
#include "lamella/kernels/reference/elementary128.h"

namespace lamella::kernels::reference::math {

// <complex> has generic templates that reach for functions of f128 that do not exist; the overloads below
// win over them.
inline __complex128 to_quad(const c256& z) {
  __complex128 q;
  __real__ q = z.real();
  __imag__ q = z.imag();
  return q;
}
inline c256 from_quad(__complex128 q) { return {__real__ q, __imag__ q}; }

using std::asinh, std::atan, std::atan2, std::cosh, std::erf, std::erfc, std::hypot, std::sinh;
using std::exp, std::log, std::log1p, std::sin, std::cos, std::tanh, std::sqrt, std::pow;
inline f128 asinh(f128 x) { return asinhq(x); }
inline f128 atan(f128 x) { return atanq(x); }
inline f128 atan2(f128 y, f128 x) { return atan2q(y, x); }
inline f128 cosh(f128 x) { return coshq(x); }
inline f128 erf(f128 x) { return erfq(x); }
inline f128 erfc(f128 x) { return erfcq(x); }
inline f128 hypot(f128 x, f128 y) { return hypotq(x, y); }
inline f128 sinh(f128 x) { return sinhq(x); }
inline f128 exp(f128 x) { return exp128(x); }
inline f128 log(f128 x) { return logq(x); }
inline f128 log1p(f128 x) { return log1pq(x); }
inline f128 sin(f128 x) { return sinq(x); }
inline f128 cos(f128 x) { return cosq(x); }
inline f128 tanh(f128 x) { return tanh128(x); }
inline f128 sqrt(f128 x) { return sqrtq(x); }
inline f128 pow(f128 x, f128 y) { return powq(x, y); }
inline c256 exp(const c256& z) { return from_quad(cexpq(to_quad(z))); }
inline c256 log(const c256& z) { return from_quad(clogq(to_quad(z))); }
inline c256 sin(const c256& z) { return from_quad(csinq(to_quad(z))); }
inline c256 cos(const c256& z) { return from_quad(ccosq(to_quad(z))); }
inline c256 tanh(const c256& z) { return from_quad(ctanhq(to_quad(z))); }
inline c256 sqrt(const c256& z) { return from_quad(csqrtq(to_quad(z))); }
inline c256 asinh(const c256& z) { return from_quad(casinhq(to_quad(z))); }
inline c256 atan(const c256& z) { return from_quad(catanq(to_quad(z))); }
inline c256 cosh(const c256& z) { return from_quad(ccoshq(to_quad(z))); }
inline c256 sinh(const c256& z) { return from_quad(csinhq(to_quad(z))); }
inline c256 pow(const c256& x, const c256& y) { return from_quad(cpowq(to_quad(x), to_quad(y))); }

/// log 2, and functions to base 2: of complex numbers by those to base e.
inline const f128 kLog2 = logq(2);
template <class W> W exp2(W x) {
  if constexpr (std::is_same_v<W, f128>) return exp128(x * kLog2);
  else if constexpr (std::is_floating_point_v<W>) return std::exp2(x);
  else return exp(x * typename W::value_type(kLog2));
}
template <class W> W log2(W x) {
  if constexpr (std::is_same_v<W, f128>) return logq(x) / kLog2;
  else if constexpr (std::is_floating_point_v<W>) return std::log2(x);
  else return log(x) / typename W::value_type(kLog2);
}

using std::ceil, std::floor, std::rint, std::trunc, std::fmod, std::copysign;
inline f128 ceil(f128 x) { return ceilq(x); }
inline f128 rint(f128 x) { return rintq(x); }
inline f128 floor(f128 x) { return floorq(x); }
inline f128 trunc(f128 x) { return truncq(x); }
inline f128 fmod(f128 x, f128 y) { return fmodq(x, y); }
inline f128 copysign(f128 x, f128 y) { return copysignq(x, y); }

/// |x|; for complex x a real number that overflows only when the modulus does.
inline float magnitude(float x) { return std::fabs(x); }
inline double magnitude(double x) { return std::fabs(x); }
inline f128 magnitude(f128 x) { return fabsq(x); }
inline float magnitude(const c64& z) { return float(std::abs(c128(z))); }
inline double magnitude(const c128& z) { return double(hypotq(z.real(), z.imag())); }
inline f128 magnitude(const c256& z) { return hypotq(z.real(), z.imag()); }

}  // namespace lamella::kernels::reference::math
