// Views: other sizes, strides and offset over the same elements.
#include "lamella/ops/functions/view.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view_scatter.h"
#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {
/// x's product of sizes against that of `size` without its -1.
int64_t missing_size(const Frame& f, Ints size, const Dims& x, int64_t numel, int64_t known) {
  LAMELLA_CHECK(
      known != 0, Shape,
      "{}: size = {}: -1 could be anything for x with sizes {}, which has no elements; expected no -1",
      op_name(f), Dims(size), x);
  LAMELLA_CHECK(numel % known == 0, Shape,
                "{}: size = {} for x with sizes {}; expected a product that divides {}", op_name(f),
                Dims(size), x, numel);
  return numel / known;
}
}  // namespace

Dims resolve_size(const Frame& f, Ints size, const Dims& x) {
  const int64_t numel = checked_numel(x, op_name(f).c_str());
  Dims known;
  int unknown = -1;
  for (size_t d = 0; d < size.size(); ++d) {
    LAMELLA_CHECK(size[d] >= -1, Shape, "{}: size = {} has a negative entry; expected sizes >= 0, or -1 once",
                  op_name(f), Dims(size));
    LAMELLA_CHECK(size[d] >= 0 || unknown < 0, Shape, "{}: size = {} has -1 twice; expected it once at most",
                  op_name(f), Dims(size));
    if (size[d] < 0) unknown = int(d);
    else known.push_back(size[d]);
  }
  const int64_t product = checked_numel(known, op_name(f).c_str());
  Dims out(size);
  if (unknown >= 0) out[unknown] = missing_size(f, size, x, numel, product);
  else
    LAMELLA_CHECK(product == numel, Shape, "{}: size = {} has {} elements; expected {} as x with sizes {}",
                  op_name(f), out, product, numel, x);
  return out;
}

std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted) {
  int64_t numel = 1;
  for (const int64_t s : sizes) numel *= s;
  if (numel == 0 || sizes.empty()) return contiguous_strides(wanted);
  // x falls into chunks of dims that are contiguous among themselves; wanted dims must not straddle chunks.
  Dims out(wanted.size());
  int at = wanted.size() - 1;
  int64_t step = strides.back(), chunk = 1;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    chunk *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk * step);
    if (!ends) continue;
    int64_t filled = 1;
    for (; at >= 0 && (filled < chunk || wanted[at] == 1); --at) {
      out[at] = filled * step;
      filled *= wanted[at];
    }
    if (filled != chunk) return std::nullopt;
    if (d > 0) step = strides[d - 1];
    chunk = 1;
  }
  if (at >= 0) return std::nullopt;
  return out;
}

Geometry select_of(const Frame& f, const Geometry& x, int64_t dim, int64_t index) {
  LAMELLA_CHECK(x.sizes.size() > 0, DimOutOfRange,
                "{}: dim = {} is out of range for x: {}; expected one dim at least", op_name(f), dim,
                f.tensor(0));
  const int d = int(wrap_dim(f, "dim", dim, f.tensor(0)));
  const int64_t size = x.sizes[d];
  LAMELLA_CHECK(-size <= index && index < size, IndexOutOfRange,
                "{}: index = {} is out of range for dim {} of x: {}; expected {} <= index < {}", op_name(f),
                index, d, f.tensor(0), -size, size);
  Geometry out = x;
  out.offset += (index < 0 ? index + size : index) * x.strides[d];
  out.sizes.erase(d);
  out.strides.erase(d);
  return out;
}

Geometry slice_of(const Frame& f, const Geometry& x, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  LAMELLA_CHECK(x.sizes.size() > 0, DimOutOfRange,
                "{}: dim = {} is out of range for x: {}; expected one dim at least", op_name(f), dim,
                f.tensor(0));
  LAMELLA_CHECK(step > 0, Value, "{}: step = {}, expected step > 0", op_name(f), step);
  const int d = int(wrap_dim(f, "dim", dim, f.tensor(0)));
  const SliceBounds bounds(x.sizes[d], start, end);
  Geometry out = x;
  out.sizes[d] = bounds.every(step);
  out.offset += bounds.from * x.strides[d];
  if (out.sizes[d] > 1) out.strides[d] *= step;
  return out;
}

