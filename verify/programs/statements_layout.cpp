// How inputs and captures of statement programs lie: with gaps, behind others, transposed; and copies that
// lie so.
#include <cmath>
#include <cstring>

#include "lamella/verify/case/lanes.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/programs/statements_draw.h"

namespace lamella::verify {

namespace {

int64_t room_of(const Tensor& t) { return int64_t(t.impl()->storage->nbytes) / itemsize(t.dtype()); }

/// A buffer whose elements are NaN, so that whoever reads a gap shows it.
Tensor buffer_of(int64_t n, DType dtype) {
  Tensor buffer = make_tensor(Dims{n}, dtype);
  each_part<double>(buffer, [](double& part) { part = std::nan(""); });
  return buffer;
}

void put(const Tensor& to, const Tensor& from) {
  const Tensor dense = plain_copy(from);
  const auto* data = static_cast<const double*>(dense.raw_data());
  each_part<double>(to, [&](double& part) { part = *data++; });
}

}  // namespace

/// 0: dense; 1: with room behind; 2: every second element, behind others; 3: transposed; 4: behind others; 5:
/// both of these.
Tensor laid_out(const Tensor& t, uint32_t kind) {
  if (kind == 0) return plain_copy(t);
  const int64_t offset = kind == 2 || kind >= 4 ? 2 : 0;
  Dims strides(t.rank());
  int64_t step = kind == 2 ? 2 : 1;
  for (int k = 0; k < t.rank(); ++k) {
    const int d = kind == 3 || kind == 5 ? k : t.rank() - 1 - k;
    strides[d] = step;
    step *= t.size(d);
  }
  const Tensor out = make_view_unchecked(buffer_of(step + offset + int64_t(kind == 1), t.dtype()), t.sizes(),
                                         strides, offset);
  put(out, t);
  return out;
}

Tensor copy_as(const Tensor& t) {
  const int64_t n = room_of(t);
  if (n == t.numel() && t.is_contiguous()) return plain_copy(t);
  const Tensor buffer = make_tensor(Dims{n}, t.dtype(), t.device());
  std::memcpy(buffer.raw_data(), t.impl()->storage->data, size_t(n * itemsize(t.dtype())));
  return make_view_unchecked(buffer, t.sizes(), t.strides(), t.impl()->offset);
}

Tensor wide_as(const Tensor& t) {
  const int64_t n = room_of(t);
  if (n == t.numel() && t.is_contiguous()) return to_reference(t);
  const Tensor whole = make_view_unchecked(t, Dims{n}, Dims{1}, 0);
  return make_view_unchecked(to_reference(whole), t.sizes(), t.strides(), t.impl()->offset);
}

Tensor lanes_as(const Tensors& lanes, int dim) {
  const Tensor& like = lanes.front();
  const int64_t n = int64_t(lanes.size()), room = room_of(like);
  int64_t finest = room;
  for (int d = 0; d < like.rank(); ++d) finest = std::min(finest, like.size(d) > 1 ? like.stride(d) : room);
  const bool between = like.rank() > 0 && n <= finest && finest < room;  // the lanes fill each other's gaps
  Dims sizes(like.sizes()), strides(like.strides());
  sizes.insert(dim, n);
  strides.insert(dim, between ? 1 : room);
  const Tensor buffer = buffer_of(between ? room + n : n * room, like.dtype());
  const Tensor out = make_view_unchecked(buffer, sizes, strides, like.impl()->offset);
  for (int64_t l = 0; l < n; ++l) put(lane(out, dim, l), lanes[size_t(l)]);
  return out;
}

}  // namespace lamella::verify
