// exp, log, sin, cos, tanh, sigmoid and sech_squared of f64 registers: see NOTE: [elementary functions].
#pragma once

#include "lamella/kernels/cpu/elementary_f32.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// x = k log 2 + r, e^r - 1 - r and e^r - 1; `t` holds k in its lower bits.
struct ExpF64 {
  U64Lanes t;
  F64Lanes bent, less_one;
};
LAMELLA_LANES ExpF64 exp_parts(F64Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f64;
  const F64Lanes t = x * log2_e_f64 + round_f64, k = t - round_f64;
  const F64Lanes most = x - k * ln2[0], rest = k * ln2[1];  // the first is exact
  const F64Lanes r = most - rest, lost = (most - r) - rest;
  const F64Lanes bent = r * r * polynomial(r, polynomials::exp_f64) + lost;
  return {U64Lanes(t), bent, bent + r};
}
/// 2^k for the k in the lower bits, -1023 < k < 1024.
LAMELLA_LANES F64Lanes power_of_two(U64Lanes k) { return F64Lanes((k << 52) + 0x3FF0000000000000u); }
/// p 2^k for the k in the lower bits, -2048 < k < 2048: in two steps, the last of which rounds.
LAMELLA_LANES F64Lanes scaled(F64Lanes p, U64Lanes k) {
  return p * power_of_two(k >> 1) * power_of_two(k - (k >> 1));
}

LAMELLA_LANES F64Lanes exp_lanes(F64Lanes x) {
  const bool far = any_outside(x, -708.0, 708.0);
  if (far) [[unlikely]]
    x = clamped(x, -750.0, 712.0);
  const auto [t, bent, less_one] = exp_parts(x);
  const F64Lanes of_rest = less_one + 1.0;
  if (!far) [[likely]]
    return F64Lanes(U64Lanes(of_rest) + (t << 52));
  return scaled(of_rest, t);
}

inline constexpr double least_f64 = 0x1p-1022, greatest_f64 = 0x1.fffffffffffffp1023;

/// As of f32.
struct LogF64 {
  F64Lanes f, e;
};
LAMELLA_LANES LogF64 log_parts(F64Lanes x, bool odd) {
  F64Lanes moved = {};
  if (odd) [[unlikely]] {
    const I64Lanes subnormal = x < least_f64;
    x = subnormal ? x * 0x1p54 : x;
    moved = subnormal ? all_of<F64Lanes>(-54.0) : moved;
  }
  const U64Lanes bits = U64Lanes(x) - 0x3FE6A09E667F3BCDu;
  const F64Lanes f = F64Lanes((bits & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu) - 1.0;
  // With 1,024 more it is a number below 2^12, in the lower bits of one above 2^52.
  const F64Lanes e =
      F64Lanes(((bits + (uint64_t(1024) << 52)) >> 52) | 0x4330000000000000u) - (0x1p52 + 1024);
  return {f, odd ? e + moved : e};
}
/// log(1 + f) = 2 artanh s, s = f / (2 + f), of which f - f^2 / 2 is taken first: s (f^2 / 2 + R) is left.
LAMELLA_LANES F64Lanes log_lanes(F64Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f64;
  const bool odd = any_outside(x, least_f64, greatest_f64);
  const auto [f, e] = log_parts(x, odd);
  const F64Lanes s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
  const F64Lanes rest = s * (half + (z + z) * polynomial(z, polynomials::log_f64));
  F64Lanes y = (((e * ln2[1] + rest) - half) + f) + e * ln2[0];
  if (!odd) [[likely]]
    return y;
  y = x == 0.0 ? all_of<F64Lanes>(-__builtin_inf()) : y;
  y = ((x == __builtin_inf()) | (x != x)) ? x : y;
  return x < 0.0 ? all_of<F64Lanes>(__builtin_nan("")) : y;
}

/// x = k pi / 2 + r + rest for 0 <= x <= 2^20; `t` holds k in its lower bits. Products with the first three
/// parts of pi / 2 are exact, and what the differences lose is kept: next to a multiple of pi / 2 little else
/// is left.
struct QuarterF64 {
  U64Lanes t;
  F64Lanes r, rest;
};
LAMELLA_LANES QuarterF64 quarter_turns_f64(F64Lanes x) {
  constexpr auto& half_pi = polynomials::half_pi_f64;
  const F64Lanes t = x * 0x1.45f306dc9c883p-1 + round_f64, k = t - round_f64;
  const F64Lanes a = x - k * half_pi[0];  // exact
  const F64Lanes b = k * half_pi[1], c = a - b, lost = (a - c) - b;
  const F64Lanes d = k * half_pi[2], g = c - d, lost_too = (c - g) - d;
  const F64Lanes low = (lost + lost_too) - k * half_pi[3], r = g + low;
  return {U64Lanes(t), r, (g - r) + low};
}
/// sin(x + first pi / 2) for 0 <= x <= 2^20.
LAMELLA_LANES F64Lanes sine_of(F64Lanes x, uint64_t first) {
  const auto [t, r, rest] = quarter_turns_f64(x);
  const U64Lanes k = t + first;
  const F64Lanes z = r * r, half = 0.5 * z, one_less = 1.0 - half;
  const F64Lanes sine = r + (r * z * polynomial(z, polynomials::sin_f64) + rest * one_less);
  const F64Lanes rounding = (1.0 - one_less) - half;
  const F64Lanes cosine = one_less + (rounding + (z * z * polynomial(z, polynomials::cos_f64) - r * rest));
  return turned((k & 1u) != 0 ? cosine : sine, (k & 2u) << 62);
}
LAMELLA_LANES F64Lanes sin_lanes(F64Lanes x) {
  const F64Lanes y = turned(sine_of(absolute(x), 0), sign_of(x));
  if (!any_outside(x, -0x1p20, 0x1p20)) [[likely]]
    return y;
  return one_by_one(
      y, ~(absolute(x) <= 0x1p20), [](double v) { return library::sin(v); }, x);
}
LAMELLA_LANES F64Lanes cos_lanes(F64Lanes x) {
  const F64Lanes y = sine_of(absolute(x), 1);
  if (!any_outside(x, -0x1p20, 0x1p20)) [[likely]]
    return y;
  return one_by_one(
      y, ~(absolute(x) <= 0x1p20), [](double v) { return library::cos(v); }, x);
}

/// As of f32.
LAMELLA_LANES F64Lanes tanh_lanes(F64Lanes x) {
  const F64Lanes a = absolute(x);
  const auto [t, bent, less_one] = exp_parts(at_most(a + a, 40.0));
  const F64Lanes power = power_of_two(t), all = less_one * power + (power - 1.0);
  const auto near = power == 1.0;
  const F64Lanes part = (near ? bent - a * all : all) / (all + 2.0);
  return turned((near ? a : F64Lanes{}) + part, sign_of(x));
}

/// As of f32.
LAMELLA_LANES F64Lanes sigmoid_lanes(F64Lanes x) {
  const F64Lanes e = exp_lanes(-absolute(x));
  return (x >= 0.0 ? all_of<F64Lanes>(1.0) : e) / (e + 1.0);
}
LAMELLA_LANES F64Lanes sech_squared_lanes(F64Lanes x) {
  const F64Lanes e = exp_lanes(absolute(x) * -2.0), d = e + 1.0, y = e * 4.0 / (d * d);
  return y > 1.0 ? all_of<F64Lanes>(1.0) : y;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
