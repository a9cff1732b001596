// The pointwise runner: one plan, one line per (kernel, dtype), tiles for everything that is not gapless in
// the exec dtype.
#pragma once

#include "lamella/core/check.h"
#include "lamella/kernels/bodies/all.h"
#include "lamella/kernels/cpu/tile.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels {

/// What a kernel has for this dtype, from the instruction set in use. Null when there is none.
inline LineFn line_of(const Kernel& kernel, DType dtype) {
  return kernel.lines[size_t(isa().set)][size_t(dtype)];
}
/// Likewise of the kernel of a body.
template <class B> LineFn line_of(DType dtype) {
  static const Kernel& kernel = all_kernels()[scalar::row_of<B>()];
  return line_of(kernel, dtype);
}

/// "no kernel NAME for DTYPE".
[[noreturn]] void fail_dtype(std::string_view kernel, DType dtype);

}  // namespace lamella::kernels
