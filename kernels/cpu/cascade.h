// Partial results of tiles, folded in pairs.
#pragma once

#include <vector>

#include "lamella/kernels/cpu/pointwise.h"

namespace lamella::kernels {

/// Partial results like digits of a binary counter: slot i holds the result of 2^i pushes. The error of a sum
/// grows with the logarithm of the number of pushes. Few terms are added in a row before they are pushed
/// (thresholds().terms_in_a_row): equal terms round the same way, half a roundoff a term.
class Cascade {
 public:
  Cascade(LineFn line, int64_t slot_bytes, int64_t count)
      : line_(line), slot_bytes_(slot_bytes), count_(count) {}

  /// Takes the partial at slot(depth()).
  void push() {
    for (uint64_t carry = pushed_++; carry & 1; carry >>= 1) fold_top();
    ++depth_;
  }
  void finish() {
    while (depth_ > 1) {
      --depth_;
      fold_top();
      ++depth_;
    }
  }
  int depth() const { return depth_; }
  char* slot(int i) {
    if (slots_.size() < size_t((i + 1) * slot_bytes_)) slots_.resize(size_t((i + 1) * slot_bytes_));
    return slots_.data() + i * slot_bytes_;
  }
  void reset(int64_t count) { pushed_ = 0, depth_ = 0, count_ = count; }

 private:
  /// slot(depth) is folded into the one below it.
  void fold_top() {
    --depth_;
    char* into = slot(depth_);
    const void* ins[] = {into, into + slot_bytes_};
    line_(into, ins, count_);
  }

  LineFn line_;
  int64_t slot_bytes_, count_;
  int depth_ = 0;
  uint64_t pushed_ = 0;
  std::vector<char> slots_;
};

}  // namespace lamella::kernels
