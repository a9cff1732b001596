// Views of few dims: what becomes of a copied header. See NOTE: [views in headers].
#include <utility>

#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {
/// Whether `at` is an index of so many, counted from the end where it is negative; then it is not any more.
bool wraps(int64_t& at, int64_t size) {
  if (at < 0) at += size;
  return 0 <= at && at < size;
}
std::optional<int64_t> bound(const Frame& f, int i) {
  return f.none(i) ? std::nullopt : std::optional(f.arg<int64_t>(i));
}
}  // namespace

bool select_in_header(const Frame& f, TensorImpl& view) {
  int64_t d = f.arg<int64_t>(1), index = f.arg<int64_t>(2);
  int64_t *const sizes = view.dims, *const strides = view.dims + TensorImpl::kInlineRank;
  if (!wraps(d, view.rank) || !wraps(index, sizes[d])) return false;
  view.offset += index * strides[d];
  int64_t size = 0, stride = 0;  // what lies behind d moves to the left; as a copy it would be two calls
  for (int64_t k = view.rank - 1; k >= d; --k)
    size = std::exchange(sizes[k], size), stride = std::exchange(strides[k], stride);
  --view.rank;
  return true;
}

bool slice_in_header(const Frame& f, TensorImpl& view) {
  int64_t d = f.arg<int64_t>(1);
  const int64_t step = f.arg<int64_t>(4);
  int64_t *const sizes = view.dims, *const strides = view.dims + TensorImpl::kInlineRank;
  if (!wraps(d, view.rank) || step <= 0) return false;
  const SliceBounds bounds(sizes[d], bound(f, 2), bound(f, 3));
  sizes[d] = bounds.every(step);
  view.offset += bounds.from * strides[d];
  if (sizes[d] > 1) strides[d] *= step;
  return true;
}

bool transpose_in_header(const Frame& f, TensorImpl& view) {
  int64_t a = f.arg<int64_t>(1), b = f.arg<int64_t>(2);
  int64_t *const sizes = view.dims, *const strides = view.dims + TensorImpl::kInlineRank;
  if (!wraps(a, view.rank) || !wraps(b, view.rank)) return false;
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return true;
}

}  // namespace lamella::ops
