// Joining tensors along a dim and taking them apart again.
#include "lamella/ops/functions/join.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/geometry.h"
#include "lamella/ops/structured.h"

namespace lamella::ops {

namespace {
/// NOTE: [empty entries of cat] A rank-1 tensor without elements joins with anything and adds nothing, as in
/// PyTorch.
bool adds_nothing(const Tensor& t) { return t.rank() == 1 && t.size(0) == 0; }

/// The first entry that counts for the shape; the last one when none does.
const Tensor& shape_giver(TensorSpan tensors) {
  const auto it = std::ranges::find_if_not(tensors, adds_nothing);
  return it == tensors.end() ? tensors.back() : *it;
}

void check_joins(const Frame& f, const Tensor& first, const Tensor& t, size_t at, int dim) {
  LAMELLA_CHECK(t.rank() == first.rank(), Shape, "{}: tensors[{}] is {}, expected rank {} as {}", op_name(f),
                at, t, first.rank(), first);
  for (int d = 0; d < t.rank(); ++d)
    LAMELLA_CHECK(d == dim || t.size(d) == first.size(d), Shape,
                  "{}: tensors[{}] is {}, expected the sizes of {} except at dim {}", op_name(f), at, t,
                  first, dim);
}

int cat_dim(const Frame& f) {
  return int(wrap_dim_of_rank(f, "dim", f.arg<int64_t>(1), shape_giver(f.tensors(0)).rank()));
}

void infer_cat(const Frame& f, Inferred& out) {
  const TensorSpan tensors = f.tensors(0);
  LAMELLA_CHECK(!tensors.empty(), Value, "{}: tensors is empty, expected one tensor at least", op_name(f));
  std::vector<const Tensor*> all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LAMELLA_CHECK(tensors[i].rank() > 0, Shape, "{}: tensors[{}] is {}, expected one dim at least",
                  op_name(f), i, tensors[i]);
    all.push_back(&tensors[i]);
  }
  const Tensor& first = shape_giver(tensors);
  const int dim = cat_dim(f);
  Dims sizes(first.sizes());
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (adds_nothing(tensors[i])) continue;
    check_joins(f, first, tensors[i], i, dim);
    LAMELLA_CHECK(!__builtin_add_overflow(sizes[dim], tensors[i].size(dim), &sizes[dim]), Overflow,
                  "{}: the sizes of {} at dim {} add up to more than int64 holds; expected at most 2^58",
                  op_name(f), Argument{"tensors"}, dim);
  }
  under_own_name(f, "empty", [&] { checked_numel(sizes, "empty"); });  // of the result, no argument
  out.compute = result_type(all);
  out.outs.push_back({sizes, out.compute});
}

void launch_cat(const Launch& l) {
  const Tensor& out = l.outs[0];
  const int dim = cat_dim(l.frame);
  Geometry part{out.sizes(), out.strides(), 0};
  for (const Tensor& t : l.frame.tensors(0)) {
    if (adds_nothing(t)) continue;
    part.sizes[dim] = t.size(dim);
    copy_view(l, view_at(out, part), t.view_of());
    part.offset += t.size(dim) * out.stride(dim);
  }
}

/// With a mapped dim in front, an entry that adds nothing would no longer be one of rank 1: it is left out,
/// its dtype still counts. So one of the others has that dtype before they are joined: in one that the others
/// promote to, numbers would be rounded that the result holds.
void batch_cat(BatchCall& b) {
  const TensorSpan lanes = b.logical.tensors(0);
  Inferred logical;
  infer_cat(b.logical, logical);
  const Tensors front = b.front_list(0);
  Tensors parts;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (!adds_nothing(lanes[i]) || &lanes[i] == &shape_giver(lanes)) parts.push_back(front[i]);
  if (parts.size() < lanes.size()) parts[0] = in_dtype(parts[0], logical.compute);
  b.results[0] = cat(parts, cat_dim(b.logical) + 1);
}

Tensor cat_tangent(TensorSpan tangents, TensorSpan tensors, int64_t dim) {
  Tensors all;
  for (size_t i = 0; i < tensors.size(); ++i)
    all.push_back(tangents[i].defined() ? tangents[i] : zeros_like(tensors[i]));
  return cat(all, dim);
}

Tensors cat_cotangents(const Tensor& dy, TensorSpan tensors, int64_t dim) {
  Tensors out;
  const int64_t d = dim < 0 ? dim + dy.rank() : dim;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (!is_inexact(t.dtype())) out.emplace_back();
    else if (adds_nothing(t)) out.push_back(new_zeros(dy, t.sizes(), t.dtype()));
    else {
      const Tensor part = slice(dy, d, at, at + t.size(int(d)));
      const Tensor fit = is_complex(part.dtype()) && !is_complex(t.dtype()) ? real(part) : part;
      out.push_back(fit.dtype() == t.dtype() ? fit : to(fit, t.dtype()));
    }
    if (!adds_nothing(t)) at += t.size(int(d));
  }
  return out;
}

