// Bodies of elementary functions: the library's, those of complex numbers one precision up.
#pragma once

#include <tuple>

#include "lamella/kernels/bodies/body.h"

namespace lamella::kernels::LAMELLA_BACKEND {

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

// clang-format off
inline constexpr auto kElementary = std::tuple{
    Row{"exp", Exp{}, Takes::Inexact, Gives::Same},
    Row{"log", Log{}, Takes::Inexact, Gives::Same},
    Row{"sin", Sin{}, Takes::Inexact, Gives::Same},
    Row{"cos", Cos{}, Takes::Inexact, Gives::Same},
    Row{"tanh", Tanh{}, Takes::Inexact, Gives::Same},
    Row{"sqrt", Sqrt{}, Takes::Inexact, Gives::Same},
    Row{"pow", Pow{}, Takes::Numbers, Gives::Same},
};
// clang-format on

}  // namespace lamella::kernels::LAMELLA_BACKEND
