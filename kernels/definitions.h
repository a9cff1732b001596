// Plain definitions of operators that are composites of others: kernels of the reference column alone.
#pragma once

#include "lamella/core/view.h"
#include "lamella/core/visit.h"

namespace lamella::kernels::reference {

// The oracle would otherwise run the same composite as the CPU, over other kernels: a wrong formula would be
// wrong on both. Each result is computed here from the arguments' elements by their indices, in f128 (c256)
// where it is inexact, and rounded once. `ints` hold what no view shows.

/// outs[0] = ins[0], element by element in row-major order, in whatever sizes. ints[0]: 0 as they are, 1
/// conjugated; a real outs[0] takes the real parts.
void in_row_major_order(const KernelCall& call);
/// outs[0] has one dim more than each of ins, at ints[0]: element [.., k, ..] is element [.., ..] of ins[k].
void stacked(const KernelCall& call);
/// outs[k][.., i, ..] = ins[0][.., ints[1 + k] + i, ..] along the dim ints[0].
void cut(const KernelCall& call);
/// outs[0] = the sum of ins[0] over the dims d with ints[d] != 0, divided by the count; the other dims are
/// those of outs[0] in order, where reduced ones have size 1 or are missing. Elements count in call.compute.
void mean(const KernelCall& call);
/// outs[0] = the sum of |x - mean|^2 for the x of ins[0] over the dims d with ints[d] != 0, divided by their
/// count less scalars[0]; NaN where that is not positive, and over nothing. Dims as of mean.
void variance(const KernelCall& call);
void deviation(const KernelCall& call);  ///< its square root
/// outs[0] = the sum of ins[0] over the leading dims it has more and over those where outs[0] has size 1.
void summed_to(const KernelCall& call);
/// outs: normalised x, mean, 1 / sqrt(var + eps), the latter two with size 1 in the last ints[0] dims, over
/// which they are taken; only the first may be wanted. ins: x, then weight if ints[1], bias if ints[2].
/// scalars[0]: eps.
void normalised(const KernelCall& call);
/// Product over the last dim of ins[0] and the second to last of ins[1], batch dims broadcast; a vector is
/// one row or column, which outs[0] does not have.
void product(const KernelCall& call);
/// A composite's result from one element of each of its tensors and its numbers, by the kind of number; null:
/// it takes none of that kind. Integers count modulo 2^64.
struct ElementFns {
  f128 (*real)(const f128* x, const f128* numbers) = nullptr;
  c256 (*complex)(const c256* x, const c256* numbers) = nullptr;
  uint64_t (*integer)(const uint64_t* x, const uint64_t* numbers) = nullptr;
};
/// outs[0] = fns of the elements of ins, which have its sizes, and of scalars: in call.compute, rounded once.
void each_element(const KernelCall& call, const ElementFns& fns);
/// outs[0][at] = ins[0][source(at, sizes, ints)], in place: `at` becomes the index of the element that comes
/// there.
void moved(const KernelCall& call,
           void (*source)(int64_t* at, std::span<const int64_t> sizes, std::span<const int64_t> ints));
/// outs[0][.., i] = fold_in(ins[0][..], i), u64.
void keys_of(const KernelCall& call);

}  // namespace lamella::kernels::reference
