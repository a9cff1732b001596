// Blocks of operands that run across the result (transposes), where the result passes the caches.
#pragma once

#include <algorithm>
#include <vector>

#include "lamella/core/plan.h"
#include "lamella/core/thresholds.h"

namespace lamella::kernels {

/// NOTE: [across] Rows of a matrix often lie a power of two apart, where a cache has room for few of their
/// lines, and each in a page of its own. So an operand that runs across is read by blocks, a few whole lines
/// of each of many rows; the block is transposed in two buffers, and its rows, which are parts of the
/// result's, are long enough to be stored past the caches. The block that comes next is asked for meanwhile.
/// On 2,048 rows of f32 64 or 128 of them a block take half of the time of 16 (docs/performance.md).
bool runs_across(const IterPlan& plan, int operand, int64_t item);

/// One of them: where its operands begin, how many indices along dims 0 and 1, and from here to the block
/// that comes next (0, 0: none does).
struct AcrossBlock {
  char* const* at;
  int64_t n0, n1, next0, next1;
};

/// Buffers for blocks of one operand.
class AcrossReader {
 public:
  explicit AcrossReader(int64_t item);
  /// The block's n1 rows of n0 elements, gapless rows `pitch()` bytes apart; valid until the next call.
  const char* read(const IterPlan& plan, int operand, const AcrossBlock& block);
  int64_t pitch() const { return pitch_; }

 private:
  int64_t item_, pitch_, line_;  ///< bytes: of an element, of rows of the result's block and of the operand's
  std::vector<char> lines_, rows_;
};

/// f(block) for each block of the plan: along the operand's rows first.
template <class F> void for_each_across(const IterPlan& plan, F&& f) {
  const int64_t rows = thresholds().across_rows, columns = thresholds().across_columns;
  const int64_t d0 = plan.size(0), d1 = plan.size(1);
  for_each_outer(plan, 2, [&](char* const* base) {
    for (int64_t i = 0; i < d0; i += rows) {
      for (int64_t j = 0; j < d1; j += columns) {
        char* at[IterPlan::kMaxOperands];
        for (int k = 0; k < plan.operands; ++k)
          at[k] = base[k] + i * plan.stride(k, 0) + j * plan.stride(k, 1);
        const bool along = j + columns < d1, below = !along && i + rows < d0;
        f(AcrossBlock{at, std::min(rows, d0 - i), std::min(columns, d1 - j), below ? rows : 0,
                      along   ? columns
                      : below ? -j
                              : 0});
      }
    }
  });
}

}  // namespace lamella::kernels
