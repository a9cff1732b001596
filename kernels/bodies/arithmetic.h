// Bodies of arithmetic: what one element of a result is, for every type that the body's row takes.
#pragma once

#include <tuple>

#include "lamella/core/rng.h"
#include "lamella/kernels/bodies/body.h"

namespace lamella::kernels::LAMELLA_BACKEND {

struct Copy {
  template <class T> LAMELLA_FN T operator()(T x) const { return x; }
};
struct Conj {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Complex<T>) return T(x.real(), -x.imag());
    else return x;
  }
};
struct Neg {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Floating<T>) return -x;
    else if constexpr (Complex<T>) return T(-x.real(), -x.imag());
    else return T(wrap<T>(0) - wrap<T>(x));
  }
};
struct Abs {
  template <class T> LAMELLA_FN part<T> operator()(T x) const {
    if constexpr (Floating<T>) return library::fabs(x);
    else if constexpr (Complex<T>) return part<T>(library::abs(wide(x)));
    else if constexpr (SignedInteger<T>) return x < 0 ? T(wrap<T>(0) - wrap<T>(x)) : x;
    else return x;
  }
};
struct Relu {
  template <class T> LAMELLA_FN T operator()(T x) const { return x > T(0) || x != x ? x : T(0); }
};
struct Sign {
  template <class T> LAMELLA_FN T operator()(T x) const {
    if constexpr (Complex<T>) {
      if (x == T(0)) return T(0);
      const Extended size = library::hypot(Extended(x.real()), Extended(x.imag()));
      return T(part<T>(x.real() / size), part<T>(x.imag() / size));
    } else {
      return T(T(x > T(0)) - T(x < T(0)));
    }
  }
};

struct Add {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Boolean<T>) return a || b;
    else if constexpr (Complex<T>) return T(a.real() + b.real(), a.imag() + b.imag());
    else return T(wrap<T>(a) + wrap<T>(b));
  }
};
struct Sub {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Complex<T>) return T(a.real() - b.real(), a.imag() - b.imag());
    else return T(wrap<T>(a) - wrap<T>(b));
  }
};
// Complex: plain, as PyTorch's: std::complex would look for infinities in every product.
struct Mul {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Boolean<T>) return a && b;
    else if constexpr (Complex<T>)
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else return T(wrap<T>(a) * wrap<T>(b));
  }
};
// Complex: Smith's quotient (Algorithm 116, CACM 5, 1962), one precision up: both sides divided by the larger
// part of b.
struct Div {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (!Complex<T>) return a / b;
    else {
      using W = Extended;
      const W re = a.real(), im = a.imag(), c = b.real(), d = b.imag();
      if (c == 0 && d == 0) return T(part<T>(re / library::fabs(c)), part<T>(im / library::fabs(d)));
      const bool by_real = library::fabs(c) >= library::fabs(d);
      const W ratio = by_real ? d / c : c / d, scale = by_real ? c + d * ratio : c * ratio + d;
      if (by_real) return T(part<T>((re + im * ratio) / scale), part<T>((im - re * ratio) / scale));
      return T(part<T>((re * ratio + im) / scale), part<T>((im * ratio - re) / scale));
    }
  }
};
struct Square {
  template <class T> LAMELLA_FN T operator()(T x) const { return Mul{}(x, x); }
};
struct Reciprocal {
  template <class T> LAMELLA_FN T operator()(T x) const { return Div{}(T(1), x); }
};

// Python's floor division: the remainder has the divisor's sign, so that a == b * (a // b) + a % b up to
// rounding.
struct DivFloor {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Floating<T>) {
      if (b == T(0)) return a / b;
      const T mod = library::fmod(a, b);
      T div = (a - mod) / b;
      if (mod != T(0) && (b < T(0)) != (mod < T(0))) div -= T(1);
      if (div == T(0)) return library::copysign(T(0), a / b);
      const T floored = library::floor(div);
      return div - floored > T(0.5) ? floored + T(1) : floored;
    } else if constexpr (SignedInteger<T>) {
      if (b == T(-1)) return T(wrap<T>(0) - wrap<T>(a));  // the smallest number / -1 would trap
      const T q = T(a / b);
      return a % b != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
    } else {
      return T(a / b);
    }
  }
};
struct DivTrunc {
  template <class T> LAMELLA_FN T operator()(T a, T b) const {
    if constexpr (Floating<T>) return library::trunc(a / b);
    else if constexpr (SignedInteger<T>) return b == T(-1) ? T(wrap<T>(0) - wrap<T>(a)) : T(a / b);
    else return T(a / b);
  }
};

// Neither is less where one is NaN: b is asked for, and a stays if it is the one.
struct Maximum {
  template <class T> LAMELLA_FN T operator()(T a, T b) const { return (a < b || b != b) ? b : a; }
};
struct Minimum {
  template <class T> LAMELLA_FN T operator()(T a, T b) const { return (b < a || b != b) ? b : a; }
};

/// Of the two parts.
struct MakeComplex {
  template <class R> LAMELLA_FN std::complex<R> operator()(R re, R im) const { return {re, im}; }
};
struct FoldIn {
  template <class T> LAMELLA_FN T operator()(T key, T data) const { return lamella::fold_in(key, data); }
};

inline constexpr auto kArithmetic = std::tuple{
    Row{"copy", Copy{}, Takes::All, Gives::Same, Also::MovesBits},
    Row{"conj", Conj{}, Takes::All, Gives::Same},
    Row{"neg", Neg{}, Takes::Numbers, Gives::Same},
    Row{"abs", Abs{}, Takes::Numbers, Gives::Parts},
    Row{"relu", Relu{}, Takes::RealNumbers, Gives::Same},
    Row{"sign", Sign{}, Takes::All, Gives::Same},
    Row{"square", Square{}, Takes::Numbers, Gives::Same},
    Row{"reciprocal", Reciprocal{}, Takes::Inexact, Gives::Same},
    Row{"add", Add{}, Takes::All, Gives::Same},
    Row{"sub", Sub{}, Takes::Numbers, Gives::Same},
    Row{"mul", Mul{}, Takes::All, Gives::Same},
    Row{"div", Div{}, Takes::Inexact, Gives::Same},
    Row{"div_floor", DivFloor{}, Takes::RealNumbers, Gives::Same, Also::ChecksDivisor},
    Row{"div_trunc", DivTrunc{}, Takes::RealNumbers, Gives::Same, Also::ChecksDivisor},
    Row{"maximum", Maximum{}, Takes::Real, Gives::Same},
    Row{"minimum", Minimum{}, Takes::Real, Gives::Same},
    Row{"make_complex", MakeComplex{}, Takes::Floating, Gives::Complex},
    Row{"fold_in", FoldIn{}, Takes::Words, Gives::Same},
};

}  // namespace lamella::kernels::LAMELLA_BACKEND
