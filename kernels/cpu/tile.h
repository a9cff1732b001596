// Blocks of an iteration plan as contiguous runs of one dtype: read where they lie when that is possible,
// through a small buffer when they are strided, broadcast or of another dtype. Promotion costs a tile, not a
// loop per pair of dtypes.
#pragma once

#include <algorithm>

#include "lamella/core/plan.h"
#include "lamella/core/thresholds.h"
#include "lamella/kernels/cpu/cast.h"

namespace lamella::kernels {

/// Room of a buffer in elements, of which thresholds().tile are used: 4 KiB of f32, three operands stay in
/// the first-level cache.
inline constexpr int64_t kTile = kUsualThresholds.tile;
inline constexpr int64_t kMaxItem = 16;

/// The dtype the arithmetic of `compute` runs in: f32 for f16 and bf16.
inline constexpr DType exec_dtype(DType compute) { return is_half(compute) ? DType::F32 : compute; }

/// Reads blocks as `exec`.
class TileReader {
 public:
  void open(DType from, DType exec);
  /// n0 x n1 <= kTile elements at p with byte strides s0, s1; any length where they lie gapless in the exec
  /// dtype. The result is valid until the next read.
  const char* read(const char* p, int64_t s0, int64_t s1, int64_t n0, int64_t n1);
  bool converts() const { return converts_; }
  /// Whether a row of stride s0 can be used where it lies.
  bool direct(int64_t s0) const { return !converts_ && s0 == item_; }
  const Mover& mover() const { return mover_; }
  int64_t item() const { return item_; }

 private:
  Mover mover_, spread_;
  bool converts_ = false;
  int64_t item_ = 0;
  const char* repeated_ = nullptr;  // the element the buffer repeats, with how often
  int64_t repeats_ = 0;
  alignas(64) char buffer_[kTile * kMaxItem];
};

/// The way back: blocks of `exec` results into an operand of dtype `to`.
class TileWriter {
 public:
  void open(DType exec, DType to);
  bool converts() const { return converts_; }
  bool direct(int64_t s0, int64_t s1, int64_t n0, int64_t n1) const;
  char* buffer() { return buffer_; }
  int64_t item() const { return item_; }
  /// Moves n0 x n1 elements from `from` (contiguous) out.
  void write(char* p, int64_t s0, int64_t s1, int64_t n0, int64_t n1, const char* from);

 private:
  Mover mover_;
  bool converts_ = false;
  int64_t item_ = 0;
  alignas(64) char buffer_[kTile * kMaxItem];
};

/// The block a plan is cut into: n0 along dim 0, n1 along dim 1.
struct BlockShape {
  int64_t n0, n1;
};
/// Rows of up to a tile; several short rows at once; squares where an operand runs across (a transpose), so
/// that each of its cache lines is used whole.
BlockShape choose_block(const IterPlan& plan);

/// Calls f(pointers, n0, n1) for each block of `plan`.
template <class F> void for_each_block(const IterPlan& plan, BlockShape shape, F&& f) {
  const int64_t d0 = plan.size(0), d1 = plan.size(1);
  for_each_outer(plan, 2, [&](char* const* base) {
    for (int64_t j = 0; j < d1; j += shape.n1) {
      const int64_t n1 = std::min(shape.n1, d1 - j);
      for (int64_t i = 0; i < d0; i += shape.n0) {
        char* at[IterPlan::kMaxOperands];
        for (int k = 0; k < plan.operands; ++k)
          at[k] = base[k] + i * plan.stride(k, 0) + j * plan.stride(k, 1);
        f(static_cast<char* const*>(at), std::min(shape.n0, d0 - i), n1);
      }
    }
  });
}

/// Moves everything: operand 1 of the plan into operand 0.
void move_plan(const Mover& mover, const IterPlan& plan);

}  // namespace lamella::kernels