void stack_of(Frame& f) {
  const TensorSpan tensors = f.tensors(0);
  LAMELLA_CHECK(!tensors.empty(), Value, "{}: tensors is empty, expected one tensor at least", op_name(f));
  const Tensor& first = tensors[0];
  const int64_t dim = wrap_dim_of_rank(f, "dim", f.arg<int64_t>(1), first.rank() + 1);
  Tensors parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LAMELLA_CHECK(std::ranges::equal(tensors[i].sizes(), first.sizes()), Shape,
                  "{}: tensors[{}] is {}, expected the sizes of {}", op_name(f), i, tensors[i], first);
    parts.push_back(unsqueeze(tensors[i], dim));
  }
  f.results[0] = cat(parts, dim);
}

/// Size along the split dim.
int64_t whole(const Frame& f, int64_t& dim) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(x.rank() > 0, Shape, "{}: x is {}, expected one dim at least", op_name(f), x);
  dim = wrap_dim(f, "dim", f.arg<int64_t>(2), x);
  return x.size(int(dim));
}

void split_of(Frame& f) {
  int64_t dim;
  const int64_t size = whole(f, dim), step = f.arg<int64_t>(1);
  LAMELLA_CHECK(step > 0 || (step == 0 && size == 0), Value, "{}: split_size = {}, expected split_size > 0",
                op_name(f), step);
  int64_t at = 0;
  do {  // a dim of size 0 gives one empty part
    const int64_t n = std::min(step, size - at);
    f.list->push_back(slice(f.tensor(0), dim, at, at + n));
    at += n;
  } while (at < size);
}

void split_with_sizes_of(Frame& f) {
  int64_t dim, at = 0;
  const int64_t size = whole(f, dim);
  const Ints parts = f.ints(1);
  for (const int64_t n : parts) {
    LAMELLA_CHECK(n >= 0 && n <= size - at, Value,
                  "{}: split_sizes = {}, expected sizes >= 0 that add up to {}, the size of dim {}",
                  op_name(f), Dims(parts), size, dim);
    at += n;
  }
  LAMELLA_CHECK(at == size, Value, "{}: split_sizes = {} add up to {}, expected size {} of dim {}",
                op_name(f), Dims(parts), at, size, dim);
  at = 0;
  for (const int64_t n : parts) {
    f.list->push_back(slice(f.tensor(0), dim, at, at + n));
    at += n;
  }
}

/// by mod size, at least 0.
int64_t turned_by(int64_t by, int64_t size) { return size == 0 ? 0 : (by % size + size) % size; }

/// ints: 1 and one shift for all elements in row-major order, or 0 and one for each dim.
void infer_roll(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  const Ints shifts = f.ints(1), dims = f.none(2) ? Ints() : f.ints(2);
  LAMELLA_CHECK(shifts.size() == (f.none(2) ? 1 : dims.size()), Shape,
                "{}: shifts = {} has {} entries; expected {}", op_name(f), Dims(shifts), shifts.size(),
                f.none(2) ? "one, for dims = None" : "as many as dims");
  out.compute = x.dtype();
  out.outs.push_back({x.sizes(), x.dtype()});
  out.ints = f.none(2) ? Dims{1, turned_by(shifts[0], x.numel())} : Dims(x.rank() + 1, 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int d = int(wrap_dim(f, "dims", dims[i], x));
    if (x.rank() > 0)
      out.ints[d + 1] = turned_by(out.ints[d + 1] + turned_by(shifts[i], x.size(d)), x.size(d));
  }
}

Tensor turned(const Tensor& x, int64_t dim, int64_t by) {
  const int64_t n = x.size(int(dim));
  return cat({slice(x, dim, n - by, n), slice(x, dim, 0, n - by)}, dim);
}

void roll_of(Frame& f) {
  Inferred wanted;
  infer_roll(f, wanted);
  const Tensor& x = f.tensor(0);
  Tensor y = x;
  if (wanted.ints[0] == 1) {
    if (wanted.ints[1] > 0) y = reshape(turned(reshape(x, Dims{x.numel()}), 0, wanted.ints[1]), x.sizes());
  } else {
    for (int d = 0; d < x.rank(); ++d)
      if (wanted.ints[d + 1] > 0) y = turned(y, d, wanted.ints[d + 1]);
  }
  f.results[0] = y.impl() == x.impl() ? clone(x) : y;
}

/// The definition's: where the element that is moved here was.
constexpr auto before_turning = [](int64_t* at, Ints sizes, Ints ints) {
  const size_t rank = sizes.size();
  if (ints[0] == 0) {
    for (size_t d = 0; d < rank; ++d) at[d] = turned_by(at[d] - ints[d + 1], sizes[d]);
    return;
  }
  int64_t number = 0, count = 1;
  for (size_t d = 0; d < rank; ++d) number = number * sizes[d] + at[d], count *= sizes[d];
  number = turned_by(number - ints[1], count);
  for (size_t d = rank; d-- > 0; number /= sizes[d]) at[d] = number % sizes[d];
};

Values roll_samples(Draw& d) {
  const Dims s = d.shape();
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const auto shift = [&d] { return d.anywhere(d.range(-3, 3), 5); };
  if (d.flag()) return {x, Dims{shift()}};
  Dims dims = s.empty() ? Dims{} : d.dims(s.size());
  if (!dims.empty() && d.one_in(4)) dims.push_back(dims[0]);  // shifts along one dim add up
  Dims shifts;
  for (int i = 0; i < dims.size(); ++i) shifts.push_back(shift());
  return {x, shifts, dims};
}

