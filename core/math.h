// Elementary functions by one name for float, double and f128: a kernel's one text for the CPU and the
// oracle.
#pragma once

#include <cmath>

#include "lamella/core/visit.h"

// As <quadmath.h> declares them, which lies with GCC, and which other compilers do not find.
extern "C" {
__float128 acosq(__float128);
__float128 acoshq(__float128);
__float128 asinq(__float128);
__float128 asinhq(__float128);
__float128 atan2q(__float128, __float128);
__float128 atanhq(__float128);
__float128 atanq(__float128);
__float128 ceilq(__float128);
__float128 cosq(__float128);
__float128 coshq(__float128);
__float128 erfcq(__float128);
__float128 erfq(__float128);
__float128 expm1q(__float128);
__float128 expq(__float128);
__float128 fabsq(__float128);
__float128 floorq(__float128);
__float128 fmodq(__float128, __float128);
__float128 hypotq(__float128, __float128);
__float128 lgammaq(__float128);
__float128 log1pq(__float128);
__float128 logq(__float128);
__float128 powq(__float128, __float128);
__float128 rintq(__float128);
__float128 sinhq(__float128);
__float128 sinq(__float128);
__float128 sqrtq(__float128);
__float128 tanhq(__float128);
__float128 tanq(__float128);
__float128 tgammaq(__float128);
__float128 truncq(__float128);
}

LAMELLA_API_BEGIN
/// NOTE: [functions of f128] std::exp has no overload for f128, nor has C++20 literals of it: in a kernel
/// whose T is float, double or f128 write math::exp(x), and T(1) / 3 where a constant must be right in all
/// digits. libquadmath's errors are a few units of 2^-113: nothing beside a bound of f64.
namespace lamella::math {

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::ceil, std::cos,
    std::cosh, std::erf, std::erfc, std::exp, std::expm1, std::fabs, std::floor, std::fmod, std::hypot,
    std::lgamma, std::log, std::log1p, std::pow, std::rint, std::sin, std::sinh, std::sqrt, std::tan,
    std::tanh, std::tgamma, std::trunc;

inline f128 acos(f128 x) { return ::acosq(x); }
inline f128 acosh(f128 x) { return ::acoshq(x); }
inline f128 asin(f128 x) { return ::asinq(x); }
inline f128 asinh(f128 x) { return ::asinhq(x); }
inline f128 atan(f128 x) { return ::atanq(x); }
inline f128 atan2(f128 y, f128 x) { return ::atan2q(y, x); }
inline f128 atanh(f128 x) { return ::atanhq(x); }
inline f128 ceil(f128 x) { return ::ceilq(x); }
inline f128 cos(f128 x) { return ::cosq(x); }
inline f128 cosh(f128 x) { return ::coshq(x); }
inline f128 erf(f128 x) { return ::erfq(x); }
inline f128 erfc(f128 x) { return ::erfcq(x); }
inline f128 exp(f128 x) { return ::expq(x); }
inline f128 expm1(f128 x) { return ::expm1q(x); }
inline f128 fabs(f128 x) { return ::fabsq(x); }
inline f128 floor(f128 x) { return ::floorq(x); }
inline f128 fmod(f128 x, f128 y) { return ::fmodq(x, y); }
inline f128 hypot(f128 x, f128 y) { return ::hypotq(x, y); }
inline f128 lgamma(f128 x) { return ::lgammaq(x); }
inline f128 log(f128 x) { return ::logq(x); }
inline f128 log1p(f128 x) { return ::log1pq(x); }
inline f128 pow(f128 x, f128 y) { return ::powq(x, y); }
inline f128 rint(f128 x) { return ::rintq(x); }
inline f128 sin(f128 x) { return ::sinq(x); }
inline f128 sinh(f128 x) { return ::sinhq(x); }
inline f128 sqrt(f128 x) { return ::sqrtq(x); }
inline f128 tan(f128 x) { return ::tanq(x); }
inline f128 tanh(f128 x) { return ::tanhq(x); }
inline f128 tgamma(f128 x) { return ::tgammaq(x); }
inline f128 trunc(f128 x) { return ::truncq(x); }

}  // namespace lamella::math
LAMELLA_API_END
