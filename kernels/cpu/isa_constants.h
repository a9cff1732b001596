// Lines of arithmetic of which one operand is a number: what an instruction set has of them, see isa.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamella/core/dtype.h"

namespace lamella::kernels {

/// n contiguous elements, all of one dtype, and a number of it; out may be in.
using ConstantLineFn = void (*)(void* out, const void* in, const void* number, int64_t n);
/// By the operand that the number is; null where the body has no such line.
struct ConstantLines {
  ConstantLineFn left = nullptr, right = nullptr;
};

#define LAMELLA_DECLARE_CONSTANT_LINES(isa)                   \
  namespace isa {                                             \
  ConstantLines find_constant_lines(size_t row, DType dtype); \
  }
LAMELLA_DECLARE_CONSTANT_LINES(scalar)
LAMELLA_DECLARE_CONSTANT_LINES(avx2)
LAMELLA_DECLARE_CONSTANT_LINES(avx512)
#undef LAMELLA_DECLARE_CONSTANT_LINES

}  // namespace lamella::kernels
