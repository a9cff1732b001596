// 16-bit floating-point storage types. Arithmetic happens in f32: these convert, nothing more.
#pragma once

#include <bit>
#include <cstdint>

namespace lamella {

/// IEEE 754 binary16. Conversion from float rounds to nearest, ties to even (IEEE 754-2019, 4.3.1).
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  f16(float value) : bits(encode(value)) {}
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
    if (mag >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((mag & 0x3ffu) << 13));
    if (mag >= 0x0400u) return std::bit_cast<float>(sign | ((mag << 13) + 0x38000000u));
    const float value = float(mag) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
};

/// bfloat16: the upper half of a binary32. Rounds to nearest, ties to even.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  bf16(float value) : bits(encode(value)) {}
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }

  static uint16_t encode(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40u);
    return uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

}  // namespace lamella
