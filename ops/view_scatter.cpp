// Out-of-place writes through views: the transposes of select, slice and diagonal, and how a changed view
// goes back to its base.
#include "lamella/ops/functions/view_scatter.h"

#include <algorithm>

#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {
int64_t int_at(const Frame& f, std::string_view name) { return f.arg<int64_t>(param(f, name)); }

std::optional<int64_t> bound(const Frame& f, std::string_view name) {
  const int at = param(f, name);
  return f.none(at) ? std::nullopt : std::optional(f.arg<int64_t>(at));
}

/// The view of x that src replaces, for x with this geometry.
Geometry target_of(const Frame& f, const Geometry& x) {
  if (op_name(f) == "select_scatter") return select_of(f, x, int_at(f, "dim"), int_at(f, "index"));
  if (op_name(f) == "slice_scatter")
    return slice_of(f, x, int_at(f, "dim"), bound(f, "start"), bound(f, "end"), int_at(f, "step"));
  return diagonal_of(f, x, int_at(f, "offset"), int_at(f, "dim1"), int_at(f, "dim2"));
}

void infer_scatter(const Frame& f, Inferred& out) {
  infer_same(f, out);
  const Tensor &x = f.tensor(0), &src = f.tensor(1);
  const Geometry target = target_of(f, {x.sizes(), contiguous_strides(x.sizes()), 0});
  LAMELLA_CHECK(target.sizes.equal(src.sizes()), Shape,
                "{}: src is {}, expected sizes {}, those of the part of x: {} it replaces", op_name(f), src,
                target.sizes, x);
  LAMELLA_CHECK(can_store(src.dtype(), x.dtype()), DType,
                "{}: src is {}, expected a dtype that x: {} can hold", op_name(f), src, x);
}

void launch_scatter(const Launch& l) {
  const Tensor& out = l.outs[0];
  copy_view(l, out.view_of(), l.frame.tensor(0).view_of());
  const Geometry target = target_of(l.frame, {out.sizes(), out.strides(), 0});
  copy_view(l, view_at(out, target), l.frame.tensor(1).view_of());
}

/// The view's own samples, with the second tensor its attributes ask for.
Values with_src(Draw& d, const Tensor& x, const Dims& sizes, Values attributes) {
  Values v{x, d.tensor(sizes, x.dtype())};
  v.insert(v.end(), attributes.begin(), attributes.end());
  return v;
}

int wrapped(int64_t dim, int rank) { return int(dim < 0 ? dim + rank : dim); }

