// What one instruction set offers: the same text compiled as scalar, avx2 and avx512 (LAMELLA_BACKEND), one
// table each. Files named isa_*.cpp are compiled three times. They must not use inline functions of std:: or
// of core headers: the linker keeps one copy of such a function, and it could be the one built for a
// processor that is not there. What has thresholds is compiled once more, as the plain text with the lowered
// ones: tiny, see NOTE: [thresholds].
#pragma once

#include "lamella/kernels/kernels.h"

namespace lamella::kernels {

/// The pointwise bodies: the names of LAMELLA_POINTWISE_KERNELS, then fold_in.
enum class Op : uint8_t {
#define LAMELLA_OP_NAME(name) name,
  LAMELLA_POINTWISE_KERNELS(LAMELLA_OP_NAME)
#undef LAMELLA_OP_NAME
      fold_in,
  kCount
};

/// n contiguous elements converted.
using CastLineFn = void (*)(void* to, const void* from, int64_t n);
/// n >= 1 contiguous elements folded into *out.
using FoldFn = void (*)(void* out, const void* in, int64_t n);
/// One contiguous row of n >= 1 elements; `log` selects log_softmax. out may be in.
using SoftmaxRowFn = void (*)(void* out, const void* in, int64_t n, bool log);
/// C = A B for one matrix; strides count elements; B's and C's columns are contiguous.
struct GemmCall {
  int64_t n, k, m;
  const void* a;
  int64_t a_row, a_col;
  const void* b;
  int64_t b_row;
  void* c;
  int64_t c_row;
};
using GemmFn = void (*)(const GemmCall&);

struct Isa {
  const char* name;
  LineFn (*line)(Op op, DType dtype);        ///< f32, f64, i32, i64; null otherwise
  CastLineFn (*cast)(DType from, DType to);  ///< the pairs worth SIMD; null otherwise
  FoldFn (*fold)(Op op, DType dtype);        ///< add, mul, maximum, minimum for f32, f64, i32, i64
  SoftmaxRowFn (*softmax)(DType dtype);      ///< f32, f64
  GemmFn (*gemm)(DType dtype);               ///< f32, f64
};

#define LAMELLA_DECLARE_ISA(isa)              \
  namespace isa {                             \
  LineFn find_line(Op op, DType dtype);       \
  CastLineFn find_cast(DType from, DType to); \
  FoldFn find_fold(Op op, DType dtype);       \
  SoftmaxRowFn find_softmax(DType dtype);     \
  GemmFn find_gemm(DType dtype);              \
  }
LAMELLA_DECLARE_ISA(scalar)
LAMELLA_DECLARE_ISA(avx2)
LAMELLA_DECLARE_ISA(avx512)
LAMELLA_DECLARE_ISA(tiny)
#undef LAMELLA_DECLARE_ISA

/// The instruction set in use: chosen at the first call. While this thread keeps the lowered thresholds,
/// tiny: what has no thresholds there (elementary functions, conversions, matrix tiles) is the chosen one's.
const Isa& isa();

/// The body of `op` over contiguous operands of `dtype` (where: its item size counts), from the chosen
/// instruction set or from the plain texts for the other dtypes. Null when there is none.
LineFn find_body(Op op, DType dtype);
/// Likewise for folding; null when there is none.
FoldFn find_fold_body(Op op, DType dtype);

#define LAMELLA_DECLARE_PLAIN(isa)                                                     \
  namespace isa {                                                                      \
  LineFn find_small_line(Op op, DType dtype); /* bool, integers other than i32, i64 */ \
  LineFn find_complex_line(Op op, DType dtype);                                        \
  FoldFn find_other_fold(Op op, DType dtype);                                          \
  }
LAMELLA_DECLARE_PLAIN(scalar)
LAMELLA_DECLARE_PLAIN(tiny)
#undef LAMELLA_DECLARE_PLAIN

}  // namespace lamella::kernels
