// a^b of registers: see NOTE: [elementary functions].
#pragma once

#include "lamella/kernels/cpu/elementary_f64.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// From `whole` on all numbers are integers, from `even` on even ones.
template <class T> struct Integers;
template <> struct Integers<float> {
  using Bits = U32Lanes;
  static constexpr float whole = 0x1p23f, even = 0x1p24f;
  static constexpr int sign = 31;
};
template <> struct Integers<double> {
  using Bits = U64Lanes;
  static constexpr double whole = 0x1p52, even = 0x1p53;
  static constexpr int sign = 63;
};
/// What a negative base makes of abs(a)^b: NaN unless b is whole, the other sign where it is odd.
template <class T, class V = LanesOf<T>> LAMELLA_LANES V with_sign(V power, V a, V b) {
  using Of = Integers<T>;
  using Bits = typename Of::Bits;
  const V size = absolute(b), raised = size + Of::whole;  // whole numbers lie in the lower bits of the sum
  const auto fractions = size < Of::whole;
  const Bits lowest = fractions ? Bits(raised) : Bits(size);
  const auto broken = fractions & ((raised - Of::whole) != size);
  const Bits odd = (lowest << Of::sign) & Bits(size < Of::even);
  return ((a < T(0)) & broken) ? V{} + T(__builtin_nan("")) : turned(power, sign_of(a) & odd);
}
/// The lanes of zeros, infinities and NaNs.
template <class T, class V = LanesOf<T>> LAMELLA_LANES auto not_for_logarithms(V a, V b) {
  const V size = absolute(a), most = V{} + T(__builtin_inf());
  return ~((size > T(0)) & (size < most) & (absolute(b) < most));
}

/// (2^e (1 + f))^b of numbers that were f32: 2^(b log2), where log2 is right to 2^-35 of itself.
LAMELLA_LANES F64Lanes power_of_f32(F64Lanes f, F64Lanes e, F64Lanes b) {
  const F64Lanes s = f / (f + 2.0), z = s * s;
  const F64Lanes log2 = (s * z * polynomial(z, polynomials::log_of_f32) + s) * (2 * log2_e_f64) + e;
  const F64Lanes p = clamped(b * log2, -160.0, 140.0), t = p + round_f64;
  const F64Lanes r = (p - (t - round_f64)) * ln2_f64;
  const F64Lanes of_rest = (r * r * polynomial(r, polynomials::exp_of_f32) + r) + 1.0;
  return F64Lanes(U64Lanes(of_rest) + (U64Lanes(t) << 52));
}
LAMELLA_LANES F32Lanes pow_lanes(F32Lanes a, F32Lanes b) {
  const bool odd = any_outside(a, least_f32, greatest_f32) || any_outside(b, -greatest_f32, greatest_f32);
  const auto [f, e] = log_parts(absolute(a), odd);
  const F32Lanes y = floats_of(power_of_f32(low_doubles(f), low_doubles(e), low_doubles(b)),
                               power_of_f32(high_doubles(f), high_doubles(e), high_doubles(b)));
  if (!odd) [[likely]]
    return y;
  return one_by_one(
      with_sign<float>(y, a, b), not_for_logarithms<float>(a, b),
      [](float base, float to) { return library::pow(base, to); }, a, b);
}

/// high + low, high being shortened.
struct SumOfTwo {
  F64Lanes high, low;
};
/// e + log2(1 + f), right to 2^-64 of itself. log(1 + f) = 2 artanh s = 2/3 s u, s = f / (2 + f), u = 3 + s^2
/// + ..., each in two parts of which the first is shortened, so that products of first parts are exact.
LAMELLA_LANES SumOfTwo log2_in_two(F64Lanes f, F64Lanes e) {
  constexpr auto& factor = polynomials::two_thirds_log2_e;
  const F64Lanes d = f + 2.0, lost = f - (d - 2.0), inverse = 1.0 / d;
  const F64Lanes d0 = shortened(d), d1 = (d - d0) + lost;
  const F64Lanes s = f * inverse, z = s * s;
  const F64Lanes s0 = shortened(s), s1 = ((f - s0 * d0) - s0 * d1) * inverse, z0 = s0 * s0;
  const F64Lanes rest = z * z * polynomial(z, polynomials::log_more_f64) + s1 * (s0 + s);
  const F64Lanes u0 = shortened((z0 + rest) + 3.0), u1 = rest - ((u0 - 3.0) - z0);
  const F64Lanes v0 = s0 * u0, v1 = s1 * u0 + u1 * s;
  const F64Lanes w0 = shortened(v0 + v1), w1 = v1 - (w0 - v0);
  const F64Lanes l0 = w0 * factor[0], l1 = w0 * factor[1] + w1 * (factor[0] + factor[1]);
  const F64Lanes high = shortened((l0 + l1) + e);
  return {high, l1 - ((high - e) - l0)};
}
/// The product in two parts, the first of which is exact.
LAMELLA_LANES SumOfTwo times(SumOfTwo l, F64Lanes b) {
  const F64Lanes b0 = shortened(b);
  return {b0 * l.high, (b - b0) * l.high + b * l.low};
}

LAMELLA_LANES F64Lanes pow_lanes(F64Lanes a, F64Lanes b) {
  const bool odd = any_outside(a, least_f64, greatest_f64);
  const auto [f, e] = log_parts(absolute(a), odd);
  const SumOfTwo log2 = log2_in_two(f, e);
  SumOfTwo p = times(log2, b);
  const bool far = any_outside(p.high + p.low, -1022.0, 1022.0);  // where b is infinite or NaN, too
  if (far) [[unlikely]] {
    p = times(log2, clamped(b, -0x1p65, 0x1p65));  // the least logarithm is 2^-53
    p.low = absolute(p.high) > 1100.0 ? F64Lanes{} : p.low;
    p.high = clamped(p.high, -1100.0, 1100.0);
  }
  const F64Lanes t = (p.high + p.low) + round_f64, most = p.high - (t - round_f64);
  const F64Lanes r = most + p.low, lost = (most - r) + p.low, x = r * ln2_f64;
  const F64Lanes of_rest = ((x * x * polynomial(x, polynomials::exp_f64) + lost * ln2_f64) + x) + 1.0;
  const U64Lanes k = U64Lanes(t);
  const F64Lanes y = far ? scaled(of_rest, k) : F64Lanes(U64Lanes(of_rest) + (k << 52));
  if (!odd && !far) [[likely]]
    return y;
  return one_by_one(
      with_sign<double>(y, a, b), not_for_logarithms<double>(a, b),
      [](double base, double to) { return library::pow(base, to); }, a, b);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
