// Normal samples by the library's functions, one at a time: what a key's stream is.
#pragma once

#include <cmath>
#include <numbers>

#include "lamella/core/rng.h"

namespace lamella::kernels::LAMELLA_BACKEND {

// Box and Muller, one sample a block: u1 in (0, 1], u2 in [0, 1).
inline double sample_normal(uint64_t key, uint64_t i) {
  const auto w = philox({uint32_t(i), uint32_t(i >> 32), 0u, 0u}, key);
  const double u1 = 1 - double((uint64_t(w[0]) | uint64_t(w[1]) << 32) >> 11) * 0x1p-53;
  const double u2 = double((uint64_t(w[2]) | uint64_t(w[3]) << 32) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
