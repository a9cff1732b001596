// What bodies are written with: types, wrapping integers, the library's elementary functions. Bodies are one
// text for g++, clang and nvcc: no builtins, no pointers, no inline assembly.
#pragma once

#include <type_traits>

#if defined(__CUDACC__)
#include <cuda/std/complex>
#define LAMELLA_FN __host__ __device__
#else
#include <cmath>
#define LAMELLA_FN
#endif
#include <complex>

#include "lamella/kernels/bodies/row.h"

namespace lamella::kernels::LAMELLA_BACKEND {

#if defined(__CUDACC__)
namespace library = ::cuda::std;
using Extended = double;  // a device has nothing wider
#else
namespace library = ::std;
using Extended = long double;
#endif

template <class T> inline constexpr bool is_complex_number = false;
template <class R> inline constexpr bool is_complex_number<std::complex<R>> = true;
template <class T>
concept Complex = is_complex_number<T>;
template <class T>
concept Boolean = std::is_same_v<T, bool>;
template <class T>
concept Integer = std::is_integral_v<T> && !Boolean<T>;
template <class T>
concept SignedInteger = Integer<T> && std::is_signed_v<T>;
template <class T>
concept Floating = std::is_floating_point_v<T>;

template <class T> constexpr bool takes(Takes t) {
  switch (t) {
    case Takes::All: return true;
    case Takes::Numbers: return !Boolean<T>;
    case Takes::Real: return !Complex<T>;
    case Takes::RealNumbers: return !Boolean<T> && !Complex<T>;
    case Takes::Inexact: return Floating<T> || Complex<T>;
    case Takes::Floating: return Floating<T>;
    case Takes::Words: return std::is_same_v<T, uint64_t>;
    case Takes::Bits: break;
  }
  return std::is_same_v<T, uint8_t> || std::is_same_v<T, uint16_t> || std::is_same_v<T, float> ||
         std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
}

// Integer arithmetic goes through unsigned, at least as wide as unsigned int: wrapping, and never a promotion
// to int. Other types are their own.
template <class T> struct wrap_type { using type = T; };
template <Integer T>
requires(sizeof(T) < 4) struct wrap_type<T> {
  using type = uint32_t;
};
template <Integer T>
requires(sizeof(T) >= 4) struct wrap_type<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T> using wrap = typename wrap_type<T>::type;

template <class T> struct part_type { using type = T; };
template <class R> struct part_type<std::complex<R>> { using type = R; };
/// Of a complex type that of its parts.
template <class T> using part = typename part_type<T>::type;

/// As the library's functions take it: complex numbers with parts of W, so that what is rounded to c64 has
/// been computed in c128.
template <class W = double, class T> LAMELLA_FN auto wide(T x) {
  if constexpr (Complex<T>) return library::complex<W>(x.real(), x.imag());
  else return x;
}
/// The way back, rounded once.
template <class T, class W> LAMELLA_FN T narrow(W x) {
  if constexpr (Complex<T>) return T(part<T>(x.real()), part<T>(x.imag()));
  else return x;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
