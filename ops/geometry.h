// Sizes and strides of views, shared by the views and the operators that write into them.
#pragma once

#include <algorithm>
#include <optional>

#include "lamella/ops/define.h"

namespace lamella::ops {

/// One view each of parameter 0, whose type error texts show. Errors as the view operator's.
Geometry select_of(const Frame& f, const Geometry& x, int64_t dim, int64_t index);
Geometry slice_of(const Frame& f, const Geometry& x, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step);
Geometry diagonal_of(const Frame& f, const Geometry& x, int64_t offset, int64_t dim1, int64_t dim2);

/// The indices that the bounds of a slice mean, as in Python.
struct SliceBounds {
  int64_t from, to;
  SliceBounds(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end) {
    const auto clamped = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    from = clamped(start.value_or(0)), to = std::max(from, clamped(end.value_or(size)));
  }
  int64_t every(int64_t step) const { return to > from ? (to - from - 1) / step + 1 : 0; }
};

/// Short ways of view operators, which refuse nothing: see NOTE: [views in headers].
bool select_in_header(const Frame& f, TensorImpl& view);
bool slice_in_header(const Frame& f, TensorImpl& view);
bool transpose_in_header(const Frame& f, TensorImpl& view);

/// Sizes with a -1 replaced. Errors shape: another negative size, two -1, a count of elements that differs
/// from x's.
Dims resolve_size(const Frame& f, Ints size, const Dims& x);
/// Strides under which the same memory has `sizes`, or nothing when it is not laid out for them.
std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted);

/// The element at `g`'s offset (relative to `t`) and `g`'s shape; `g` must outlive the result.
inline View view_at(const Tensor& t, const Geometry& g) {
  View v = t.view_of();
  v.dtype = g.dtype.value_or(v.dtype);
  v.data = static_cast<char*>(v.data) + g.offset * itemsize(v.dtype);
  v.rank = g.sizes.size();
  v.sizes = g.sizes.data();
  v.strides = g.strides.data();
  return v;
}

/// Rank 0 as rank 1 with one element: what kernels with a dim expect.
inline View at_least_1d(View v) {
  static constexpr int64_t kOne = 1;
  if (v.rank > 0) return v;
  v.rank = 1;
  v.sizes = v.strides = &kOne;
  return v;
}

/// to = from, converted; both have the same sizes.
inline void copy_view(const Launch& l, const View& to, const View& from) {
  static const kernels::Kernel& copy = kernels::named("copy");
  const KernelFn own = copy.on(l.device);
  run_kernel(l.frame, own ? own : clone_on(l.device), {{&to, 1}, {&from, 1}, to.dtype});
}

}  // namespace lamella::ops
