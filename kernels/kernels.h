// The kernels: what runs for an operator, by name. Each has a text for the CPU and an independent one for the
// oracle.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "lamella/core/device.h"
#include "lamella/core/view.h"
#include "lamella/kernels/bodies/row.h"

namespace lamella::kernels {

// Pointwise. outs[0] and every input have the same sizes (broadcast inputs have stride 0). Inputs may have
// any dtypes; each is converted to call.compute, the body runs there, and the result is converted to
// outs[0].dtype. An input whose memory is exactly the output's (same data, same strides) is allowed; partial
// overlap is not and has been refused. Integer arithmetic wraps (two's complement). f16 and bf16 compute in
// f32 and round once at the end.
//
// The others, by the operators that have a kernel of their own:
//   fill           outs[0] = scalars[0]
//   arange         outs[0][i] = scalars[0] + i * scalars[1], rank 1
//   rand_uniform   ins[0]: keys u64; outs[0].sizes = keys.sizes ++ size, ints[0] = rank of keys
//   rand_normal    likewise; ints[1]: the version of the stream
//   folds          (sum prod amax amin, ...) outs[0] has ins[0]'s rank; a reduced dim has size 1 there (of
//   any
//                  size in ins[0]); amax, amin: NaN wins, no reduced dim is empty
//   argmax         outs[0] i64 as above, one reduced dim ints[0]; first of ties, first NaN wins
//   cumsum cumprod along ints[0]; outs[0] like ins[0]
//   layer_norm     f32, f64, gapless and of one dtype; ins: x, weight if ints[1], bias if ints[2]; ints[0]:
//                  how many of the last dims are a row; scalars[0]: eps. Has no text for the oracle
//   var            f32, f64, gapless; outs[0]: one result a row, in order; ints[0]: elements of a row;
//                  scalars[0]: what squares are divided by. Has no text for the oracle
//   softmax log_softmax  along ints[0]; floating dtypes
//   sort           outs: values, indices i64; ints: dim, descending; always stable; NaN is greatest
//   flip           ints: the dims to reverse
//   matmul         outs[0] [B,n,m], ins [B,n,k], [B,k,m]; arbitrary strides, B may have stride 0
//   gather         ins: x, index i64 (outs' sizes); ints[0] = dim; other dims: outs.size <= x.size
//   scatter_add    ins: x, index i64, src; ints[0] = dim; x, and what repeats adds in index order
//   index_select   ins: x, index i64 rank 1; ints[0] = dim
//   nonzero        ins: x; outs[0] i64 [count, rank], row-major order; count is right already
//   count_nonzero  ins: x; outs[0] i64 rank 0
//   tril triu      last two dims; ints[0] = diagonal: keep j - i <= (triu: >=) diagonal, zero elsewhere
//   cholesky       [.., n, n]; ints[0] = upper; reads that triangle, writes zeros in the other; error value
//                  naming the lowest failing matrix
//   solve_triangular     ins: A [.., n, n], B [.., n, m]; A X = B; ints: upper, unitriangular
//   fold_in        pointwise on u64: outs[0] = lamella::fold_in(ins[0], ins[1]) (core/rng.h)
//   where          pointwise; ins: condition (bool, not converted), a, b
//   make_complex   pointwise; ins: the parts

/// A straight run of a pointwise body: n elements, contiguous, every operand of `compute` dtype, output too
/// (bool for comparisons).
using LineFn = void (*)(void* out, const void* const* ins, int64_t n);
/// By dtype; null where the body has no such form.
using Lines = std::array<LineFn, kDTypeCount>;

/// n >= 1 contiguous elements folded into the state *out. `ahead`: how many bytes before they are read memory
/// is asked for them; 0 where they lie in a near cache.
using FoldFn = void (*)(void* out, const void* in, int64_t n, int64_t ahead);
/// Rows that FoldLines::rows takes at once.
inline constexpr int kRowsAtOnce = 8;
/// A fold over one dtype, whose state has `state_size` bytes: see bodies/folds.h.
struct FoldLines {
  FoldFn fold = nullptr;   ///< null where the fold does not take the dtype
  LineFn first = nullptr;  ///< states from elements; null: they are the same
  LineFn step = nullptr;   ///< from states and elements
  LineFn merge = nullptr;
  LineFn result = nullptr;  ///< elements from states; null: they are the same
  int64_t state_size = 0;
  LineFn rows =
      nullptr;  ///< kRowsAtOnce rows of elements, or of states and elements, in their order; or null
};
using Folds = std::array<FoldLines, kDTypeCount>;
inline constexpr int64_t kMaxFoldState = 16;  ///< bytes of the largest state

/// The dtype of an operator's result as the oracle's row states it; see StatedTypes in dispatch/column.h.
enum class Result : uint8_t { Unsaid, Promoted, Floating, First, Bool };

/// For which texts are compiled; see cpu_isa().
enum class InstructionSet : uint8_t { Scalar, Avx2, Avx512, Tiny };
inline constexpr size_t kInstructionSets = 4;

/// cpu: SIMD, tiled, threaded. reference: the plainest scalar loop, also for f128 and c256; never optimised.
/// Errors name no operator: who runs a kernel puts the name in front (ops::run).
struct Kernel {
  std::string_view name;
  KernelFn cpu = nullptr;
  KernelFn reference = nullptr;
  std::string_view threshold_name =
      {};  ///< the kernel whose rows of core/thresholds.h are its own; "": itself

