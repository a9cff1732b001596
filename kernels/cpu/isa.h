// What one instruction set offers: the same text compiled as scalar, avx2 and avx512 (LAMELLA_BACKEND), one
// table each. Files named isa_*.cpp are compiled three times (cmake/isa-compile says what of inline
// functions). What has thresholds is compiled once more, as the plain text with the lowered ones: tiny, see
// NOTE: [thresholds].
#pragma once

#include <span>

#include "lamella/kernels/kernels.h"

namespace lamella::kernels {

/// n contiguous elements converted.
using CastLineFn = void (*)(void* to, const void* from, int64_t n);
/// One contiguous row of n >= 1 elements; `log` selects log_softmax. out may be in.
using SoftmaxRowFn = void (*)(void* out, const void* in, int64_t n, bool log);
/// Where the first greatest of n >= 1 contiguous elements lies, or the first NaN.
using ArgmaxRowFn = int64_t (*)(const void* in, int64_t n);
/// (in - mean) / sqrt(variance + eps) * weight + bias of one contiguous row of n >= 1 elements; weight and
/// bias of as many, or null.
struct LayerNormRow {
  void* out;
  const void *in, *weight, *bias;
  double eps;
  int64_t n;
  bool past;      ///< out passes the caches, and overlaps nothing: see stream.h
  int64_t ahead;  ///< bytes from `in` to what is asked for meanwhile; 0: nothing is
};
using LayerNormRowFn = void (*)(const LayerNormRow& row);
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

/// Samples first, first + 1, ... first + n - 1 of a key's stream.
using SampleRunFn = void (*)(void* out, uint64_t key, uint64_t first, int64_t n);
/// Lines of 64 bytes past the caches, to where one begins: see stream.h.
using CopyPastFn = void (*)(char* to, const char* from, int64_t lines);

struct Isa {
  const char* name;
  InstructionSet set;
  std::span<const Lines> (*lines)();          ///< by row of bodies/all.h: f32, f64, i32, i64
  std::span<const Folds> (*folds)();          ///< likewise
  CastLineFn (*cast)(DType from, DType to);   ///< the pairs worth SIMD; null otherwise
  SoftmaxRowFn (*softmax)(DType dtype);       ///< f32, f64
  ArgmaxRowFn (*argmax)(DType dtype);         ///< f32, f64, i32, i64; null otherwise
  LayerNormRowFn (*layer_norm)(DType dtype);  ///< f32, f64
  SampleRunFn (*uniform)(DType dtype);        ///< f32; null otherwise
  SampleRunFn (*normal)(DType dtype);         ///< likewise
  GemmFn (*gemm)(DType dtype);                ///< f32, f64
  CopyPastFn copy_past;
};

#define LAMELLA_DECLARE_ISA(isa)               \
  namespace isa {                              \
  std::span<const Lines> simd_lines();         \
  std::span<const Folds> simd_folds();         \
  CastLineFn find_cast(DType from, DType to);  \
  SoftmaxRowFn find_softmax(DType dtype);      \
  ArgmaxRowFn find_argmax(DType dtype);        \
  LayerNormRowFn find_layer_norm(DType dtype); \
  SampleRunFn find_uniform(DType dtype);       \
  SampleRunFn find_normal(DType dtype);        \
  GemmFn find_gemm(DType dtype);               \
  }
LAMELLA_DECLARE_ISA(scalar)
LAMELLA_DECLARE_ISA(avx2)
LAMELLA_DECLARE_ISA(avx512)
LAMELLA_DECLARE_ISA(tiny)
#undef LAMELLA_DECLARE_ISA

/// The instruction set in use: chosen at the first call. While this thread keeps the lowered thresholds,
/// tiny: what has no thresholds there (elementary functions, conversions, matrix tiles) is the chosen one's.
const Isa& isa();
/// The chosen one, also where thresholds are lowered.
InstructionSet widest_set();

// Of the dtypes without a SIMD text: bool, integers other than i32 and i64, complex.
namespace scalar {
std::span<const Lines> plain_lines();
std::span<const Folds> plain_folds();
}  // namespace scalar
namespace tiny {
std::span<const Lines> plain_lines();
std::span<const Folds> plain_folds();
}  // namespace tiny

/// What row `row` of bodies/all.h has for each instruction set up to the chosen one, and for tiny.
std::array<Lines, kInstructionSets> lines_of(size_t row, Takes takes);
/// Likewise of a fold.
std::vector<Folds> folds_of(size_t row);

}  // namespace lamella::kernels