Values select_scatter_samples(Draw& d) {
  Dims s = d.shape(1);
  const int64_t dim = d.dim(s.size());
  int64_t& size = s[wrapped(dim, s.size())];
  size = std::max<int64_t>(size, 1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t index = d.range(-size, size - 1);
  s.erase(wrapped(dim, s.size()));
  return with_src(d, x, s, {dim, index});
}

Values slice_scatter_samples(Draw& d) {
  Dims s = d.shape(1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t dim = d.dim(s.size());
  int64_t& size = s[wrapped(dim, s.size())];
  if (d.flag()) return with_src(d, x, s, {dim});
  const int64_t start = d.range(0, size), end = d.range(start, size), step = d.range(1, 3);
  const int64_t from = start - size;  // the same place, counted from the end
  // What lies beyond an end means that end.
  const int64_t low = start == 0 ? d.anywhere(0, size) : start,
                high = end == size ? d.anywhere(end, size) : end;
  const int64_t first = low <= -size ? low : from < 0 && d.flag() ? from : start, last = std::max(high, end);
  size = (end - start + step - 1) / step;
  return with_src(d, x, s, {dim, first, last, step});
}

Values diagonal_scatter_samples(Draw& d) {
  Dims s = d.shape(2);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const Dims dims = d.dims(s.size(), 2);
  const int row = wrapped(dims[0], s.size()), column = wrapped(dims[1], s.size());
  const int64_t offset = d.anywhere(d.range(-2, 2), s[row]);
  const int64_t length =
      offset >= 0 ? std::min(s[row], s[column] - offset) : std::min(s[row] + offset, s[column]);
  s.erase(std::max(row, column));
  s.erase(std::min(row, column));
  s.push_back(std::max<int64_t>(length, 0));
  return with_src(d, x, s, {offset, dims[0], dims[1]});
}

using Int = int64_t;
using MaybeInt = std::optional<int64_t>;

void define_slice_scatter() {
  OpTable::add({.schema = "slice_scatter(Tensor x, Tensor src, Dim dim=0, int? start=None, int? end=None, "
                          "int step=1) -> Tensor",
                .shape = ShapeClass::AlongDim,
                .infer = infer_scatter,
                .kernel = kernel("copy"),
                .launch = launch_scatter,
                .jvp = {wrt("x", saves("src.sizes", "dim", "start", "end", "step"),
                            [](Tensor t, Ints src, Int dim, MaybeInt start, MaybeInt end, Int step) {
                              return slice_scatter(t, new_zeros(t, src), dim, start, end, step);
                            }),
                        wrt("src", saves("x.sizes", "dim", "start", "end", "step"),
                            [](Tensor t, Ints x, Int dim, MaybeInt start, MaybeInt end, Int step) {
                              return slice_scatter(new_zeros(t, x), t, dim, start, end, step);
                            })},
                .vjp = {wrt("x", saves("src.sizes", "dim", "start", "end", "step"),
                            [](Tensor dy, Ints src, Int dim, MaybeInt start, MaybeInt end, Int step) {
                              return slice_scatter(dy, new_zeros(dy, src), dim, start, end, step);
                            }),
                        wrt("src", saves("dim", "start", "end", "step"),
                            [](Tensor dy, Int dim, MaybeInt start, MaybeInt end, Int step) {
                              return slice(dy, dim, start, end, step);
                            })},
                .properties = kLinear,
                .promises = {.once = true},
                .samples = slice_scatter_samples,
                .doc = "A copy of x whose slice (as slice takes it) is src. Error shape unless src has the "
                       "slice's sizes; error dtype where it is of a higher kind than x (float into int)."});
}
}  // namespace

void define_view_scatter() {
  OpTable::add(
      {.schema = "select_scatter(Tensor x, Tensor src, Dim dim, int index) -> Tensor",
       .shape = ShapeClass::AlongDim,
       .infer = infer_scatter,
       .kernel = kernel("copy"),
       .launch = launch_scatter,
       .jvp = {wrt("x", saves("src.sizes", "dim", "index"),
                   [](Tensor t, Ints src, Int dim, Int index) {
                     return select_scatter(t, new_zeros(t, src), dim, index);
                   }),
               wrt("src", saves("x.sizes", "dim", "index"),
                   [](Tensor t, Ints x, Int dim, Int index) {
                     return select_scatter(new_zeros(t, x), t, dim, index);
                   })},
       .vjp = {wrt("x", saves("src.sizes", "dim", "index"),
                   [](Tensor dy, Ints src, Int dim, Int index) {
                     return select_scatter(dy, new_zeros(dy, src), dim, index);
                   }),
               wrt("src", saves("dim", "index"),
                   [](Tensor dy, Int dim, Int index) { return select(dy, dim, index); })},
       .properties = kLinear,
       .promises = {.once = true},
       .samples = select_scatter_samples,
       .doc = "A copy of x with src at one index of a dim. Error shape unless src has the sizes of select; "
              "error dtype where it is of a higher kind than x (float into int)."});
  define_slice_scatter();
  OpTable::add(
      {.schema = "diagonal_scatter(Tensor x, Tensor src, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor",
       .shape = ShapeClass::AlongDim,
       .infer = infer_scatter,
       .kernel = kernel("copy"),
       .launch = launch_scatter,
       .jvp = {wrt("x", saves("src.sizes", "offset", "dim1", "dim2"),
                   [](Tensor t, Ints src, Int offset, Int dim1, Int dim2) {
                     return diagonal_scatter(t, new_zeros(t, src), offset, dim1, dim2);
                   }),
               wrt("src", saves("x.sizes", "offset", "dim1", "dim2"),
                   [](Tensor t, Ints x, Int offset, Int dim1, Int dim2) {
                     return diagonal_scatter(new_zeros(t, x), t, offset, dim1, dim2);
                   })},
       .vjp = {wrt("x", saves("src.sizes", "offset", "dim1", "dim2"),
                   [](Tensor dy, Ints src, Int offset, Int dim1, Int dim2) {
                     return diagonal_scatter(dy, new_zeros(dy, src), offset, dim1, dim2);
                   }),
               wrt("src", saves("offset", "dim1", "dim2"),
                   [](Tensor dy, Int offset, Int dim1, Int dim2) {
                     return diagonal(dy, offset, dim1, dim2);
                   })},
       .properties = kLinear,
       .promises = {.once = true},
       .samples = diagonal_scatter_samples,
       .doc = "A copy of x with src on a diagonal (as diagonal takes it). Error shape unless src has its "
              "sizes; error dtype where it is of a higher kind than x (float into int)."});
}

}  // namespace lamella::ops
