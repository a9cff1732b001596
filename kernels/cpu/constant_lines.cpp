// Choosing lines beside a number, and running plans by them.
#include "lamella/kernels/cpu/constant_lines.h"

#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels {
namespace {

/// The place of a pointwise kernel among all, which is its body's row.
size_t row_of(const Kernel& kernel) { return size_t(&kernel - all_kernels().data()); }

}  // namespace

// With lowered thresholds, too: there are none in these texts, and so small cases reach them.
ConstantLines constant_lines(size_t row, DType dtype) {
  switch (widest_set()) {
    case InstructionSet::Avx512: return avx512::find_constant_lines(row, dtype);
    case InstructionSet::Avx2: return avx2::find_constant_lines(row, dtype);
    default: return scalar::find_constant_lines(row, dtype);
  }
}
StreamLines stream_lines(const Kernel& kernel, DType dtype) {
  switch (widest_set()) {
    case InstructionSet::Avx512: return avx512::find_stream_lines(row_of(kernel), dtype);
    case InstructionSet::Avx2: return avx2::find_stream_lines(row_of(kernel), dtype);
    default: return scalar::find_stream_lines(row_of(kernel), dtype);
  }
}

bool run_beside_number(const Kernel& kernel, const KernelCall& call, DType exec, const IterPlan& plan,
                       bool streams) {
  if (plan.operands != 3 || plan.size(0) < thresholds().long_run) return false;
  const int64_t item = itemsize(exec), a = plan.stride(1, 0), b = plan.stride(2, 0);
  const bool left = a == 0 && b == item;
  if (plan.stride(0, 0) != item || (!left && (a != item || b != 0))) return false;
  if (call.outs[0].dtype != exec || call.ins[0].dtype != exec || call.ins[1].dtype != exec) return false;
  const ConstantLines lines =
      streams ? stream_lines(kernel, exec).beside : constant_lines(row_of(kernel), exec);
  const ConstantLineFn line = left ? lines.left : lines.right;
  if (!line) return false;
  const int64_t n = plan.size(0);
  const int row = left ? 2 : 1, number = 3 - row;
  for_each_outer(plan, 1, [&](char* const* at) { line(at[0], at[row], at[number], n); });
  if (streams) end_streams();
  return true;
}

}  // namespace lamella::kernels
