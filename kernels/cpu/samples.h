// Normal samples by the library's functions, one at a time: what a key's stream is (docs/random.md).
#pragma once

#include <bit>
#include <cmath>
#include <numbers>

#include "lamella/core/rng.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// What the samples 2b and 2b + 1 are made of: sqrt(-2 log u) times cos and sin of pi/2 f. A bit says in
/// which order they are, another turns both signs: the quarters of the circle.
struct NormalBits {
  uint64_t first, second;  ///< words 0 and 1, 2 and 3 of block b

  /// 1 + the lower 52 bits of x / 2^52.
  static double unit(uint64_t x) {
    return std::bit_cast<double>((x & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  }
  double u() const { return 2 - unit(first >> 12); }     ///< in (0, 1]
  double f() const { return unit(second >> 10) - 1.5; }  ///< in [-1/2, 1/2)
  uint64_t swaps() const { return second >> 62 & 1; }
  uint64_t sign() const { return second & uint64_t{1} << 63; }
};

/// Box and Muller, a pair a block.
inline double sample_normal(uint64_t key, uint64_t i) {
  const auto w = philox({uint32_t(i / 2), uint32_t(i / 2 >> 32), 0u, 0u}, key);
  const NormalBits bits{uint64_t(w[0]) | uint64_t(w[1]) << 32, uint64_t(w[2]) | uint64_t(w[3]) << 32};
  const double t = std::numbers::pi / 2 * bits.f(), size = std::sqrt(-2 * std::log(bits.u()));
  const double z = size * (bits.swaps() == i % 2 ? std::cos(t) : std::sin(t));
  return bits.sign() ? -z : z;
}

/// Version 1: a sample a block, from u1 in (0, 1] and u2 in [0, 1).
inline double sample_normal_1(uint64_t key, uint64_t i) {
  const auto w = philox({uint32_t(i), uint32_t(i >> 32), 0u, 0u}, key);
  const double u1 = 1 - double((uint64_t(w[0]) | uint64_t(w[1]) << 32) >> 11) * 0x1p-53;
  const double u2 = double((uint64_t(w[2]) | uint64_t(w[3]) << 32) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
