// Choosing lines beside a number, and running plans by them.
#include "lamella/kernels/cpu/constant_lines.h"

#include <algorithm>

#include "lamella/kernels/cpu/stream.h"
#include "lamella/kernels/cpu/tile.h"

namespace lamella::kernels {
namespace {

/// The place of a pointwise kernel among all, which is its body's row.
size_t row_of(const Kernel& kernel) { return size_t(&kernel - all_kernels().data()); }

/// A row of n elements, a tile at a time through a buffer that stays in the first-level cache.
[[gnu::noinline]] void stream_row(ConstantLineFn line, char* out, const char* in, const char* number,
                                  int64_t n, int64_t item) {
  alignas(64) char buffer[kTile * sizeof(double)];
  const int64_t tile = stream_tile(item);
  for (int64_t i = 0; i < n; i += tile) {
    const int64_t count = std::min(tile, n - i);
    line(buffer, in + i * item, number, count);
    stream(out + i * item, buffer, count * item);
  }
}

}  // namespace

// With lowered thresholds, too: there are none in these texts.
ConstantLines constant_lines(size_t row, DType dtype) {
  switch (isa().set) {
    case InstructionSet::Avx512: return avx512::find_constant_lines(row, dtype);
    case InstructionSet::Avx2: return avx2::find_constant_lines(row, dtype);
    default: return scalar::find_constant_lines(row, dtype);
  }
}

bool run_beside_number(const Kernel& kernel, const KernelCall& call, DType exec, const IterPlan& plan,
                       bool streams) {
  if (plan.operands != 3 || plan.size(0) < thresholds().long_run) return false;
  const int64_t item = itemsize(exec), a = plan.stride(1, 0), b = plan.stride(2, 0);
  const bool left = a == 0 && b == item;
  if (plan.stride(0, 0) != item || (!left && (a != item || b != 0))) return false;
  if (call.outs[0].dtype != exec || call.ins[0].dtype != exec || call.ins[1].dtype != exec) return false;
  const ConstantLines lines = constant_lines(row_of(kernel), exec);
  const ConstantLineFn line = left ? lines.left : lines.right;
  if (!line) return false;
  const int64_t n = plan.size(0);
  const int row = left ? 2 : 1, number = 3 - row;
  for_each_outer(plan, 1, [&](char* const* at) {
    if (streams) stream_row(line, at[0], at[row], at[number], n, item);
    else line(at[0], at[row], at[number], n);
  });
  if (streams) end_streams();
  return true;
}

}  // namespace lamella::kernels
