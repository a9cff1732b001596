// Bodies that round to whole numbers, and what whole multiples leave over.
#pragma once

#include <tuple>

#include "lamella/kernels/bodies/body.h"

namespace lamella::kernels::LAMELLA_BACKEND {

struct Floor {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Floating<T>) return library::floor(x);
    else return x;
  }
};
struct Ceil {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Floating<T>) return library::ceil(x);
    else return x;
  }
};
struct Round {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Floating<T>) return library::rint(x);
    else return x;
  }
};
struct Trunc {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Floating<T>) return library::trunc(x);
    else return x;
  }
};
// Of the sign of x where it is 0, too.
struct Frac {
  template <class T> LAMELLA_FN T operator()(T x) const {
    return library::copysign(x - library::trunc(x), x);
  }
};
struct Fmod {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Floating<T>) return library::fmod(a, b);
    else if constexpr (SignedInteger<T>)
      return b == T(-1) ? T(0) : T(a % b);  // the smallest number % -1 would trap
    else return T(a % b);
  }
};
struct Remainder {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    const T left = Fmod{}(a, b);
    if constexpr (Floating<T> || SignedInteger<T>)
      return left != T(0) && (left < T(0)) != (b < T(0)) ? T(left + b) : left;
    else return left;
  }
};
// clang-format off
inline constexpr auto kRounding = std::tuple{
    Row{"floor", Floor{}, Takes::RealNumbers, Gives::Same},
    Row{"ceil", Ceil{}, Takes::RealNumbers, Gives::Same},
    Row{"round", Round{}, Takes::RealNumbers, Gives::Same},
    Row{"trunc", Trunc{}, Takes::RealNumbers, Gives::Same},
    Row{"frac", Frac{}, Takes::Floating, Gives::Same},
    Row{"fmod", Fmod{}, Takes::RealNumbers, Gives::Same, Also::ChecksDivisor},
    Row{"remainder", Remainder{}, Takes::RealNumbers, Gives::Same, Also::ChecksDivisor},
};
// clang-format on

}  // namespace lamella::kernels::LAMELLA_BACKEND