Geometry diagonal_of(const Frame& f, const Geometry& x, int64_t offset, int64_t dim1, int64_t dim2) {
  LAMELLA_CHECK(x.sizes.size() >= 2, Shape, "{}: x is {}, expected two dims at least", op_name(f),
                f.tensor(0));
  const int row = int(wrap_dim(f, "dim1", dim1, f.tensor(0))),
            column = int(wrap_dim(f, "dim2", dim2, f.tensor(0)));
  LAMELLA_CHECK(row != column, Shape, "{}: dim1 = {} and dim2 = {} for x: {}; expected different dims",
                op_name(f), dim1, dim2, f.tensor(0));
  const int64_t rows = x.sizes[row], columns = x.sizes[column];
  const int64_t length = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  Geometry out = x;
  if (length > 0) out.offset += offset >= 0 ? offset * x.strides[column] : -offset * x.strides[row];
  for (const int d : {std::max(row, column), std::min(row, column)}) {
    out.sizes.erase(d);
    out.strides.erase(d);
  }
  out.sizes.push_back(std::max<int64_t>(length, 0));
  out.strides.push_back(x.strides[row] + x.strides[column]);
  return out;
}

namespace {
Geometry view_of(const Frame& f, const Geometry& x) {
  const Dims sizes = resolve_size(f, f.ints(1), x.sizes);
  const auto strides = view_strides(x.sizes, x.strides, sizes);
  LAMELLA_CHECK(
      strides, Shape,
      "{}: size = {} for x: {} with strides {}; expected a shape that needs no copy: reshape copies",
      op_name(f), sizes, f.tensor(0), x.strides);
  return {sizes, *strides, x.offset};
}

Geometry permute_of(const Frame& f, const Geometry& x) {
  const Ints dims = f.ints(1);
  LAMELLA_CHECK(dims.size() == size_t(x.sizes.size()), Shape, "{}: dims = {} for x: {}; expected {} dims",
                op_name(f), Dims(dims), f.tensor(0), x.sizes.size());
  Geometry out{{}, {}, x.offset};
  Dims seen(x.sizes.size());
  for (const int64_t dim : dims) {
    const int d = int(wrap_dim(f, "dims", dim, f.tensor(0)));
    LAMELLA_CHECK(!seen[d], Shape, "{}: dims = {} names dim {} twice; expected distinct dims", op_name(f),
                  Dims(dims), d);
    seen[d] = 1;
    out.sizes.push_back(x.sizes[d]);
    out.strides.push_back(x.strides[d]);
  }
  return out;
}

Geometry transpose_of(const Frame& f, const Geometry& x) {
  const int a = int(wrap_dim(f, "dim0", f.arg<int64_t>(1), f.tensor(0)));
  const int b = int(wrap_dim(f, "dim1", f.arg<int64_t>(2), f.tensor(0)));
  Geometry out = x;
  if (x.sizes.empty()) return out;
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

std::optional<int64_t> int_or_none(const Frame& f, int i) {
  return f.none(i) ? std::nullopt : std::optional(f.arg<int64_t>(i));
}

Geometry expand_of(const Frame& f, const Geometry& x) {
  const Ints size = f.ints(1);
  const int shift = int(size.size()) - x.sizes.size();
  LAMELLA_CHECK(shift >= 0, Shape, "{}: size = {} has fewer dims than x: {}; expected {} at least",
                op_name(f), Dims(size), f.tensor(0), x.sizes.size());
  Geometry out{size, Dims(int(size.size())), x.offset};
  for (int d = 0; d < out.sizes.size(); ++d) {
    const int64_t from = d < shift ? 1 : x.sizes[d - shift];
    int64_t& to = out.sizes[d];
    if (to == -1 && d >= shift) to = from;
    LAMELLA_CHECK(to >= 0, Shape,
                  "{}: size = {} has {} for dim {}; expected a size >= 0, or -1 for a dim of x: {}",
                  op_name(f), Dims(size), to, d, f.tensor(0));
    LAMELLA_CHECK(from == to || from == 1, Broadcast,
                  "{}: size = {} does not fit x: {} at dim {}; expected its size, or size 1", op_name(f),
                  Dims(size), f.tensor(0), d);
    if (d >= shift && from == to) out.strides[d] = x.strides[d - shift];
  }
  checked_numel(out.sizes, op_name(f).c_str());
  return out;
}

/// The dims of size 1 that squeeze drops, ascending.
Dims squeezed(const Frame& f, const Dims& sizes) {
  std::optional<Ints> dims;
  if (!f.none(1)) dims = f.ints(1);
  Dims out;
  for (const int64_t d : wrap_dims(f, "dim", dims, f.tensor(0), false))
    if (sizes[int(d)] == 1) out.push_back(d);
  return out;
}

Geometry squeeze_of(const Frame& f, const Geometry& x) {
  Geometry out = x;
  const Dims dims = squeezed(f, x.sizes);
  for (int i = dims.size() - 1; i >= 0; --i) {
    out.sizes.erase(int(dims[i]));
    out.strides.erase(int(dims[i]));
  }
  return out;
}

/// The new dim lies in the result: rank + 1 positions.
Geometry unsqueeze_of(const Frame& f, const Geometry& x) {
  const int rank = x.sizes.size();
  const int d = int(wrap_dim_of_rank(f, "dim", f.arg<int64_t>(1), rank + 1));
  Geometry out = x;
  out.strides.insert(d, d < rank ? x.sizes[d] * x.strides[d] : 1);
  out.sizes.insert(d, 1);
  return out;
}

void reshape_of(Frame& f) {
  const Tensor& x = f.tensor(0);
  const Dims sizes = resolve_size(f, f.ints(1), x.sizes());
  const bool legal = bool(view_strides(x.sizes(), x.strides(), sizes));
  f.results[0] = view(legal ? x : clone(x), sizes);
}

// Batch rules where dims + 1 and a prefixed size do not say it.
Dims lane_sizes(const BatchCall& b) {
  const Tensor& x = b.logical.tensor(0);
  return b.logical.op->view(b.logical, {x.sizes(), x.strides(), 0}).sizes;
}

Dims prefixed(const BatchCall& b, Dims sizes) {
  sizes.insert(0, b.size);
  return sizes;
}

/// -1 is resolved lane by lane (an empty batch could not); the batch may be laid out otherwise than its lanes
/// say.
void batch_view(BatchCall& b) { b.results[0] = reshape(b.front(0), prefixed(b, lane_sizes(b))); }

void batch_expand(BatchCall& b) {
  const Dims sizes = lane_sizes(b);
  b.results[0] = expand(b.front_padded(0, sizes.size()), prefixed(b, sizes));
}

void batch_permute(BatchCall& b) {
  Dims dims{0};
  for (const int64_t d : b.frame.ints(1)) dims.push_back((d < 0 ? d + b.logical_rank(0) : d) + 1);
  b.results[0] = permute(b.front(0), dims);
}

void batch_transpose(BatchCall& b) {
  const Tensor x = b.front(0);
  const auto physical = [&](int i) {
    const int64_t d = b.frame.arg<int64_t>(i);
    return (d < 0 ? d + b.logical_rank(0) : d) + 1;
  };
  b.results[0] = b.logical_rank(0) == 0 ? x : transpose(x, physical(1), physical(2));
}

void batch_squeeze(BatchCall& b) {
  Dims dims = squeezed(b.logical, b.logical.tensor(0).sizes());
  for (int64_t& d : dims) ++d;
  b.results[0] = squeeze(b.front(0), dims);
}

Tensor permute_back(const Tensor& dy, Ints dims) {
  Dims back(int(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i)
    back[int(dims[i] < 0 ? dims[i] + int64_t(dims.size()) : dims[i])] = int64_t(i);
  return permute(dy, back);
}

Dims other_size(Draw& d, const Tensor& x) {
  Dims size(x.sizes());
  const uint32_t kind = d.below(4);
  if (kind == 1) return Dims{x.numel()};
  if (kind == 2 && x.numel() > 0) return Dims{-1, 1};
  if (kind == 3) std::reverse(size.begin(), size.end());
  else size.insert(int(d.below(uint32_t(size.size() + 1))), 1);
  return size;
}

Values reshape_samples(Draw& d) {
  const Tensor x = d.tensor(d.shape(), d.dtype(kAllTypes));
  return {x, other_size(d, x)};
}

Values view_samples(Draw& d) {
  const Tensor x = d.tensor(d.shape(), d.dtype(kAllTypes));
  Dims size = other_size(d, x), resolved = size;
  for (int64_t& s : resolved)
    if (s < 0) s = x.numel();
  if (!view_strides(x.sizes(), x.strides(), resolved)) (size = Dims(x.sizes())).push_back(1);
  return {x, size};
}

Values permute_samples(Draw& d) {
  const Dims s = d.shape();
  return {d.tensor(s, d.dtype(kAllTypes)), d.dims(s.size(), s.size())};
}

Values transpose_samples(Draw& d) {
  const Dims s = d.shape();
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  return {x, d.dim(s.size()), d.dim(s.size())};
}

Values expand_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  Dims s = d.shape();
  const Dims from = d.broadcastable(s);
  const int shift = s.size() - from.size();
  for (int i = shift; i < s.size(); ++i)
    if (from[i - shift] == s[i] && d.flag()) s[i] = -1;
  return {d.tensor(from, t), s};
}

Values squeeze_samples(Draw& d) {
  const Dims s = d.shape();
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  return d.flag() ? Values{x} : Values{x, d.dims(s.size())};
}

Values select_samples(Draw& d) {
  Dims s = d.shape(1);
  const int64_t dim = d.dim(s.size());
  int64_t& size = s[int(dim < 0 ? dim + s.size() : dim)];
  size = std::max<int64_t>(size, 1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  return {x, dim, d.range(-size, size - 1)};
}

Values slice_samples(Draw& d) {
  const Dims s = d.shape(1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t dim = d.dim(s.size()), size = s[int(dim < 0 ? dim + s.size() : dim)];
  const auto bound = [&]() -> Value {
    return d.flag() ? Value(d.anywhere(d.range(-size - 1, size + 1), size)) : Value();
  };
  Values v{x, dim, bound(), bound()};
  if (d.flag()) v.push_back(d.positive(d.range(1, 3), size));
  return v;
}

Values diagonal_samples(Draw& d) {
  const Dims s = d.shape(2);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t offset = d.flag() ? d.anywhere(d.range(-3, 3), s[0]) : 0;
  if (d.flag()) return {x, offset};
  const Dims dims = d.dims(s.size(), 2);
  return {x, offset, dims[0], dims[1]};
}

void define_reshaping() {
  OpTable::add({.schema = "view(Tensor x, Size size) -> Tensor(a)",
                .shape = ShapeClass::View,
                .view = view_of,
                .jvp = {wrt("x", saves("size"), [](Tensor t, Ints size) { return reshape(t, size); })},
                .vjp = {wrt("x", saves("x.sizes"), [](Tensor dy, Ints sizes) { return reshape(dy, sizes); })},
                .batch = batch_view,
                .properties = kLinear,
                .samples = view_samples,
                .doc = "x's elements in row-major order under other sizes, one of which may be -1. Error "
                       "shape when the counts "
                       "differ or x's strides do not allow it without a copy."});
  OpTable::add({.schema = "reshape(Tensor x, Size size) -> Tensor(a)",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_reshape,
                .kernel = {.reference = kernels::reference::in_row_major_order},
                .launch = definition::run_copy,
                .composite = reshape_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .samples = reshape_samples,
                .doc = "x's elements in row-major order under other sizes, one of which may be -1: a view "
                       "where strides allow it, "
                       "else a copy. Error shape when the counts differ."});
  OpTable::add(
      {.schema = "expand(Tensor x, Size size) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view = expand_of,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes"), [](Tensor dy, Ints sizes) { return sum_to_size(dy, sizes); })},
       .batch = batch_expand,
       .properties = kLinear,
       .samples = expand_samples,
       .doc = "x with dims of size 1 repeated, and new dims in front, by strides of 0; -1 keeps a size. "
              "Errors: broadcast, "
              "shape."});
  OpTable::add(
      {.schema = "squeeze(Tensor x, Dim[]? dim=None) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view = squeeze_of,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes"), [](Tensor dy, Ints sizes) { return reshape(dy, sizes); })},
       .batch = batch_squeeze,
       .properties = kLinear,
       .samples = squeeze_samples,
       .doc = "x without its dims of size 1: all of them, or those among `dim` (none for an empty list)."});
  OpTable::add(
      {.schema = "unsqueeze(Tensor x, Dim dim) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view = unsqueeze_of,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("dim"), [](Tensor dy, int64_t dim) { return squeeze(dy, IntArg({dim})); })},
       .properties = kLinear,
       .samples =
           [](Draw& d) {
             const Dims s = d.shape();
             return Values{d.tensor(s, d.dtype(kAllTypes)), d.dim(s.size() + 1)};
           },
       .doc = "x with a dim of size 1 at position `dim` of the result."});
}

