// Arithmetic of which one operand is a number along a whole line: rows beside a column, tensors beside a
// number.
#pragma once

#include "lamella/core/plan.h"
#include "lamella/kernels/cpu/isa_streams.h"
#include "lamella/kernels/cpu/pointwise.h"

namespace lamella::kernels {

/// What row `row` of bodies/all.h has for f32 and f64: sums, differences, products, quotients, maxima and
/// minima, from the instruction set in use; bit by bit as a line over a buffer that repeats the number.
ConstantLines constant_lines(size_t row, DType dtype);
/// Likewise of a body.
template <class B> ConstantLines constant_lines(DType dtype) {
  return constant_lines(scalar::row_of<B>(), dtype);
}

/// What `kernel` has of lines that pass the caches.
StreamLines stream_lines(const Kernel& kernel, DType dtype);

/// Runs `plan`, of `call` or a part of it, where one operand stays the same along each row, the other one and
/// the result lie gapless there, all are `exec`, and the kernel has such lines: without a buffer that repeats
/// what stays. `streams`: results pass the caches. False, and nothing has happened, where it is none of
/// these.
bool run_beside_number(const Kernel& kernel, const KernelCall& call, DType exec, const IterPlan& plan,
                       bool streams);

}  // namespace lamella::kernels
