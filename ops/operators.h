// Operators on tensors. They declare once more what they call, without defaults: a new operator beside `add`
// or `eq` then recompiles nobody who only writes a + b.
#pragma once

#include "lamella/ops/number.h"

LAMELLA_API_BEGIN
namespace lamella {

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha);
Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b, const std::string& rounding_mode);
Tensor neg(const Tensor& x);
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b, 1); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b, 1); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b, {}); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
/// Numbers promote weakly.
inline Tensor operator+(const Tensor& a, const Scalar& b) { return a + number_like(b, a); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return a - number_like(b, a); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return a * number_like(b, a); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return a / number_like(b, a); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return number_like(a, b) + b; }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return number_like(a, b) - b; }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return number_like(a, b) * b; }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return number_like(a, b) / b; }

/// Element by element, after promotion; the result is bool.
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, const Scalar& b) { return eq(a, number_like(b, a)); }
inline Tensor operator!=(const Tensor& a, const Scalar& b) { return ne(a, number_like(b, a)); }
inline Tensor operator<(const Tensor& a, const Scalar& b) { return lt(a, number_like(b, a)); }
inline Tensor operator<=(const Tensor& a, const Scalar& b) { return le(a, number_like(b, a)); }
inline Tensor operator>(const Tensor& a, const Scalar& b) { return gt(a, number_like(b, a)); }
inline Tensor operator>=(const Tensor& a, const Scalar& b) { return ge(a, number_like(b, a)); }
inline Tensor operator==(const Scalar& a, const Tensor& b) { return eq(number_like(a, b), b); }
inline Tensor operator!=(const Scalar& a, const Tensor& b) { return ne(number_like(a, b), b); }
inline Tensor operator<(const Scalar& a, const Tensor& b) { return lt(number_like(a, b), b); }
inline Tensor operator<=(const Scalar& a, const Tensor& b) { return le(number_like(a, b), b); }
inline Tensor operator>(const Scalar& a, const Tensor& b) { return gt(number_like(a, b), b); }
inline Tensor operator>=(const Scalar& a, const Tensor& b) { return ge(number_like(a, b), b); }

}  // namespace lamella
LAMELLA_API_END
