// exp, log, sin, cos, tanh, sigmoid and sech_squared of f32 registers.
#pragma once

#include "lamella/kernels/bodies/body.h"
#include "lamella/kernels/cpu/lanes.h"
#include "lamella/kernels/cpu/polynomials.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// NOTE: [elementary functions] One text for every instruction set and for every place in a run, of
/// additions, multiplications, divisions and operations on bits, which are rounded alike wherever they are
/// computed: a result depends on its argument alone, bit by bit. What a text cannot do (arguments beyond 2^20
/// of sin and cos, zeros and infinities of pow) goes through the library, lane by lane, on every instruction
/// set. The largest errors seen are in docs/decisions/0022-elementary-lanes.md.

/// Adding it rounds to the next integer, which the lower bits then hold: no instruction set but one has a
/// rounding and a conversion of f64 to 64-bit integers.
inline constexpr float round_f32 = 0x1.8p23f;
inline constexpr double round_f64 = 0x1.8p52;
inline constexpr float log2_e_f32 = 0x1.715476p+0f;
inline constexpr double log2_e_f64 = 0x1.71547652b82fep+0;
inline constexpr double ln2_f64 = 0x1.62e42fefa39efp-1;

/// x = k log 2 + r, e^r - 1 - r and e^r - 1; `t` holds k in its lower bits.
struct ExpF32 {
  U32Lanes t;
  F32Lanes bent, less_one;
};
LAMELLA_LANES ExpF32 exp_parts(F32Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f32;
  const F32Lanes t = x * log2_e_f32 + round_f32, k = t - round_f32;
  const F32Lanes r = (x - k * ln2[0]) - k * ln2[1];
  const F32Lanes bent = r * r * polynomial(r, polynomials::exp_f32);
  return {U32Lanes(t), bent, bent + r};
}
/// 2^k for the k in the lower bits, -127 < k < 128.
LAMELLA_LANES F32Lanes power_of_two(U32Lanes k) { return F32Lanes((k << 23) + 0x3F800000u); }

/// e^x. Where the result may be subnormal or infinite it is multiplied in two steps, the last of which
/// rounds.
LAMELLA_LANES F32Lanes exp_lanes(F32Lanes x) {
  const bool far = any_outside(x, -87.0f, 87.0f);
  if (far) [[unlikely]]
    x = clamped(x, -105.0f, 89.5f);
  const auto [t, bent, less_one] = exp_parts(x);
  const F32Lanes of_rest = less_one + 1.0f;
  if (!far) [[likely]]
    return F32Lanes(U32Lanes(of_rest) + (t << 23));
  return of_rest * power_of_two(t >> 1) * power_of_two(t - (t >> 1));
}

inline constexpr float least_f32 = 0x1p-126f,
                       greatest_f32 = 0x1.fffffep127f;  // normal numbers lie between them

