// Wrong kernels, around the right ones.
#include <algorithm>

#include "lamella/verify/mutants.h"

namespace lamella::verify {

namespace {

bool has_kernel(const Op& op) {
  return op.kernel.cpu && !op.composite && !op.has(kRandom) && takes_tensors(op);
}
bool pointwise(const Op& op) { return has_kernel(op) && op.shape == ShapeClass::Broadcast; }
bool pointwise_pair(const Op& op) {
  return pointwise(op) && op.simple && op.tensor_params.size() == 2 && op.tensor_params[1] == 1;
}
bool pointwise_many(const Op& op) { return pointwise(op) && op.tensor_params.size() >= 2; }
bool reduction(const Op& op) { return has_kernel(op) && op.shape == ShapeClass::Reduce; }

void right_kernel(const KernelCall& c) { right_row->kernel.cpu(c); }

/// Calls f(offset, multi-index) for the elements of a view in row-major order.
template <class F> void each(const View& v, F&& f) {
  Dims at(v.rank);
  for (int64_t i = 0, n = v.numel(); i < n; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < v.rank; ++d) offset += at[d] * v.strides[d];
    f(offset, at);
    for (int d = v.rank - 1; d >= 0 && ++at[d] == v.sizes[d]; --d) at[d] = 0;
  }
}
void set(const View& v, int64_t offset, const Scalar& value) {
  visit_dtype(v.dtype,
              [&]<class Tag>(Tag) { v.as<typename Tag::type>()[offset] = value.to<typename Tag::type>(); });
}
void increment(const View& v, int64_t offset) {
  visit_dtype(v.dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T& x = v.as<T>()[offset];
    if constexpr (std::is_same_v<T, bool>) x = !x;
    else x = T(x + T(1));
  });
}

void last_element_missed(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) {
    int64_t last = 0;
    each(out, [&](int64_t offset, const Dims&) { last = offset; });
    if (out.numel() >= 3) set(out, last, 0);
  }
}

/// Reads as if the first input were dense, where that stays inside its memory.
void strides_ignored(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  View& v = ins[0];
  int64_t last = 0;
  for (int d = 0; d < v.rank; ++d) last += (v.sizes[d] - 1) * v.strides[d];
  const Dims dense = contiguous_strides({v.sizes, size_t(v.rank)});
  if (v.numel() > 0 && last >= v.numel() - 1) v.strides = dense.data();
  right_row->kernel.cpu({c.outs, ins, c.compute, c.ints, c.scalars});
}

void operands_swapped(const KernelCall& c) {
  std::vector<View> ins(c.ins.begin(), c.ins.end());
  std::swap(ins[0], ins[1]);
  right_row->kernel.cpu({c.outs, ins, c.compute, c.ints, c.scalars});
}

void accumulates_from_one(const KernelCall& c) {
  right_kernel(c);
  for (const View& out : c.outs) each(out, [&](int64_t offset, const Dims&) { increment(out, offset); });
}

void broadcast_missing(const KernelCall& c) {
  right_kernel(c);
  const View& out = c.outs[0];
  for (const View& in : c.ins)
    for (int d = 0; d < in.rank && in.rank == out.rank; ++d) {
      if (in.strides[d] != 0 || in.sizes[d] < 2) continue;
      each(out, [&](int64_t offset, const Dims& at) {
        if (at[d] > 0) set(out, offset, 0);
      });
    }
}

void single_precision(const KernelCall& c) {
  right_kernel(c);
  const View& out = c.outs[0];
  if (out.dtype == DType::F64)
    each(out, [&](int64_t o, const Dims&) { out.as<double>()[o] = float(out.as<double>()[o]); });
}

void empty_not_identity(const KernelCall& c) {
  right_kernel(c);
  if (c.ins[0].numel() == 0)
    each(c.outs[0], [&](int64_t offset, const Dims&) { increment(c.outs[0], offset); });
}

void input_overwritten(const KernelCall& c) {
  right_kernel(c);
  const View& in = c.ins[0];
  if (in.numel() > 0 && in.data != c.outs[0].data) increment(in, 0);
}

template <KernelFn K> void put(Op& row) {
  row.kernel.cpu = K;
  row.kernel.lines = {};  // small tensors take the kernel too
}

}  // namespace

void add_kernel_mutants(std::vector<Mutant>& list) {
  list.push_back({"last_element_missed", "kernel", "The tail of the loop is one short.", has_kernel,
                  put<last_element_missed>, Mutant::Forward});
  list.push_back({"strides_ignored", "kernel", "The first input is read as if it were dense.", has_kernel,
                  put<strides_ignored>, Mutant::Forward});
  list.push_back({"operands_swapped", "kernel", "a op b is computed as b op a.", pointwise_pair,
                  put<operands_swapped>, Mutant::Forward});
  list.push_back({"accumulates_from_one", "kernel", "The accumulator does not start at the identity.",
                  reduction, put<accumulates_from_one>, Mutant::Forward});
  list.push_back({"broadcast_missing", "kernel", "Only the first entry along a broadcast dim is computed.",
                  pointwise_many, put<broadcast_missing>, Mutant::Forward});
  list.push_back({"single_precision", "kernel", "An f64 result went through f32.", pointwise,
                  put<single_precision>, Mutant::Forward});
  list.push_back({"empty_not_identity", "kernel", "The sum of nothing is one too much.", reduction,
                  put<empty_not_identity>, Mutant::Forward});
  list.push_back({"input_overwritten", "kernel", "The kernel uses its input as scratch.", pointwise,
                  put<input_overwritten>});
}

}  // namespace lamella::verify
