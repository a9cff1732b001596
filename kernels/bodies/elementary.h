// Bodies of elementary functions: the library's, those of complex numbers one precision up.
#pragma once

#include <tuple>

#include "lamella/kernels/bodies/arithmetic.h"

namespace lamella::kernels::LAMELLA_BACKEND {

inline constexpr Extended kLog2 = Extended(0.693147180559945309417232121458176568L);

struct Exp {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::exp(wide(x))); }
};
struct Log {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::log(wide(x))); }
};
struct Sin {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::sin(wide(x))); }
};
struct Cos {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::cos(wide(x))); }
};
struct Tanh {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::tanh(wide(x))); }
};
struct Sqrt {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::sqrt(wide(x))); }
};
// Complex, near 0: e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y/2)^2 does not cancel.
struct Expm1 {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (!Complex<T>) {
      return library::expm1(x);
    } else {
      const auto z = wide(x);
      const double re = z.real(), im = z.imag(), half = library::sin(im / 2);
      if (!(library::fabs(re) <= 1 && library::fabs(im) <= 1)) return narrow<T>(library::exp(z) - 1.0);
      const double real = library::expm1(re) * library::cos(im) - 2 * half * half;
      return T(part<T>(real), part<T>(library::exp(re) * library::sin(im)));
    }
  }
};
// Complex: x^0 is 1 and 0^y is 0 for Re y > 0, where exp(y log x) would say NaN. In x87's 80 bits: exp(y log
// x) multiplies the error of log by the size of its argument.
struct Pow {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Floating<T>) {
      return library::pow(a, b);
    } else if constexpr (Complex<T>) {
      if (b == T(0)) return T(1);
      if (a == T(0) && b.real() > 0) return T(0);
      return narrow<T>(library::pow(wide<Extended>(a), wide<Extended>(b)));
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

// Complex, near 0: |1 + z|^2 - 1 = x (2 + x) + y^2 holds the digits that 1 + z would drop.
struct Log1p {
  template <class T> LAMELLA_FN T operator()(T x) const { return library::log1p(x); }
  template <Complex T> LAMELLA_FN T operator()(T x) const {
    const Extended re = x.real(), im = x.imag();
    const bool near = re >= -0.5L && re <= 1 && library::fabs(im) <= 1;  // 1 + re is exact further down
    if (!near) return narrow<T>(library::log(wide<Extended>(x) + Extended(1)));
    const Extended modulus = library::log1p(re * (2 + re) + im * im) / 2;
    return T(part<T>(modulus), part<T>(library::atan2(im, 1 + re)));
  }
};
struct Exp2 {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (!Complex<T>) return library::exp2(x);
    else return narrow<T>(library::exp(wide<Extended>(x) * kLog2));
  }
};
struct Log2 {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (!Complex<T>) return library::log2(x);
    else return narrow<T>(library::log(wide<Extended>(x)) / kLog2);
  }
};
struct Rsqrt {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (!Complex<T>) return T(1) / library::sqrt(x);
    else return narrow<T>(Div{}(library::complex<Extended>(1), library::sqrt(wide<Extended>(x))));
  }
};
struct Sinh {
  template <class T> LAMELLA_FN T operator()(T x) const {
    return narrow<T>(library::sinh(wide<Extended>(x)));
  }
};
struct Cosh {
  template <class T> LAMELLA_FN T operator()(T x) const {
    return narrow<T>(library::cosh(wide<Extended>(x)));
  }
};
struct Atan {
  template <class T> LAMELLA_FN T operator()(T x) const {
    return narrow<T>(library::atan(wide<Extended>(x)));
  }
};
struct Erf {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::erf(wide(x))); }
};
struct Erfc {
  template <class T> LAMELLA_FN T operator()(T x) const { return narrow<T>(library::erfc(wide(x))); }
};
// By e^-|x|, which overflows nowhere.
struct Sigmoid {
  template <class T> LAMELLA_FN T operator()(T x) const {
    const T e = library::exp(-library::fabs(x));
    return (x >= 0 ? T(1) : e) / (T(1) + e);
  }
  template <Complex T> LAMELLA_FN T operator()(T x) const {
    using W = library::complex<Extended>;
    const W z = wide<Extended>(x), e = library::exp(z.real() >= 0 ? -z : z);
    return narrow<T>(Div{}(z.real() >= 0 ? W(1) : e, W(1) + e));
  }
};
// By e^-2|x| likewise. Near 0 four roundings could lead above 1.
struct SechSquared {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (!Complex<T>) {
      const T e = library::exp(T(-2) * library::fabs(x)), d = T(1) + e;
      const T y = T(4) * e / (d * d);
      return y > T(1) ? T(1) : y;
    } else {
      using W = library::complex<Extended>;
      const W z = wide<Extended>(x), e = library::exp((z.real() >= 0 ? -z : z) * Extended(2)), d = W(1) + e;
      return narrow<T>(Div{}(e * Extended(4), d * d));
    }
  }
};
struct Atan2 {
  template <class T> LAMELLA_FN T operator()(T a, T b) const { return library::atan2(a, b); }
};
struct Hypot {
  template <class T> LAMELLA_FN T operator()(T a, T b) const { return library::hypot(a, b); }
};
struct Logaddexp {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if (a == b) return a + T(kLog2);  // infinities, too
    return (a < b ? b : a) + library::log1p(library::exp(-library::fabs(a - b)));
  }
};
struct Xlogy {
  template <class T> LAMELLA_FN T operator()(T x, T y) const {
    return x == T(0) && y == y ? T(0) : x * library::log(y);
  }
};
struct Asinh {
  template <class T> LAMELLA_FN T operator()(T x) const {
    return narrow<T>(library::asinh(wide<Extended>(x)));
  }
};
// clang-format off
inline constexpr auto kElementary = std::tuple{
    Row{"exp", Exp{}, Takes::Inexact, Gives::Same},
    Row{"expm1", Expm1{}, Takes::Inexact, Gives::Same},
    Row{"log", Log{}, Takes::Inexact, Gives::Same},
    Row{"sin", Sin{}, Takes::Inexact, Gives::Same},
    Row{"cos", Cos{}, Takes::Inexact, Gives::Same},
    Row{"tanh", Tanh{}, Takes::Inexact, Gives::Same},
    Row{"sqrt", Sqrt{}, Takes::Inexact, Gives::Same},
    Row{"pow", Pow{}, Takes::Numbers, Gives::Same},
    Row{"log1p", Log1p{}, Takes::Inexact, Gives::Same},
    Row{"exp2", Exp2{}, Takes::Inexact, Gives::Same},
    Row{"log2", Log2{}, Takes::Inexact, Gives::Same},
    Row{"rsqrt", Rsqrt{}, Takes::Inexact, Gives::Same},
    Row{"sinh", Sinh{}, Takes::Inexact, Gives::Same},
    Row{"cosh", Cosh{}, Takes::Inexact, Gives::Same},
    Row{"atan", Atan{}, Takes::Inexact, Gives::Same},
    Row{"erf", Erf{}, Takes::Floating, Gives::Same},
    Row{"erfc", Erfc{}, Takes::Floating, Gives::Same},
    Row{"sigmoid", Sigmoid{}, Takes::Inexact, Gives::Same},
    Row{"sech_squared", SechSquared{}, Takes::Inexact, Gives::Same},
    Row{"atan2", Atan2{}, Takes::Floating, Gives::Same},
    Row{"hypot", Hypot{}, Takes::Floating, Gives::Same},
    Row{"logaddexp", Logaddexp{}, Takes::Floating, Gives::Same},
    Row{"xlogy", Xlogy{}, Takes::Floating, Gives::Same},
    Row{"asinh", Asinh{}, Takes::Inexact, Gives::Same},
};
// clang-format on

}  // namespace lamella::kernels::LAMELLA_BACKEND