Values cat_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes), other = d.partner(t, kAllTypes);
  Dims s = d.shape(1, 2);
  const int64_t dim = d.dim(s.size());
  Tensors list;
  const int64_t n = d.entries(1, 3);
  for (int64_t i = 0; i < n; ++i) {
    const bool skipped = d.one_in(other == t ? 6 : 2);  // for its elements, and not for its dtype
    const DType type = i == 1 || (skipped && i > 0) ? other : t;
    list.push_back(d.tensor(skipped ? Dims{0} : s, type));
    s[int(dim < 0 ? dim + s.size() : dim)] = d.size();
  }
  if (std::ranges::all_of(list, adds_nothing)) return {Tensors{list[0]}, int64_t{0}};
  if (d.flag() && (dim == 0 || dim == -s.size())) return {list};
  return {list, dim};
}

Values stack_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes), other = d.partner(t, kAllTypes);
  const Dims s = d.shape(0, 2);
  Tensors list;
  const int64_t n = d.entries(1, 3);
  for (int64_t i = 0; i < n; ++i) list.push_back(d.tensor(s, i == 1 ? other : t));
  if (d.flag()) return {list};
  return {list, d.dim(s.size() + 1)};
}

Values split_samples(Draw& d) {
  const Dims s = d.shape(1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t step = d.positive(d.range(1, 4), s[0]);
  if (d.flag()) return {x, step};
  return {x, step, d.dim(s.size())};
}

Values split_with_sizes_samples(Draw& d) {
  const Dims s = d.shape(1);
  const Tensor x = d.tensor(s, d.dtype(kAllTypes));
  const int64_t dim = d.dim(s.size()), size = s[int(dim < 0 ? dim + s.size() : dim)],
                first = d.range(0, size);
  if (d.flag()) return {x, Dims{first, 0, size - first}, dim};
  return {x, Dims{first, size - first}, dim};
}

void define_joining() {
  OpTable::add({.schema = "cat(Tensor[] tensors, Dim dim=0) -> Tensor",
                .shape = ShapeClass::Other,
                .infer = infer_cat,
                .kernel = kernel("copy"),
                .launch = launch_cat,
                .jvp = {wrt("tensors", saves("tensors", "dim"),
                            [](TensorSpan t, TensorSpan tensors, int64_t dim) {
                              return cat_tangent(t, tensors, dim);
                            })},
                .vjp = {wrt("tensors", saves("tensors.meta", "dim"),
                            [](Tensor dy, TensorSpan tensors, int64_t dim) {
                              return cat_cotangents(dy, tensors, dim);
                            })},
                .batch = batch_cat,
                .properties = kLinear,
                .promises = {.once = true},
                .samples = cat_samples,
                .doc = "Tensors one after the other along a dim, promoted; all other sizes are equal. Rank-1 "
                       "tensors without "
                       "elements add nothing. Errors: value for an empty list, shape."});
  OpTable::add({.schema = "stack(Tensor[] tensors, Dim dim=0) -> Tensor",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_stack,
                .kernel = {.reference = kernels::reference::stacked},
                .launch = definition::run_stack,
                .composite = stack_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kNoOut,
                .samples = stack_samples,
                .doc = "Tensors of equal sizes along a new dim at position `dim` of the result. Errors: "
                       "value for an empty list, "
                       "shape."});
}

void define_cutting() {
  OpTable::add({.schema = "split(Tensor x, int split_size, Dim dim=0) -> Tensor(a)[]",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_split,
                .kernel = {.reference = kernels::reference::cut},
                .composite = split_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .samples = split_samples,
                .doc = "Views of split_size indices each along a dim, the last one smaller where needed. "
                       "Error value unless "
                       "split_size > 0."});
  OpTable::add({.schema = "split_with_sizes(Tensor x, int[] split_sizes, Dim dim=0) -> Tensor(a)[]",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_split_with_sizes,
                .kernel = {.reference = kernels::reference::cut},
                .composite = split_with_sizes_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .samples = split_with_sizes_samples,
                .doc = "Views of the given sizes along a dim, one after the other. Error value unless they "
                       "add up to its size."});
}

void define_roll() {
  OpTable::add(
      {.schema = "roll(Tensor x, int[] shifts, Dim[]? dims=None) -> Tensor",
       .shape = ShapeClass::Composite,
       .infer = infer_roll,
       .kernel = definition::by_places(before_turning),
       .launch = definition::run_places,
       .composite = roll_of,
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kLinear | kNoInPlace,
       .promises = {.once = true},
       .samples = roll_samples,
       .doc = "A copy of x with its elements moved on by `shifts` along `dims`, those that leave at the end "
              "coming in at the front; None: in row-major order. Errors: shape unless there is a shift for "
              "each dim."});
}
}  // namespace

void define_join() {
  define_joining();
  define_cutting();
  define_roll();
}

}  // namespace lamella::ops
