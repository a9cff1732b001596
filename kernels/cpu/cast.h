// Moving elements between layouts and dtypes: the tile's way in and out.
#pragma once

#include <cmath>
#include <limits>

#include "lamella/kernels/cpu/isa.h"

namespace lamella::kernels {

/// n elements from `from` to `to`, each `step` bytes after the one before.
using CastFn = void (*)(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n);

/// The same for n0 x n1 elements, one step each way.
using CopyBlockFn = void (*)(char* to, int64_t to0, int64_t to1, const char* from, int64_t from0,
                             int64_t from1, int64_t n0, int64_t n1);

/// How one operand's elements reach another dtype: `line` for gapless runs on both sides, `strided` for any.
struct Mover {
  CastLineFn line;  ///< null when only `strided` exists
  CastFn strided;
  CopyBlockFn block;  ///< null when the dtypes differ
  int64_t from_size, to_size;
};

/// Between any two dtypes other than f128 and c256; equal ones copy bits.
Mover make_mover(DType from, DType to);

/// An n0 x n1 block moved; step0 and step1 are the byte strides of the two sides.
void move_block(const Mover& mover, char* to, int64_t to0, int64_t to1, const char* from, int64_t from0,
                int64_t from1, int64_t n0, int64_t n1);

/// A value of F as a T. Real to integer: toward zero, clamped to T's range, NaN becomes 0. To bool: whether
/// it differs from 0. Complex to real drops the imaginary part. Halves: see NOTE: [rounded once].
template <class T, class F> T convert_value(F x) {
  if constexpr (std::is_same_v<T, F>) return x;
  else if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    if constexpr (is_complex_type<F>) return T(R(x.real()), R(x.imag()));
    else return T(convert_value<R>(x), R(0));
  } else if constexpr (std::is_same_v<T, bool>) {
    if constexpr (is_half_type<F>) return float(x) != 0;
    else return x != F(0);
  } else if constexpr (is_complex_type<F>) return convert_value<T>(x.real());
  else if constexpr (is_half_type<F>) return convert_value<T>(float(x));
  else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<F>) {
    // The bounds are powers of two (or 0), so they are exact in F.
    constexpr F kAbove = F(std::numeric_limits<T>::max() / 2 + 1) * F(2);
    constexpr F kLowest = F(std::numeric_limits<T>::lowest());
    if (x != x) return T(0);
    if (x >= kAbove) return std::numeric_limits<T>::max();
    return x <= kLowest ? std::numeric_limits<T>::lowest() : T(x);
  } else return T(x);
}

}  // namespace lamella::kernels
