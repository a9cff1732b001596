// What an element costs a kernel on one thread: what decides whether several threads work, and how much of it
// is a tile.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lamella/core/parallel.h"
#include "lamella/core/thresholds.h"

namespace lamella::kernels::cost {

/// Of `n` elements together, no more than will ever be compared.
inline int64_t of(int64_t n, int64_t each) {
  return int64_t(std::min(double(std::max<int64_t>(n, 1)) * double(each), 1e17));
}

/// Whether `n` elements are worth several threads.
inline bool in_parts(int64_t n, int64_t each) {
  return double(n) * double(each) >= double(thresholds().parallel);
}

/// Whether to share them out just now: as above, or fewer while others are awake to help. Nothing may depend
/// on it but time.
inline bool in_parts_now(int64_t n, int64_t each) {
  if (double(n) * double(each) < double(thresholds().parallel_near)) [[likely]]
    return false;
  return in_parts(n, each) || helpers_near();
}

/// Elements of a tile: a power of two, so that what runs in vectors, squares and pairs is cut between them.
inline int64_t tile_of(int64_t each) {
  return int64_t(std::bit_floor(uint64_t(std::max<int64_t>(thresholds().parallel_tile / each, 1))));
}

}  // namespace lamella::kernels::cost
