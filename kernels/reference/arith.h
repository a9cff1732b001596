// Arithmetic of the oracle on working types: wrapping integers, bool as or/and, complex by its definition.
#pragma once

#include "lamella/kernels/reference/accessor.h"
#include "lamella/kernels/reference/math128.h"

namespace lamella::kernels::reference {

/// The type an oracle accumulates in: one precision up for floating and complex, where there is one.
template <class W> struct wider { using type = W; };
template <> struct wider<float> { using type = double; };
template <> struct wider<double> { using type = f128; };
template <class R> struct wider<std::complex<R>> { using type = std::complex<typename wider<R>::type>; };
template <class W> using wider_t = typename wider<W>::type;

/// Between a working type and its wider one.
template <class To, class From> To cast(const From& x) {
  if constexpr (Complex<To>) {
    using R = typename To::value_type;
    return To(R(x.real()), R(x.imag()));
  } else {
    return To(x);
  }
}

template <class W> W plus(const W& a, const W& b) {
  if constexpr (Bool<W>) return a || b;
  else if constexpr (Integer<W>) return W(uint64_t(a) + uint64_t(b));
  else return a + b;
}

template <class W> W minus(const W& a, const W& b) {
  if constexpr (Integer<W>) return W(uint64_t(a) - uint64_t(b));
  else return a - b;
}

template <class W> W times(const W& a, const W& b) {
  if constexpr (Bool<W>) return a && b;
  else if constexpr (Integer<W>) return W(uint64_t(a) * uint64_t(b));
  else if constexpr (Complex<W>) {
    return W(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

/// a / b. Complex: R. L. Smith, Algorithm 116, CACM 5 (1962): scaled by the larger part of b, so that
/// nothing overflows early.
template <class W> W divide(const W& a, const W& b) {
  if constexpr (Complex<W>) {
    const auto c = b.real(), d = b.imag();
    if (c == 0 && d == 0) return W(a.real() / math::magnitude(c), a.imag() / math::magnitude(d));
    if (math::magnitude(c) >= math::magnitude(d)) {
      const auto ratio = d / c, scale = c + d * ratio;
      return W((a.real() + a.imag() * ratio) / scale, (a.imag() - a.real() * ratio) / scale);
    }
    const auto ratio = c / d, scale = c * ratio + d;
    return W((a.real() * ratio + a.imag()) / scale, (a.imag() * ratio - a.real()) / scale);
  } else {
    return a / b;
  }
}

/// f evaluated one precision up and rounded once.
template <class F, class W> W rounded_once(F f, const W& x) { return cast<W>(f(cast<wider_t<W>>(x))); }
template <class F, class W> W rounded_once(F f, const W& x, const W& y) {
  return cast<W>(f(cast<wider_t<W>>(x), cast<wider_t<W>>(y)));
}

template <class W> W conjugate(const W& x) {
  if constexpr (Complex<W>) return W(x.real(), -x.imag());
  else return x;
}

template <class W> auto real_part(const W& x) {
  if constexpr (Complex<W>) return x.real();
  else return x;
}

template <class W> bool is_nan(const W& x) { return x != x; }

/// The order of sort, argmax and amax: NaN is greater than every number and equal to itself.
template <class W> bool less(const W& a, const W& b) { return is_nan(b) ? !is_nan(a) : a < b; }

}  // namespace lamella::kernels::reference
