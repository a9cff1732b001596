// A number without a tensor: the value of `alpha`, of `fill_`, of the 2 in `x * 2`.
#pragma once

#include <complex>
#include <concepts>
#include <limits>
#include <string>

#include "lamella/core/dtype.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Holds bool, i64, u64 (only what i64 does not hold), f64 or c128 and remembers which: its category takes
/// part in promotion, its width does not.
class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(DType::Bool), i_(v) {}
  template <std::integral T> Scalar(T v)
      : kind_(std::is_unsigned_v<T> && int64_t(v) < 0 ? DType::U64 : DType::I64), i_(int64_t(v)) {}
  Scalar(float v) : kind_(DType::F64), d_(v) {}
  Scalar(double v) : kind_(DType::F64), d_(v) {}
  Scalar(c64 v) : kind_(DType::C128), d_(v.real()), im_(v.imag()) {}
  Scalar(c128 v) : kind_(DType::C128), d_(v.real()), im_(v.imag()) {}

  DType kind() const { return kind_; }
  bool is_integral() const { return kind_ <= DType::I64; }
  /// Modulo 2^64, so that u64 values keep their bits; what is no integer as to<int64_t>().
  int64_t to_int() const { return is_integral() ? i_ : to<int64_t>(); }
  double to_double() const { return to<double>(); }
  c128 to_complex() const { return {to_double(), im_}; }

  /// The value converted to T, rounded once. Integers wrap, other numbers saturate in an integer T (NaN
  /// becomes 0), as kernels convert; the imaginary part is dropped when T is real.
  template <class T> T to() const {
    if constexpr (std::is_same_v<T, bool>) return is_integral() ? i_ != 0 : (d_ != 0 || im_ != 0);
    else if constexpr (std::is_integral_v<T>) return is_integral() ? T(i_) : saturated<T>();
    else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      return T(to<R>(), R(im_));
    } else return kind_ == DType::U64 ? T(uint64_t(i_)) : is_integral() ? T(i_) : T(d_);
  }
  /// Whether an element of this dtype may be made of the number, docs/decisions/0017: an integer dtype holds
  /// its range, and, if it is unsigned, the negatives of its whole numbers modulo 2^n; a floating one what is
  /// not beyond its largest number, NaN and infinities; a complex one two of those; bool anything. A real
  /// dtype holds no complex number.
  bool fits(DType dtype) const;
  /// What an element of this dtype keeps of the number: converted as by to<T>().
  Scalar stored(DType dtype) const;
  Scalar operator-() const;
  bool operator==(const Scalar& o) const {
    return kind_ == o.kind_ && (is_integral() ? i_ == o.i_ : d_ == o.d_ && im_ == o.im_);
  }
  std::string str() const;

 private:
  template <class T> T saturated() const {
    constexpr double kAbove = double(std::numeric_limits<T>::max() / 2 + 1) * 2;  // exact, as kLowest is
    constexpr double kLowest = double(std::numeric_limits<T>::lowest());
    if (d_ != d_) return 0;
    if (d_ >= kAbove) return std::numeric_limits<T>::max();
    return d_ <= kLowest ? std::numeric_limits<T>::lowest() : T(d_);
  }
  DType kind_;
  union {
    int64_t i_;
    double d_;
  };
  double im_ = 0;
};

}  // namespace lamella
LAMELLA_API_END
