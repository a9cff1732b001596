// Sums in two other ways: a tree of halves, and one addition after another.
#include "lamella/core/plan.h"
#include "lamella/core/thresholds.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/alternatives.h"

namespace lamella::kernels {
namespace {

template <class T> T in_a_row(const T* x, int64_t n) {
  T sum = x[0];
  for (int64_t i = 1; i < n; ++i) sum += x[i];
  return sum;
}

template <class T> T in_pairs(const T* x, int64_t n, int64_t few) {
  if (n <= few) return in_a_row(x, n);
  const int64_t half = n / 2;
  return in_pairs(x, half, few) + in_pairs(x + half, n - half, few);
}

bool is_reduced(const View& out, const View& in, int d) { return out.sizes[d] != in.sizes[d]; }

/// False where the terms of a result do not lie side by side.
template <class T> bool add_in_pairs(const View& out, const View& in) {
  const View both[] = {out, in}, terms[] = {in};
  const IterPlan kept = plan_where(both, [&](int d) { return is_reduced(out, in, d); });
  const IterPlan reduced = plan_where(terms, [&](int d) { return !is_reduced(out, in, d); });
  if (reduced.rank > 1 || (reduced.numel > 1 && reduced.stride(0, 0) != int64_t(sizeof(T)))) return false;
  const int64_t few = thresholds().terms_in_a_row;
  for_each_outer(kept, 0, [&](char* const* at) {
    *reinterpret_cast<T*>(at[0]) = in_pairs(reinterpret_cast<const T*>(at[1]), reduced.numel, few);
  });
  return true;
}

/// A walk over all but the last dim of the terms, in the order of indices.
class Rows {
 public:
  Rows(const View& out, const View& in) : out_(out), in_(in) {}
  int64_t out_at = 0, in_at = 0;
  int64_t out_step(int d) const { return is_reduced(out_, in_, d) ? 0 : out_.strides[d]; }
  /// Whether no term of these results has come yet.
  bool is_first() const {
    for (int d = 0; d < in_.rank - 1; ++d)
      if (index_[d] != 0 && is_reduced(out_, in_, d)) return false;
    return true;
  }
  bool next() {
    for (int d = in_.rank - 2; d >= 0; --d) {
      in_at += in_.strides[d], out_at += out_step(d);
      if (++index_[d] < in_.sizes[d]) return true;
      in_at -= in_.strides[d] * index_[d], out_at -= out_step(d) * index_[d];
      index_[d] = 0;
    }
    return false;
  }

 private:
  const View &out_, &in_;
  int64_t index_[IterPlan::kMaxDims] = {};
};

/// Each term is added to what its result has so far: the order is that of indices, whatever the layout.
template <class T> void add_in_a_row(const View& out, const View& in) {
  const int last = in.rank - 1;
  const int64_t n = in.rank > 0 ? in.sizes[last] : 1, step = in.rank > 0 ? in.strides[last] : 0;
  Rows rows(out, in);
  const bool reduces = in.rank > 0 && is_reduced(out, in, last);
  const int64_t out_step = in.rank > 0 ? rows.out_step(last) : 0;
  do {
    T* const to = out.as<T>() + rows.out_at;
    const T* const from = in.as<T>() + rows.in_at;
    const bool fresh = rows.is_first();
    if (!reduces) {
      for (int64_t i = 0; i < n; ++i)
        to[i * out_step] = fresh ? from[i * step] : to[i * out_step] + from[i * step];
    } else {
      T sum = fresh ? from[0] : *to + from[0];
      for (int64_t i = 1; i < n; ++i) sum += from[i * step];
      *to = sum;
    }
  } while (rows.next());
}

/// f32 and f64 that are added as what they are.
DType taken_dtype(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const bool plain =
      in.dtype == out.dtype && in.dtype == call.compute && in.numel() > 0 && in.rank <= IterPlan::kMaxDims;
  return plain ? in.dtype : DType::Bool;
}
}  // namespace

namespace alternatives {

void sum_pairwise(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const DType dtype = taken_dtype(call);
  const bool done = dtype == DType::F32   ? add_in_pairs<float>(out, in)
                    : dtype == DType::F64 ? add_in_pairs<double>(out, in)
                                          : false;
  if (!done) named("sum").cpu(call);
}

void sum_plain(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const DType dtype = taken_dtype(call);
  if (dtype == DType::F32) return add_in_a_row<float>(out, in);
  if (dtype == DType::F64) return add_in_a_row<double>(out, in);
  named("sum").cpu(call);
}

}  // namespace alternatives

}  // namespace lamella::kernels
