// 16-bit floating-point storage types. Arithmetic happens in f32: these convert, nothing more.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [rounded once] `x` as the float from which f16 and bf16 are rounded as from x itself: where f32 does
/// not hold x, of its two neighbours the one whose last bit is 1 (S. Boldo and G. Melquiond, Emulation of FMA
/// and correctly rounded sums: proved algorithms using rounding to odd, IEEE Trans. Computers 57, 2008). The
/// nearest float may be a tie of halves where x was none: 1 + 2^-11 + 2^-40 would become 1 in f16.
template <class X> float rounded_to_odd(X x) {
  if constexpr (std::is_integral_v<X> && sizeof(X) == 8) {
    const bool negative = std::is_signed_v<X> && x < X(0);
    uint64_t m = negative ? 0 - uint64_t(x) : uint64_t(x);
    if (m >> 53) m = (m & ~uint64_t{0x7ff}) | (m & 0x7ff ? 0x800 : 0);  // odd in f64 first
    return rounded_to_odd(negative ? -double(m) : double(m));
  } else if constexpr (std::is_integral_v<X>) {
    return rounded_to_odd(double(x));
  } else {
    const float nearest = float(x);
    const uint32_t u = std::bit_cast<uint32_t>(nearest);
    if (X(nearest) == x || x != x || u & 1) return nearest;
    const bool inside = u >> 31 ? X(nearest) > x : X(nearest) < x;  // |nearest| < |x|
    return std::bit_cast<float>(inside ? u + 1 : u - 1);
  }
}
/// What halves are made of beside float.
template <class X> inline constexpr bool is_wide_number =
    std::is_arithmetic_v<X> && !std::is_same_v<X, float>;  // and f128: core/visit.h

/// IEEE 754 binary16. Conversion from any number rounds once, to nearest, ties to even (IEEE
/// 754-2019, 4.3.1).
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  f16(float value) : bits(encode(value)) {}
  template <class X>
  requires is_wide_number<X> f16(X value) : bits(encode(rounded_to_odd(value))) {}
  operator float() const { return decode(bits); }

  static uint16_t encode(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint16_t sign = uint16_t((u >> 16) & 0x8000u);
    const uint32_t mag = u & 0x7fffffffu;
    if (mag > 0x7f800000u) return uint16_t(sign | 0x7e00u | ((mag >> 13) & 0x1ffu));
    if (mag >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // rounds to 65536 or beyond
    if (mag < 0x38800000u) {  // subnormal or zero: scale so that the FPU rounds
      const float scaled = std::bit_cast<float>(mag) + std::bit_cast<float>(0x3f000000u);
      return uint16_t(sign | uint16_t(std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
    }
    const uint32_t rounded = mag + 0xfffu + ((mag >> 13) & 1u);
    return uint16_t(sign | uint16_t((rounded - 0x38000000u) >> 13));
  }

  static float decode(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000u) << 16;
    const uint32_t mag = h & 0x7fffu;
    // A NaN becomes quiet, as the conversion of F16C makes it: pow(1, x) tells the two kinds apart.
    const uint32_t quiet = mag > 0x7c00u ? 0x400000u : 0u;
    if (mag >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | quiet | ((mag & 0x3ffu) << 13));
    if (mag >= 0x0400u) return std::bit_cast<float>(sign | ((mag << 13) + 0x38000000u));
    const float value = float(mag) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
};

/// bfloat16: the upper half of a binary32. Rounds once, to nearest, ties to even.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  bf16(float value) : bits(encode(value)) {}
  template <class X>
  requires is_wide_number<X> bf16(X value) : bits(encode(rounded_to_odd(value))) {}
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }

  static uint16_t encode(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40u);
    return uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

}  // namespace lamella
LAMELLA_API_END
