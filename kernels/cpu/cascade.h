// Partial results of tiles, folded in pairs.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "lamella/kernels/cpu/pointwise.h"

namespace lamella::kernels {

/// Partial results like digits of a binary counter: slot i holds the result of 2^i pushes. The error of a sum
/// grows with the logarithm of the number of pushes. Few terms are added in a row before they are pushed
/// (thresholds().terms_in_a_row): equal terms round the same way, half a roundoff a term.
class Cascade {
 public:
  Cascade(LineFn line, int64_t slot_bytes, int64_t count)
      : line_(line), slot_bytes_(slot_bytes), count_(count) {}
  Cascade(const Cascade&) = delete;
  Cascade& operator=(const Cascade&) = delete;
  ~Cascade() { give_back(); }

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
    if (i >= room_) grow(std::max(i + 1, 2 * room_ + 2));
    return slots_ + i * slot_bytes_;
  }
  void reset(int64_t count) { pushed_ = 0, depth_ = 0, count_ = count; }

 private:
  /// To so many slots. Fresh ones hold anything: each is written before it is read.
  void grow(int slots) {
    char* const more = std::allocator<char>().allocate(size_t(slots * slot_bytes_));
    if (room_ > 0) std::memcpy(more, slots_, size_t(room_ * slot_bytes_));
    give_back();
    slots_ = more, room_ = slots;
  }
  void give_back() {
    if (room_ > 0) std::allocator<char>().deallocate(slots_, size_t(room_ * slot_bytes_));
  }
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
  char* slots_ = nullptr;
  int room_ = 0;  ///< slots
};

}  // namespace lamella::kernels
