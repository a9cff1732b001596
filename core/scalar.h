// A number without a tensor: the value of `alpha`, of `fill_`, of the 2 in `x * 2`.
#pragma once

#include <complex>
#include <concepts>
#include <string>

#include "lamella/core/dtype.h"

namespace lamella {

/// Holds bool, i64, f64 or c128 and remembers which: its category takes part in promotion, its width does
/// not.
class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(DType::Bool), i_(v) {}
  template <std::integral T> Scalar(T v) : kind_(DType::I64), i_(int64_t(v)) {}
  Scalar(float v) : kind_(DType::F64), d_(v) {}
  Scalar(double v) : kind_(DType::F64), d_(v) {}
  Scalar(c64 v) : kind_(DType::C128), d_(v.real()), im_(v.imag()) {}
  Scalar(c128 v) : kind_(DType::C128), d_(v.real()), im_(v.imag()) {}

  DType kind() const { return kind_; }
  bool is_integral() const { return kind_ == DType::I64 || kind_ == DType::Bool; }
  int64_t to_int() const { return is_integral() ? i_ : int64_t(d_); }
  double to_double() const { return is_integral() ? double(i_) : d_; }
  c128 to_complex() const { return {to_double(), im_}; }

  /// The value converted to T as C++ would; the imaginary part is dropped when T is real.
  template <class T> T to() const {
    if constexpr (std::is_same_v<T, bool>) return is_integral() ? i_ != 0 : (d_ != 0 || im_ != 0);
    else if constexpr (std::is_integral_v<T>) return T(to_int());
    else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      return T(R(to_double()), R(im_));
    } else if constexpr (std::is_same_v<T, f128>) return is_integral() ? f128(i_) : f128(d_);
    else return convert<T>();
  }
  Scalar operator-() const;
  bool operator==(const Scalar& o) const {
    return kind_ == o.kind_ && (is_integral() ? i_ == o.i_ : d_ == o.d_ && im_ == o.im_);
  }
  std::string str() const;

 private:
  template <class T> T convert() const {
    if constexpr (std::is_same_v<T, double>) return to_double();
    else return T(float(to_double()));
  }
  DType kind_;
  union {
    int64_t i_;
    double d_;
  };
  double im_ = 0;
};

}  // namespace lamella