/// x = 2^e (1 + f), sqrt(1/2) - 1 <= f < sqrt(2) - 1: the difference to the bits of sqrt(1/2) holds e.
struct LogF32 {
  F32Lanes f, e;
};
/// Of positive numbers; of subnormal ones where `odd`.
LAMELLA_LANES LogF32 log_parts(F32Lanes x, bool odd) {
  I32Lanes moved = {};
  if (odd) [[unlikely]] {
    const I32Lanes subnormal = x < least_f32;
    x = subnormal ? x * 0x1p24f : x;
    moved = subnormal & -24;
  }
  const U32Lanes bits = U32Lanes(x) - 0x3F3504F3u;
  return {F32Lanes((bits & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f,
          __builtin_convertvector((I32Lanes(bits) >> 23) + moved, F32Lanes)};
}
LAMELLA_LANES F32Lanes log_lanes(F32Lanes x) {
  constexpr auto& ln2 = polynomials::ln2_f32;
  const bool odd = any_outside(x, least_f32, greatest_f32);
  const auto [f, e] = log_parts(x, odd);
  const F32Lanes z = f * f;
  const F32Lanes rest = (z * f * polynomial(f, polynomials::log_f32) + e * ln2[1]) - 0.5f * z;
  F32Lanes y = (rest + f) + e * ln2[0];
  if (!odd) [[likely]]
    return y;
  y = x == 0.0f ? all_of<F32Lanes>(-__builtin_inff()) : y;
  y = ((x == __builtin_inff()) | (x != x)) ? x : y;
  return x < 0.0f ? all_of<F32Lanes>(__builtin_nanf("")) : y;
}

/// x = (k + kHalves / 2) pi + r, abs(r) <= pi / 2; `k` counts in its lower bits.
struct HalfTurnF32 {
  U32Lanes k;
  F32Lanes r;
};
/// The integer that x / pi - kHalves / 2 is next to, k + kHalves / 2, and k in lower bits.
template <class Bits, int kHalves, class V, class T> LAMELLA_LANES auto count_of(V turns, T round) {
  struct Count {
    Bits k;
    V whole;
  };
  if constexpr (kHalves == 0) {
    const V t = turns + round;
    return Count{Bits(t), t - round};
  } else {
    const V t = (turns - T(0.5)) + round;
    return Count{Bits(t), (t - round) + T(0.5)};
  }
}
/// Up to 256: products with the first two parts of pi are exact, and so is the first difference.
template <int kHalves> LAMELLA_LANES HalfTurnF32 few_half_turns(F32Lanes x) {
  constexpr auto& pi = polynomials::pi_f32;
  const auto [k, n] = count_of<U32Lanes, kHalves>(x * 0x1.45f306p-2f, round_f32);
  return {k, ((x - n * pi[0]) - n * pi[1]) - n * pi[2]};
}
/// In f64 up to 2^20, where the first product and difference are exact and r is right to 2^-36 of itself.
template <int kHalves> LAMELLA_LANES HalfTurnF32 many_half_turns(F32Lanes x) {
  constexpr auto& pi = polynomials::pi_of_f32;
  const F64Lanes low = low_doubles(x), high = high_doubles(x);
  const auto [k0, n0] = count_of<U64Lanes, kHalves>(low * 0x1.45f306dc9c883p-2, round_f64);
  const auto [k1, n1] = count_of<U64Lanes, kHalves>(high * 0x1.45f306dc9c883p-2, round_f64);
  return {words_of(k0, k1), floats_of((low - n0 * pi[0]) - n0 * pi[1], (high - n1 * pi[0]) - n1 * pi[1])};
}
/// sin x of kHalves = 0, cos x = -sin(x - pi / 2) of 1.
template <int kHalves, class F> LAMELLA_LANES F32Lanes sine_of(F32Lanes x, F library_function) {
  const F32Lanes size = absolute(x);
  const bool far = any_outside(x, -256.0f, 256.0f);
  auto [k, r] = few_half_turns<kHalves>(size);
  if (far) [[unlikely]] {
    const HalfTurnF32 other = many_half_turns<kHalves>(size);
    k = size > 256.0f ? other.k : k;
    r = size > 256.0f ? other.r : r;
  }
  const F32Lanes z = r * r, sine = r * z * polynomial(z, polynomials::sin_f32) + r;
  const F32Lanes y = turned(sine, kHalves == 0 ? (k << 31) ^ sign_of(x) : ~k << 31);
  if (!far) [[likely]]
    return y;
  return one_by_one(y, ~(size < 0x1p20f), library_function, x);
}
LAMELLA_LANES F32Lanes sin_lanes(F32Lanes x) {
  return sine_of<0>(x, [](float v) { return library::sin(v); });
}
LAMELLA_LANES F32Lanes cos_lanes(F32Lanes x) {
  return sine_of<1>(x, [](float v) { return library::cos(v); });
}

/// E / (E + 2), E = e^2x - 1, whose parts do not cancel: of e^r 2^k - 1 = (e^r - 1) 2^k + (2^k - 1) no k is
/// negative. Where k is 0, r is 2x, and x + ((E - 2x) - x E) / (E + 2) is the same with one rounding of its
/// size.
LAMELLA_LANES F32Lanes tanh_lanes(F32Lanes x) {
  const F32Lanes a = absolute(x);
  const auto [t, bent, less_one] = exp_parts(at_most(a + a, 20.0f));
  const F32Lanes power = power_of_two(t), all = less_one * power + (power - 1.0f);
  const auto near = power == 1.0f;
  const F32Lanes part = (near ? bent - a * all : all) / (all + 2.0f);
  return turned((near ? a : F32Lanes{}) + part, sign_of(x));
}

/// As the bodies: by e^-|x|, which overflows nowhere.
LAMELLA_LANES F32Lanes sigmoid_lanes(F32Lanes x) {
  const F32Lanes e = exp_lanes(-absolute(x));
  return (x >= 0.0f ? all_of<F32Lanes>(1.0f) : e) / (e + 1.0f);
}
LAMELLA_LANES F32Lanes sech_squared_lanes(F32Lanes x) {
  const F32Lanes e = exp_lanes(absolute(x) * -2.0f), d = e + 1.0f, y = e * 4.0f / (d * d);
  return y > 1.0f ? all_of<F32Lanes>(1.0f) : y;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
