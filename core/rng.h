// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy
// as 1, 2, 3, SC 2011).
#pragma once

#include <array>
#include <cstdint>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Versions of the streams in docs/random.md, from 1.
inline constexpr uint8_t kLatestRandomStream = 2;

/// Four 32-bit words from a 128-bit counter and a 64-bit key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, uint64_t key) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1, uint32_t(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// A new key from a key and a number; the counter's third word (1) keeps keys apart from samples, which use
/// 0.
constexpr uint64_t fold_in(uint64_t key, uint64_t data) {
  const auto w = philox({uint32_t(data), uint32_t(data >> 32), 1u, 0u}, key);
  return uint64_t(w[0]) | uint64_t(w[1]) << 32;
}

/// Uniform in [0, 1), element `i` of the stream of `key`: block i, words 0 and 1, 53 bits.
inline double uniform_at(uint64_t key, uint64_t i) {
  const auto w = philox({uint32_t(i), uint32_t(i >> 32), 0u, 0u}, key);
  return double((uint64_t(w[0]) | uint64_t(w[1]) << 32) >> 11) * 0x1p-53;
}

}  // namespace lamella
LAMELLA_API_END
