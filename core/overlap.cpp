// Whether elements of views meet in memory, by offsets and strides alone.
#include "lamella/core/overlap.h"

#include <algorithm>
#include <numeric>

namespace lamella {

bool overlaps_itself(const Tensor& t) {
  if (t.is_contiguous()) return false;
  Dims order;
  for (int d = 0; d < t.rank(); ++d)
    if (t.size(d) > 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return t.stride(int(a)) < t.stride(int(b)); });
  int64_t reach = 0;  // a dim is safe when one step of it clears everything the finer dims touch
  for (const int64_t d : order) {
    if (t.stride(int(d)) <= reach) return true;
    reach += (t.size(int(d)) - 1) * t.stride(int(d));
  }
  return false;
}

namespace {
int64_t step_of(const View& v, int d) { return v.strides[d] * itemsize(v.dtype); }

/// Bytes from the first element in which `v` lies, again and again in steps of `period`; 0 when it does not.
int64_t extent(const View& v, int64_t period) {
  int64_t bytes = itemsize(v.dtype);
  for (int d = 0; d < v.rank; ++d)
    if (v.sizes[d] > 1 && step_of(v, d) % period != 0) bytes += (v.sizes[d] - 1) * step_of(v, d);
  return bytes <= period ? bytes : 0;
}

/// `apart`: bytes from the first element of a to that of b.
bool lie_apart(const View& a, const View& b, int64_t apart, int64_t period) {
  const int64_t of_a = extent(a, period), of_b = extent(b, period);
  if (of_a == 0 || of_b == 0) return false;
  const int64_t from = (apart % period + period) % period;
  return from >= of_a && period - from >= of_b;
}

/// Whether the elements lie between each other, as real and imaginary parts do, or columns of one matrix: in
/// some period, a stride or what divides all of them, they take different bytes.
bool interleaved(const View& a, const View& b, int64_t apart) {
  int64_t common = 0;
  for (const View* v : {&a, &b})
    for (int d = 0; d < v->rank; ++d) {
      if (v->sizes[d] < 2 || v->strides[d] == 0) continue;
      if (lie_apart(a, b, apart, step_of(*v, d))) return true;
      common = std::gcd(common, step_of(*v, d));
    }
  return common > 0 && lie_apart(a, b, apart, common);
}

int64_t bytes_spanned(const View& v) {
  int64_t bytes = itemsize(v.dtype);
  for (int d = 0; d < v.rank; ++d) bytes += (v.sizes[d] - 1) * step_of(v, d);
  return bytes;
}
}  // namespace

Overlap overlap_in_memory(const View& a, const View& b, int64_t apart) {
  if (apart >= bytes_spanned(a) || -apart >= bytes_spanned(b)) return Overlap::None;
  bool same = apart == 0 && a.dtype == b.dtype && a.rank == b.rank;
  for (int d = 0; same && d < a.rank; ++d)  // a dim of size 1 is never stepped along
    same = a.sizes[d] == b.sizes[d] && (a.sizes[d] == 1 || a.strides[d] == b.strides[d]);
  if (same) return Overlap::Same;
  return interleaved(a, b, apart) ? Overlap::None : Overlap::Partial;
}

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (!a.shares_storage(b) || a.numel() == 0 || b.numel() == 0) return Overlap::None;
  const View x = a.view_of(), y = b.view_of();
  return overlap_in_memory(x, y, static_cast<const char*>(y.data) - static_cast<const char*>(x.data));
}

}  // namespace lamella
