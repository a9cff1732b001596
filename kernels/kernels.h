// The kernels by name. An operator names one entry; each entry has a text for the CPU and an independent one
// for the oracle.
#pragma once

#include "lamella/core/device.h"
#include "lamella/core/view.h"

namespace lamella::kernels {

/// cpu: SIMD, tiled, threaded. reference: the plainest scalar loop, also for f128 and c256; never optimised.
/// Errors name no operator: who runs a kernel puts the name in front (ops::run).
struct Kernel {
  const char* name;
  KernelFn cpu;
  KernelFn reference;
  /// Null on devices whose memory neither text may touch.
  KernelFn on(Device device) const {
    return device == Device::CPU ? cpu : device == Device::Reference ? reference : nullptr;
  }
};

// Pointwise. outs[0] and every input have the same sizes (broadcast inputs have stride 0). Inputs may have
// any dtypes; each is converted to call.compute, the body runs there, and the result is converted to
// outs[0].dtype. An input whose memory is exactly the output's (same data, same strides) is allowed; partial
// overlap is not and has been refused. Integer arithmetic wraps (two's complement). f16 and bf16 compute in
// f32 and round once at the end.
// clang-format off
#define LAMELLA_POINTWISE_KERNELS(K)                                                                    \
  K(copy) K(neg) K(exp) K(log) K(sin) K(cos) K(tanh) K(sqrt) K(abs) K(sign) K(conj)                     \
  K(logical_not) K(isnan) K(reciprocal)                                                                 \
  K(add) K(sub) K(mul) K(div) K(div_floor) K(div_trunc) K(pow) K(maximum) K(minimum) K(make_complex)    \
  K(eq) K(ne) K(lt) K(le) K(gt) K(ge) K(logical_and) K(logical_or)                                      \
  K(where) /* ins: condition (bool, not converted), a, b */

// Others; see the comment of each.
#define LAMELLA_OTHER_KERNELS(K)                                                                        \
  K(fill)          /* outs[0] = scalars[0] */                                                           \
  K(arange)        /* outs[0][i] = scalars[0] + i * scalars[1], rank 1 */                                \
  K(rand_uniform)  /* ins[0]: keys u64; outs[0].sizes = keys.sizes ++ size, ints[0] = rank of keys */    \
  K(rand_normal)   /* likewise */                                                                       \
  K(fold_in)       /* pointwise on u64: outs[0] = lamella::fold_in(ins[0], ins[1]) (core/rng.h) */        \
  K(sum)           /* outs[0] has ins[0]'s rank; a reduced dim has size 1 there (of any size in ins[0]) */ \
  K(prod)          /* likewise */                                                                       \
  K(amax)          /* likewise; NaN wins; no reduced dim is empty */                                    \
  K(amin)          /* likewise */                                                                       \
  K(argmax)        /* outs[0] i64 as above, one reduced dim ints[0]; first of ties, first NaN wins */ \
  K(cumsum)        /* along ints[0]; outs[0] like ins[0] */                                             \
  K(cumprod)       /* likewise */                                                                       \
  K(softmax)       /* along ints[0]; floating dtypes */                                                 \
  K(log_softmax)   /* likewise */                                                                       \
  K(sort)          /* outs: values, indices i64; ints: dim, descending; always stable; NaN is greatest */ \
  K(flip)          /* ints: the dims to reverse */                                                      \
  K(matmul)        /* outs[0] [B,n,m], ins [B,n,k], [B,k,m]; arbitrary strides, B may have stride 0 */   \
  K(gather)        /* ins: x, index i64 (outs' sizes); ints[0] = dim; other dims: outs.size <= x.size */ \
  K(scatter_add)   /* ins: index i64, src; outs[0] holds self; ints[0] = dim; repeats add in index order */ \
  K(index_select)  /* ins: x, index i64 rank 1; ints[0] = dim */                                        \
  K(nonzero)       /* ins: x; outs[0] i64 [count, rank], row-major order; count is right already */      \
  K(count_nonzero) /* ins: x; outs[0] i64 rank 0 */                                                      \
  K(tril)          /* last two dims; ints[0] = diagonal: keep j - i <= diagonal, zero elsewhere */       \
  K(triu)          /* keep j - i >= diagonal */                                                         \
  K(cholesky)      /* [.., n, n]; ints[0] = upper; reads that triangle, writes zeros in the other; */ \
                   /* Value error naming the lowest failing matrix */ \
  K(solve_triangular) /* ins: A [.., n, n], B [.., n, m]; A X = B; ints: upper, unitriangular */

// clang-format on
#define LAMELLA_DECLARE_KERNEL(name) extern const Kernel name;
LAMELLA_POINTWISE_KERNELS(LAMELLA_DECLARE_KERNEL)
LAMELLA_OTHER_KERNELS(LAMELLA_DECLARE_KERNEL)
#undef LAMELLA_DECLARE_KERNEL

namespace cpu {
#define LAMELLA_DECLARE_FN(name) void name(const KernelCall&);
LAMELLA_POINTWISE_KERNELS(LAMELLA_DECLARE_FN)
LAMELLA_OTHER_KERNELS(LAMELLA_DECLARE_FN)
}  // namespace cpu

namespace reference {
LAMELLA_POINTWISE_KERNELS(LAMELLA_DECLARE_FN)
LAMELLA_OTHER_KERNELS(LAMELLA_DECLARE_FN)
#undef LAMELLA_DECLARE_FN
}  // namespace reference

/// A straight run of a pointwise body: n elements, contiguous, every operand of `compute` dtype, output too
/// (bool for comparisons). Null when the body has no such form for the dtype. The small-tensor path calls it
/// without building a plan.
using LineFn = void (*)(void* out, const void* const* ins, int64_t n);
LineFn cpu_line(const Kernel& kernel, DType compute);  ///< null under lowered thresholds

/// "avx512", "avx2" or "scalar": chosen once at start; LAMELLA_ISA in the environment lowers it. "tiny" where
/// the lowered thresholds are kept, by LAMELLA_ISA or in a scope: see NOTE: [thresholds].
const char* cpu_isa();

}  // namespace lamella::kernels