  // What the oracle's row states.
  Takes operands = Takes::All;
  Result result = Result::Unsaid;
  bool refuses_zero = false;  ///< an integer 0 as the second operand

  // Of pointwise bodies and folds: their row, and their lines by instruction set.
  Takes takes = {};
  Gives gives = {};
  Also also = {};
  Order order = {};
  double over_nothing = 0;
  std::array<Lines, kInstructionSets> lines = {};
  std::vector<Folds> folds = {};

  /// Null on devices whose memory neither text may touch.
  KernelFn on(Device device) const {
    return device == Device::CPU ? cpu : device == Device::Reference ? reference : nullptr;
  }
  /// The line of the chosen instruction set where a bare one does: operands of one dtype, nothing to be seen
  /// to besides. Null otherwise, and under lowered thresholds. The small-tensor path calls it without
  /// building a plan.
  LineFn straight(DType compute) const;
};

/// The kernel of this name. Error internal where there is none.
const Kernel& named(std::string_view name);

/// An operand of run_buffered: elements without gaps, as many as the line has, or one that is `repeated`.
struct LineOperand {
  const void* data;
  DType dtype;
  bool repeated;
};
/// A line of two operands over n elements where these are not of the line's `dtype` or repeat one: they are
/// read into buffers. Results as of a plan over them. REQUIRES: n is at most the usual `tile` of
/// core/thresholds.h; `out` shares no memory with an operand, or is one that is read where it lies; neither
/// dtype is f128 or c256.
void run_buffered(LineFn line, void* out, std::span<const LineOperand, 2> ins, DType dtype, int64_t n);

/// Another text for a kernel's work on the CPU, by a name of its own: `lamella bench` compares them.
struct AlternativeText {
  std::string_view kernel, name;
  KernelFn run;
  std::string_view what;     ///< how it goes about it
  double adds_in_a_row = 0;  ///< additions that a term takes; 0: as many as the kernel's own
};
/// Each takes whatever the kernel takes: what it does not do itself it leaves to the kernel.
std::vector<AlternativeText> alternative_texts();

/// "avx512", "avx2" or "scalar": chosen once at start; LAMELLA_ISA in the environment lowers it (error usage
/// for another word). "tiny" where the lowered thresholds are kept, by LAMELLA_ISA or in a scope: see NOTE:
/// [thresholds].
const char* cpu_isa();

}  // namespace lamella::kernels