void define_moving() {
  OpTable::add(
      {.schema = "permute(Tensor x, Dim[] dims) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view = permute_of,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("dims"), [](Tensor dy, Ints dims) { return permute_back(dy, dims); })},
       .batch = batch_permute,
       .properties = kLinear,
       .samples = permute_samples,
       .doc = "Dim i of the result is dim dims[i] of x. Error shape unless dims names every dim once."});
  OpTable::add({.schema = "transpose(Tensor x, Dim dim0, Dim dim1) -> Tensor(a)",
                .shape = ShapeClass::View,
                .view = transpose_of,
                .edit = transpose_in_header,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("dim0", "dim1"),
                            [](Tensor dy, int64_t dim0, int64_t dim1) { return transpose(dy, dim0, dim1); })},
                .batch = batch_transpose,
                .properties = kLinear,
                .samples = transpose_samples,
                .doc = "x with two dims exchanged; rank 0 counts as rank 1."});
  OpTable::add(
      {.schema = "select(Tensor x, Dim dim, int index) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view = [](const Frame& f,
                  const Geometry& x) { return select_of(f, x, f.arg<int64_t>(1), f.arg<int64_t>(2)); },
       .edit = select_in_header,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes", "dim", "index"),
                   [](Tensor dy, Ints sizes, int64_t dim, int64_t index) {
                     return select_scatter(new_zeros(dy, sizes), dy, dim, index);
                   })},
       .properties = kLinear,
       .samples = select_samples,
       .doc = "x at one index of a dim, which is dropped; a negative index counts from the end. Errors: "
              "dim_out_of_range (also for rank 0), index_out_of_range."});
  OpTable::add(
      {.schema = "slice(Tensor x, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
       .shape = ShapeClass::View,
       .view =
           [](const Frame& f, const Geometry& x) {
             return slice_of(f, x, f.arg<int64_t>(1), int_or_none(f, 2), int_or_none(f, 3),
                             f.arg<int64_t>(4));
           },
       .edit = slice_in_header,
       .jvp = linear_in({"x"}),
       .vjp = {wrt(
           "x", saves("x.sizes", "dim", "start", "end", "step"),
           [](Tensor dy, Ints sizes, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
              int64_t step) { return slice_scatter(new_zeros(dy, sizes), dy, dim, start, end, step); })},
       .properties = kLinear,
       .samples = slice_samples,
       .doc = "Every step-th index from start up to end along a dim; bounds count from the end when negative "
              "and are "
              "clamped as in Python. Error value unless step > 0."});
}

void define_picking() {
  OpTable::add({.schema = "diagonal(Tensor x, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor(a)",
                .shape = ShapeClass::View,
                .view =
                    [](const Frame& f, const Geometry& x) {
                      return diagonal_of(f, x, f.arg<int64_t>(1), f.arg<int64_t>(2), f.arg<int64_t>(3));
                    },
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("x.sizes", "offset", "dim1", "dim2"),
                            [](Tensor dy, Ints sizes, int64_t offset, int64_t dim1, int64_t dim2) {
                              return diagonal_scatter(new_zeros(dy, sizes), dy, offset, dim1, dim2);
                            })},
                .properties = kLinear,
                .samples = diagonal_samples,
                .doc = "The elements whose index along dim2 exceeds that along dim1 by offset, as the last "
                       "dim; empty when the "
                       "offset leaves x. Error shape for dim1 = dim2."});
}
}  // namespace

void define_view() {
  define_reshaping();
  define_moving(), define_picking();
}

}  // namespace lamella::ops
