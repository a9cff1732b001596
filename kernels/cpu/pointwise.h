// The pointwise runner: one plan, one line per (op, dtype), tiles for everything that is not gapless in the
// exec dtype.
#pragma once

#include "lamella/core/check.h"
#include "lamella/kernels/cpu/tile.h"

namespace lamella::kernels {

std::string_view op_name(Op op);

/// How `op` runs for a compute dtype: its line, what the line reads and what it writes.
struct Execution {
  LineFn line;
  DType in, out;
};
/// Fails with DType when the op has no text for `compute`. `exec` is compute, or f32 for f16 and bf16.
Execution find_execution(Op op, DType compute, DType exec);

/// All of a pointwise kernel.
void run_pointwise(Op op, const KernelCall& call);

/// "kernel: no NAME for DTYPE".
[[noreturn]] void fail_dtype(std::string_view kernel, DType dtype);

}  // namespace lamella::kernels
