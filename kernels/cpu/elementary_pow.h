// a^b of registers: see NOTE: [elementary functions].
#pragma once

#include "lamella/kernels/cpu/elementary_f64.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// What a negative base makes of |a|^b: NaN unless b is whole, the other sign where it is odd. From 2^53 on all
/// numbers are even.
LAMELLA_LANES F64Lanes with_sign(F64Lanes power, F64Lanes a, F64Lanes b) {
  if (!any(a < 0.0)) [[likely]]
    return power;
  const F64Lanes size = absolute(b), raised = size + 0x1p52;
  const I64Lanes fractions = size < 0x1p52, parities = size < 0x1p53;
  const U64Lanes lowest = fractions ? U64Lanes(raised) : U64Lanes(size);
  const I64Lanes broken = fractions & ((raised - 0x1p52) != size);
  const U64Lanes odd = (lowest << 63) & U64Lanes(parities);
  return (a < 0.0) & broken ? all_of<F64Lanes>(__builtin_nan("")) : turned(power, sign_of(a) & odd);
}

/// |a|^b of numbers that were f32, a not 0: 2^(b log2 |a|), where log2 is right to 2^-43 of itself.
LAMELLA_LANES F64Lanes power_of_f32(F64Lanes a, F64Lanes b) {
  const auto [f, e] = log_parts(absolute(a));
  const F64Lanes s = f / (f + 2.0), z = s * s;
  const F64Lanes log2 = (s * z * polynomial(z, polynomials::log_of_f32) + s) * (2 * log2_e_f64) + e;
  const F64Lanes p = clamped(b * log2, -160.0, 140.0), t = p + round_f64;
  const F64Lanes r = (p - (t - round_f64)) * ln2_f64;
  const F64Lanes of_rest = (r * r * polynomial(r, polynomials::exp_of_f32) + r) + 1.0;
  return with_sign(F64Lanes(U64Lanes(of_rest) + (U64Lanes(t) << 52)), a, b);
}
LAMELLA_LANES F32Lanes pow_lanes(F32Lanes a, F32Lanes b) {
  const F32Lanes size = absolute(a);
  const I32Lanes rare = ~((size > 0.0f) & (size < __builtin_inff()) & (absolute(b) < __builtin_inff()));
  const F32Lanes y = floats_of(power_of_f32(low_doubles(a), low_doubles(b)),
                               power_of_f32(high_doubles(a), high_doubles(b)));
  if (!any(rare)) [[likely]]
    return y;
  return one_by_one(y, rare, [](float base, float to) { return library::pow(base, to); }, a, b);
}

/// high + low, high being shortened.
struct SumOfTwo {
  F64Lanes high, low;
};
/// e + log2(1 + f), right to 2^-64 of itself. log(1 + f) = 2 artanh s = 2/3 s u, s = f / (2 + f), u = 3 + s^2 + ...,
/// each in two parts of which the first is shortened, so that products of first parts are exact.
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
  F64Lanes size = absolute(a);
  const I64Lanes rare = ~((size > 0.0) & (size < __builtin_inf()) & (absolute(b) < __builtin_inf()));
  const I64Lanes subnormal = size < 0x1p-1022;
  F64Lanes moved = {};
  if (any(subnormal)) [[unlikely]] {
    size = subnormal ? size * 0x1p54 : size;
    moved = subnormal ? all_of<F64Lanes>(-54.0) : moved;
  }
  const auto [f, e] = log_parts(size);
  const SumOfTwo log2 = log2_in_two(f, e + moved);
  SumOfTwo p = times(log2, b);
  const bool far = any(~(absolute(p.high + p.low) <= 1022.0));
  if (far) [[unlikely]] {
    p = times(log2, clamped(b, -0x1p65, 0x1p65));  // the least logarithm is 2^-53
    p.low = absolute(p.high) > 1100.0 ? F64Lanes{} : p.low;
    p.high = clamped(p.high, -1100.0, 1100.0);
  }
  const F64Lanes t = (p.high + p.low) + round_f64, most = p.high - (t - round_f64);
  const F64Lanes r = most + p.low, lost = (most - r) + p.low, x = r * ln2_f64;
  const F64Lanes of_rest = ((x * x * polynomial(x, polynomials::exp_f64) + lost * ln2_f64) + x) + 1.0;
  const U64Lanes k = U64Lanes(t);
  F64Lanes y = far ? scaled(of_rest, k) : F64Lanes(U64Lanes(of_rest) + (k << 52));
  y = with_sign(y, a, b);
  if (!any(rare)) [[likely]]
    return y;
  return one_by_one(y, rare, [](double base, double to) { return library::pow(base, to); }, a, b);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
