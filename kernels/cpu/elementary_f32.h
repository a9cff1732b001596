// exp, log, sin, cos, tanh of f32 registers.
#pragma once

#include "lamella/kernels/bodies/body.h"
#include "lamella/kernels/cpu/lanes.h"
#include "lamella/kernels/cpu/polynomials.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// NOTE: [elementary functions] One text for every instruction set and for every place in a run, of additions,
/// multiplications, divisions and operations on bits, which are rounded alike wherever they are computed: a result
/// depends on its argument alone, bit by bit. What a text cannot do (arguments beyond 2^20 of sin and cos,
/// zeros and infinities of pow) goes through the library, lane by lane, on every instruction set. The largest
/// errors seen are in docs/decisions/0022-elementary-lanes.md.

/// Adding it rounds to the next integer, which the lower bits then hold: no instruction set but one has a rounding
/// and a conversion of f64 to 64-bit integers.
inline constexpr float round_f32 = 0x1.8p23f;
inline constexpr double round_f64 = 0x1.8p52;
inline constexpr float log2_e_f32 = 0x1.715476p+0f;
inline constexpr double log2_e_f64 = 0x1.71547652b82fep+0;
inline constexpr double ln2_f64 = 0x1.62e42fefa39efp-1;

/// x = k log 2 + r, and e^r; `t` holds k in its lower bits.
struct ExpF32 {
  U32Lanes t;
  F32Lanes of_rest;
};
LAMELLA_LANES ExpF32 exp_parts(F32Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f32;
  const F32Lanes t = x * log2_e_f32 + round_f32, k = t - round_f32;
  const F32Lanes r = (x - k * ln2[0]) - k * ln2[1];
  return {U32Lanes(t), (r * r * polynomial(r, polynomials::exp_f32) + r) + 1.0f};
}
/// 2^k for the k in the lower bits, -127 < k < 128.
LAMELLA_LANES F32Lanes power_of_two(U32Lanes k) { return F32Lanes((k << 23) + 0x3F800000u); }

/// e^x. Where the result may be subnormal or infinite it is multiplied in two steps, the last of which rounds.
LAMELLA_LANES F32Lanes exp_lanes(F32Lanes x) {
  const bool far = any(~(absolute(x) <= 87.0f));
  if (far) [[unlikely]]
    x = clamped(x, -105.0f, 89.5f);
  const auto [t, of_rest] = exp_parts(x);
  if (!far) [[likely]]
    return F32Lanes(U32Lanes(of_rest) + (t << 23));
  return of_rest * power_of_two(t >> 1) * power_of_two(t - (t >> 1));
}

/// x = m 2^e, sqrt(1/2) <= m < sqrt(2): the difference to the bits of sqrt(1/2) holds e.
LAMELLA_LANES F32Lanes log_lanes(F32Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f32;
  const F32Lanes given = x;
  const bool odd = any(~((x >= 0x1p-126f) & (x <= 0x1.fffffep127f)));
  I32Lanes moved = {};
  if (odd) [[unlikely]] {
    const I32Lanes subnormal = x < 0x1p-126f;
    x = subnormal ? x * 0x1p24f : x;
    moved = subnormal & -24;
  }
  const U32Lanes bits = U32Lanes(x) - 0x3F3504F3u;
  const F32Lanes e = __builtin_convertvector((I32Lanes(bits) >> 23) + moved, F32Lanes);
  const F32Lanes f = F32Lanes((bits & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f, z = f * f;
  const F32Lanes rest = (z * f * polynomial(f, polynomials::log_f32) + e * ln2[1]) - 0.5f * z;
  F32Lanes y = (rest + f) + e * ln2[0];
  if (odd) [[unlikely]] {
    y = given == 0.0f ? all_of<F32Lanes>(-__builtin_inff()) : y;
    y = (given == __builtin_inff()) | (given != given) ? given : y;
    y = given < 0.0f ? all_of<F32Lanes>(__builtin_nanf("")) : y;
  }
  return y;
}

/// x = k pi / 2 + r for 0 <= x < 2^20; `k` counts in its lower bits.
struct QuarterF32 {
  U32Lanes k;
  F32Lanes r;
};
/// Up to 256: products with the first two parts of pi / 2 are exact, and so is the first difference.
LAMELLA_LANES QuarterF32 few_quarter_turns(F32Lanes x) {
  constexpr auto& half_pi = polynomials::half_pi_f32;
  const F32Lanes t = x * 0x1.45f306p-1f + round_f32, k = t - round_f32;
  return {U32Lanes(t), ((x - k * half_pi[0]) - k * half_pi[1]) - k * half_pi[2]};
}
/// In f64, where the first product and difference are exact and r is right to 2^-36 of itself.
LAMELLA_LANES QuarterF32 many_quarter_turns(F32Lanes x) {
  constexpr auto& half_pi = polynomials::half_pi_of_f32;
  const F64Lanes low = low_doubles(x), high = high_doubles(x);
  const F64Lanes t0 = low * 0x1.45f306dc9c883p-1 + round_f64, k0 = t0 - round_f64;
  const F64Lanes t1 = high * 0x1.45f306dc9c883p-1 + round_f64, k1 = t1 - round_f64;
  return {words_of(U64Lanes(t0), U64Lanes(t1)), floats_of((low - k0 * half_pi[0]) - k0 * half_pi[1],
                                                          (high - k1 * half_pi[0]) - k1 * half_pi[1])};
}
/// sin(x + first pi / 2) for 0 <= x < 2^20.
LAMELLA_LANES F32Lanes sine_of(F32Lanes x, uint32_t first) {
  auto [k, r] = few_quarter_turns(x);
  const I32Lanes many = x > 256.0f;
  if (any(many)) [[unlikely]] {
    const QuarterF32 other = many_quarter_turns(x);
    k = many ? other.k : k;
    r = many ? other.r : r;
  }
  k = k + first;
  const F32Lanes z = r * r;
  const F32Lanes sine = r * z * polynomial(z, polynomials::sin_f32) + r;
  const F32Lanes cosine = (z * z * polynomial(z, polynomials::cos_f32) - 0.5f * z) + 1.0f;
  return turned((k & 1u) != 0 ? cosine : sine, (k & 2u) << 30);
}
LAMELLA_LANES F32Lanes sin_lanes(F32Lanes x) {
  const I32Lanes rare = ~(absolute(x) < 0x1p20f);
  const F32Lanes y = turned(sine_of(absolute(x), 0), sign_of(x));
  if (!any(rare)) [[likely]]
    return y;
  return one_by_one(y, rare, [](float v) { return library::sin(v); }, x);
}
LAMELLA_LANES F32Lanes cos_lanes(F32Lanes x) {
  const I32Lanes rare = ~(absolute(x) < 0x1p20f);
  const F32Lanes y = sine_of(absolute(x), 1);
  if (!any(rare)) [[likely]]
    return y;
  return one_by_one(y, rare, [](float v) { return library::cos(v); }, x);
}

/// Below 0.6 a polynomial; above 1 - 2 / (e^2x + 1), where the quotient is the smaller part.
LAMELLA_LANES F32Lanes tanh_lanes(F32Lanes x) {
  const F32Lanes a = absolute(x), z = a * a;
  const F32Lanes near = a * z * polynomial(z, polynomials::tanh_f32) + a;
  const auto [t, of_rest] = exp_parts(at_most(a + a, 20.0f));
  const F32Lanes far = 1.0f - 2.0f / (of_rest * power_of_two(t) + 1.0f);
  return turned(a < 0.6f ? near : far, sign_of(x));
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
