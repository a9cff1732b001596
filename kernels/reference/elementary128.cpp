// Fixed point: an unsigned integer stands for itself times 2^-128. Every step rounds down by less than one
// unit, so an error after six doublings is below 2^-119, 1/64 of what half a unit in the last place of f128
// is.
#include "lamella/kernels/reference/elementary128.h"

#include <array>
#include <bit>
#include <limits>
#include <quadmath.h>

namespace lamella::kernels::reference {

namespace {

using Fixed = unsigned __int128;

constexpr int kFraction = 112;  ///< stored bits of f128 behind the leading one
constexpr int kBias = 16383;
constexpr Fixed kLeading = Fixed(1) << kFraction;

constexpr Fixed make_fixed(uint64_t high, uint64_t low) { return Fixed(high) << 64 | low; }

constexpr Fixed kLn2 = make_fixed(0xB17217F7D1CF79ABu, 0xC9E3B39803F2F6AFu);
constexpr uint64_t kLn2Rest = 0x40F343267298B62Du;  ///< 64 bits more

/// a b, rounded down.
Fixed times(Fixed a, Fixed b) {
  const uint64_t a1 = uint64_t(a >> 64), a0 = uint64_t(a), b1 = uint64_t(b >> 64), b0 = uint64_t(b);
  const Fixed low = Fixed(a0) * b0, cross = Fixed(a1) * b0, other = Fixed(a0) * b1;
  const Fixed middle = (low >> 64) + uint64_t(cross) + uint64_t(other);
  return Fixed(a1) * b1 + (cross >> 64) + (other >> 64) + (middle >> 64);
}

/// 1/n! for n = 2, 3, ...
template <size_t N> constexpr std::array<Fixed, N> inverse_factorials() {
  std::array<Fixed, N> out{};
  Fixed c = Fixed(1) << 127;
  for (size_t n = 0; n < N; ++n) out[n] = c, c /= n + 3;
  return out;
}

/// (e^z - 1 - z) / z^2 by N terms.
template <size_t N> Fixed series(Fixed z) {
  static constexpr auto c = inverse_factorials<N>();
  Fixed sum = c[N - 1];
  for (size_t n = N - 1; n-- > 0;) sum = c[n] + times(sum, z);
  return sum;
}

struct Parts {
  bool negative;
  int exponent;  ///< |x| = mantissa 2^(exponent - 112); of a subnormal, of the smallest normal
  Fixed mantissa;
};
Parts parts_of(f128 x) {
  const Fixed bits = std::bit_cast<Fixed>(x);
  const int stored = int(bits >> kFraction) & 0x7FFF;
  return {bool(bits >> 127), stored - kBias, (bits & (kLeading - 1)) | kLeading};
}

/// The fraction of |x|, rounded down; whole numbers in it are lost.
Fixed fraction_of(const Parts& x) {
  const int shift = x.exponent + 128 - kFraction;
  return shift <= -128 ? 0 : shift < 0 ? x.mantissa >> -shift : shift < 128 ? x.mantissa << shift : 0;
}

f128 from_fixed(Fixed v) {
  return v == 0 ? 0 : std::bit_cast<f128>(std::bit_cast<Fixed>(f128(v)) - 128 * kLeading);
}

/// e^x = 2^k (1 + less_one), 0 <= less_one < 1.
struct Power {
  int k;
  Fixed less_one;
};

/// For |x| < 2^14.
Power power(f128 x) {
  const Parts p = parts_of(x);
  Power out{int(__builtin_floor(double(x) * 0x1.71547652b82fep0)), 0};
  const uint64_t k = uint64_t(out.k < 0 ? -out.k : out.k);
  const Fixed multiple = k * kLn2 + (Fixed(k) * kLn2Rest >> 64);  // its fraction
  Fixed r = (p.negative ? -fraction_of(p) : fraction_of(p)) + (out.k < 0 ? multiple : -multiple);
  // The estimate of k may be off by one next to a multiple of ln 2: then r lies just below 1, or beyond ln 2.
  if (r >> 124 == 15) r += kLn2, --out.k;
  else if (r >= kLn2) r -= kLn2, ++out.k;
  constexpr int kHalvings = 6;
  const Fixed s = r >> kHalvings;
  out.less_one = s + times(times(series<14>(s), s), s);
  for (int i = 0; i < kHalvings; ++i) out.less_one = 2 * out.less_one + times(out.less_one, out.less_one);
  return out;
}

/// e^z - 1 for 0 < z < 80, to relative roundoff.
f128 exp_less_one(f128 z) {
  if (z < f128(0.25))
    return z + z * from_fixed(times(series<25>(fraction_of(parts_of(z))), fraction_of(parts_of(z))));
  const Power e = power(z);
  const f128 scale = f128(Fixed(1) << e.k);  // k < 116
  return (scale - 1) + scale * from_fixed(e.less_one);
}

}  // namespace

f128 exp128(f128 x) {
  if (x != x) return x;
  if (x > 11357) return std::numeric_limits<double>::infinity();
  if (x < -11434) return 0;
  if (x == 0) return 1;
  const Power e = power(x);
  const Fixed rounded = (e.less_one >> 1) + (Fixed(1) << 14);  // may carry into the exponent
  const Fixed mantissa = rounded >> 15;
  if (e.k >= -16382 && e.k < 16383) return std::bit_cast<f128>(Fixed(e.k + kBias) * kLeading + mantissa);
  return scalbnq(std::bit_cast<f128>(Fixed(kBias) * kLeading + mantissa), e.k);
}

f128 tanh128(f128 x) {
  if (x != x || fabsq(x) < ldexpq(1, -60)) return x;
  const f128 size = fabsq(x);
  f128 out = 1;
  if (size < 40) {
    const f128 t = exp_less_one(2 * size);
    out = size < 1 ? t / (t + 2) : 1 - 2 / (t + 2);
  }
  return copysignq(out, x);
}

}  // namespace lamella::kernels::reference
