// Elements chosen by index tensors (i32 or i64), and their transposes.
#include "lamella/ops/functions/index.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/functions/view_scatter.h"
#include "lamella/ops/geometry.h"
#include "lamella/ops/structured.h"

namespace lamella::ops {

namespace {
int64_t size_at(const Tensor& t, int d) { return t.rank() == 0 ? 1 : t.size(d); }
int ranked(const Tensor& t) { return std::max(t.rank(), 1); }

void check_index_dtype(const Frame& f, const Tensor& index) {
  const bool counts = index.dtype() == DType::I64 || index.dtype() == DType::I32;
  const bool fits = counts || (index.numel() == 0 && is_integer(index.dtype()));
  LAMELLA_CHECK(fits, DType, "{}: index is {}, expected i32 or i64", op_name(f), index);
}

/// The index as all kernels read it, those of plug-ins too. An entry that is repeated in memory stays so: an
/// expanded index is widened once, and kernels move whole rows by it.
Tensor as_i64(const Launch& l, const Tensor& index) {
  if (index.dtype() == DType::I64) return index;
  Dims once(index.sizes());
  for (int d = 0; d < once.size(); ++d)
    if (index.strides()[size_t(d)] == 0 && once[d] > 1) once[d] = 1;
  const Tensor wide = make_tensor(once, DType::I64, l.device);
  View from = index.view_of();
  from.sizes = once.data();
  copy_view(l, wide.view_of(), from);
  Dims strides(wide.strides());
  for (int d = 0; d < once.size(); ++d)
    if (once[d] != index.size(d)) strides[d] = 0;
  return make_view_unchecked(wide, index.sizes(), strides, 0);
}

/// Index and x: same rank, and no larger than x except along dim. An index without elements chooses nothing:
/// any shape.
int check_index(const Frame& f, const Tensor& x, const Tensor& index) {
  const int dim = int(wrap_dim(f, "dim", f.arg<int64_t>(1), x));
  check_index_dtype(f, index);
  if (index.numel() == 0) return dim;
  LAMELLA_CHECK(ranked(index) == ranked(x), Shape, "{}: index is {}, expected the rank of x: {}", op_name(f),
                index, x);
  for (int d = 0; d < ranked(x); ++d)
    LAMELLA_CHECK(d == dim || size_at(index, d) <= size_at(x, d), Shape,
                  "{}: index is {}, expected sizes that do not exceed those of x: {} except at dim {}",
                  op_name(f), index, x, dim);
  return dim;
}

void infer_gather(const Frame& f, Inferred& out) {
  const Tensor &x = f.tensor(0), &index = f.tensor(2);
  out.ints = Dims{check_index(f, x, index)};
  out.compute = x.dtype();
  out.outs.push_back({index.sizes(), x.dtype()});
}

void launch_gather(const Launch& l) {
  if (l.outs[0].numel() == 0) return;
  const Tensor index = as_i64(l, l.frame.tensor(2));
  const View out = at_least_1d(l.outs[0].view_of());
  const View ins[] = {at_least_1d(l.frame.tensor(0).view_of()), at_least_1d(index.view_of())};
  run(l, {&out, 1}, ins, l.inferred.ints);
}

void check_same_dtype(const Frame& f, const Tensor& x, const Tensor& src) {
  LAMELLA_CHECK(x.dtype() == src.dtype(), DType, "{}: src is {}, expected the dtype of x: {}", op_name(f),
                src, x);
}

void infer_scatter_add(const Frame& f, Inferred& out) {
  const Tensor &x = f.tensor(0), &index = f.tensor(2), &src = f.tensor(3);
  infer_same(f, out);
  out.ints = Dims{check_index(f, x, index)};
  check_same_dtype(f, x, src);
  if (index.numel() == 0) return;
  LAMELLA_CHECK(ranked(src) == ranked(index), Shape, "{}: src is {}, expected the rank of index: {}",
                op_name(f), src, index);
  for (int d = 0; d < ranked(index); ++d)
    LAMELLA_CHECK(size_at(index, d) <= size_at(src, d), Shape,
                  "{}: index is {}, expected sizes that do not exceed those of src: {}", op_name(f), index,
                  src);
}

void launch_scatter_add(const Launch& l) {
  const Tensor index = as_i64(l, l.frame.tensor(2));
  const View out = at_least_1d(l.outs[0].view_of());
  View ins[] = {at_least_1d(l.frame.tensor(0).view_of()), at_least_1d(index.view_of()),
                at_least_1d(l.frame.tensor(3).view_of())};
  if (index.numel() > 0) ins[2].sizes = ins[1].sizes;  // src may be larger; an empty index, of another rank
  run(l, {&out, 1}, ins, l.inferred.ints);
}

/// dy at the index, in src's shape: what the index leaves out of src has no influence.
Tensor scatter_add_wrt_src(const Tensor& dy, int64_t dim, const Tensor& index, Ints sizes) {
  if (index.numel() == 0) return new_zeros(dy, sizes);
  Tensor out = gather(dy, dim, index);
  if (out.rank() < int(sizes.size())) out = unsqueeze(out, 0);  // rank 0 counts as one dim of size 1
  for (int d = 0; d < int(sizes.size()); ++d) {
    if (out.size(d) == sizes[size_t(d)]) continue;
    Dims padded(out.sizes());
    padded[d] = sizes[size_t(d)];
    out = slice_scatter(new_zeros(out, padded), out, d, 0, out.size(d));
  }
  return std::ranges::equal(out.sizes(), sizes) ? out : reshape(out, sizes);
}

int check_flat_index(const Frame& f, const Tensor& x, const Tensor& index) {
  const int dim = int(wrap_dim(f, "dim", f.arg<int64_t>(1), x));
  check_index_dtype(f, index);
  LAMELLA_CHECK(index.rank() <= 1, Shape, "{}: index is {}, expected rank 1", op_name(f), index);
  LAMELLA_CHECK(x.rank() > 0 || index.numel() == 1, Shape, "{}: index is {}, expected one entry for x: {}",
                op_name(f), index, x);
  return dim;
}

void infer_index_select(const Frame& f, Inferred& out) {
  infer_same(f, out);
  const int dim = check_flat_index(f, f.tensor(0), f.tensor(2));
  out.ints = Dims{dim};
  if (f.tensor(0).rank() > 0) out.outs[0].sizes[dim] = f.tensor(2).numel();
}

void infer_index_add(const Frame& f, Inferred& out) {
  const Tensor &x = f.tensor(0), &index = f.tensor(2), &src = f.tensor(3);
  const Scalar& alpha = f.arg<Scalar>(4);
  infer_same(f, out);
  const int dim = check_flat_index(f, x, index);
  out.ints = Dims{dim};
  check_same_dtype(f, x, src);
  const bool fits =
      category(alpha.kind()) <= category(x.dtype()) || (is_bool(x.dtype()) && alpha.is_integral());
  LAMELLA_CHECK(fits, DType, "{}: alpha = {} does not fit x: {}; expected a number of its kind", op_name(f),
                alpha.str(), x);
  Dims wanted(x.sizes());
  if (x.rank() > 0) wanted[dim] = index.numel();
  LAMELLA_CHECK(wanted.equal(src.sizes()), Shape,
                "{}: src is {}, expected sizes {}: those of x: {} with {} at dim {}", op_name(f), src, wanted,
                x, index.numel(), dim);
}

Tensor scaled(const Tensor& src, const Scalar& alpha) {
  if (alpha == Scalar(1)) return src;
  if (is_bool(src.dtype())) return alpha.to<bool>() ? src : zeros_like(src);
  return mul(src, alpha);
}

/// Likewise, of half dtypes in f32, where they are added up.
Tensor scaled_to_add(const Tensor& src, const Scalar& alpha) {
  return scaled(is_half(src.dtype()) && !(alpha == Scalar(1)) ? to(src, DType::F32) : src, alpha);
}

Scalar conjugate(const Scalar& s) { return is_complex(s.kind()) ? Scalar(std::conj(s.to_complex())) : s; }

/// scatter_add with the index repeated along all other dims.
void launch_index_add(const Launch& l) {
  const Tensor src = scaled_to_add(l.frame.tensor(3), l.frame.arg<Scalar>(4));
  const Tensor& x = l.frame.tensor(0);
  if (src.numel() == 0) return copy_view(l, l.outs[0].view_of(), x.view_of());
  const Tensor index = as_i64(l, l.frame.tensor(2));
  const View out = at_least_1d(l.outs[0].view_of());
  View ins[] = {at_least_1d(x.view_of()), at_least_1d(index.view_of()), at_least_1d(src.view_of())};
  Dims strides(ins[2].rank);
  strides[int(l.inferred.ints[0])] = ins[1].strides[0];
  ins[1].rank = ins[2].rank;
  ins[1].sizes = ins[2].sizes;
  ins[1].strides = strides.data();
  under_own_name(l.frame, "scatter_add", [&] { run(l, {&out, 1}, ins, l.inferred.ints); });
}

/// Operands of a flat-index operator with the mapped dim in front, x with one dim behind it at least.
struct FlatBatch {
  Tensor x;
  int64_t dim;
  explicit FlatBatch(const BatchCall& b) : x(b.front(0)) {
    const int rank = b.logical_rank(0);
    const int64_t d = b.frame.arg<int64_t>(1);
    dim = rank == 0 ? 1 : (d < 0 ? d + rank : d) + 1;
    if (rank == 0) x = unsqueeze(x, 1);
  }
};

/// The lanes' indices [B, k] repeated to `sizes` ([B, .., k at dim, ..]).
Tensor repeated_index(const BatchCall& b, int64_t dim, Dims sizes) {
  Tensor index = b.front(2);
  if (index.rank() == 1) index = unsqueeze(index, 1);
  sizes[int(dim)] = index.size(1);
  Dims lined_up(sizes.size(), 1);
  lined_up[0] = index.size(0);
  lined_up[int(dim)] = index.size(1);
  return expand(reshape(index, lined_up), sizes);
}

void batch_index_select(BatchCall& b) {
  const FlatBatch lanes(b);
  const Tensor out = b.is_mapped(2)
                         ? gather(lanes.x, lanes.dim, repeated_index(b, lanes.dim, lanes.x.sizes()))
                         : index_select(lanes.x, lanes.dim, b.frame.tensor(2));
  b.results[0] = b.logical_rank(0) == 0 ? squeeze(out, IntArg({1})) : out;
}

void batch_index_add(BatchCall& b) {
  const FlatBatch lanes(b);
  const Scalar& alpha = b.frame.arg<Scalar>(4);
  Tensor src = b.front(3);
  if (b.logical_rank(0) == 0) src = unsqueeze(src, 1);
  const auto with_lanes_index = [&] {
    const Tensor terms = scaled_to_add(src, alpha), index = repeated_index(b, lanes.dim, src.sizes());
    return in_dtype(scatter_add(in_dtype(lanes.x, terms.dtype()), lanes.dim, index, terms), src.dtype());
  };
  const Tensor out =
      b.is_mapped(2) ? with_lanes_index() : index_add(lanes.x, lanes.dim, b.frame.tensor(2), src, alpha);
  b.results[0] = b.logical_rank(0) == 0 ? squeeze(out, IntArg({1})) : out;
}

/// The shape depends on values: they are counted first.
void infer_nonzero(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(x.impl()->storage, NoKernel,
                "{}: the shape of the result depends on the values of {}: {}, which are not visible here "
                "(meta or under vmap); expected a tensor whose values are",
                op_name(f), Argument{"x"}, x);
  const Tensor count = make_tensor({}, DType::I64, x.device());
  static const kernels::Kernel& count_nonzero = kernels::named("count_nonzero");
  const View in = x.view_of(), result = count.view_of();
  run_kernel(f, count_nonzero.on(x.device()), {{&result, 1}, {&in, 1}, x.dtype()});
  out.compute = x.dtype();
  out.outs.push_back({Dims{count.item<int64_t>(), x.rank()}, DType::I64});
}

/// x, a dim, and a shape for the index: x's, with another size at dim, smaller elsewhere.
struct Picked {
  Tensor x;
  int64_t dim;
  Dims index;
};
Picked picked(Draw& d, DTypeMask types) {
  const DType t = d.dtype(types);
  Dims s = d.shape();
  const int64_t dim = d.dim(s.size());
  const int at = int(dim < 0 ? dim + std::max(s.size(), 1) : dim);
  if (s.size() > 0 && s[at] == 0) s[at] = 1;
  Dims index = s;
  for (int i = 0; i < s.size(); ++i) index[i] = i == at ? d.size() : d.one_in(4) ? s[i] / 2 : s[i];
  return {d.tensor(s, t), dim, index};
}
int64_t bound(const Picked& p) { return p.x.rank() == 0 ? 1 : p.x.size(int(p.dim)); }

/// Rank 0 counts as one dim of size 1.
void change_rank(Draw& d, Dims& index) {
  if (index.size() == 1 && d.one_in(4)) index = {};
}

DType index_type(Draw& d) { return d.one_in(4) ? DType::I32 : DType::I64; }

Values gather_samples(Draw& d) {
  Picked p = picked(d, kAllTypes);
  change_rank(d, p.index);
  return {p.x, p.dim, d.index(p.index, bound(p), index_type(d))};
}

Values scatter_add_samples(Draw& d) {
  const Picked p = picked(d, kAllTypes);
  Dims src = p.index;
  for (int64_t& s : src)
    if (d.one_in(4)) ++s;
  Dims sizes = p.index;
  if (sizes.size() == 1 && sizes[0] > 0) change_rank(d, sizes);
  if (sizes.size() == 0 || sizes[0] == 1) change_rank(d, src);
  const Tensor index = d.index(sizes, bound(p), index_type(d));
  return {p.x, p.dim, index, d.tensor(src, p.x.dtype())};
}

Tensor flat_index(Draw& d, const Picked& p) {
  const DType t = index_type(d);
  if (p.x.rank() == 0 || d.one_in(4)) return d.index(d.flag() ? Dims{1} : Dims{}, bound(p), t);
  return d.index(Dims{d.size()}, bound(p), t);
}

Values index_select_samples(Draw& d) {
  const Picked p = picked(d, kAllTypes);
  return {p.x, p.dim, flat_index(d, p)};
}

Values index_add_samples(Draw& d) {
  const Picked p = picked(d, kAllTypes);
  const Tensor index = flat_index(d, p);
  Dims src(p.x.sizes());
  if (src.size() > 0) src[int(p.dim < 0 ? p.dim + src.size() : p.dim)] = index.numel();
  Values v{p.x, p.dim, index, d.tensor(src, p.x.dtype())};
  if (d.flag()) v.push_back(is_bool(p.x.dtype()) ? Scalar(1) : d.scalar(p.x.dtype()));
  return v;
}

void define_by_element() {
  OpTable::add(
      {.schema = "gather(Tensor x, Dim dim, Tensor index) -> Tensor",
       .shape = ShapeClass::Index,
       .infer = infer_gather,
       .kernel = kernel("gather"),
       .launch = launch_gather,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes", "dim", "index"),
                   [](Tensor dy, Ints sizes, int64_t dim, Tensor index) {
                     return scatter_add(new_zeros(dy, sizes), dim, index, dy);
                   })},
       .properties = kLinear | kNoInPlace | kValueErrors | kExactOut,
       .promises = {.once = true},
       .numerics = {0, 1},
       .samples = gather_samples,
       .doc = "x with its index along dim taken from `index`, in index's shape; index has x's rank and is no "
              "larger than "
              "x except at dim. Errors: dtype unless index is i32 or i64, shape, index_out_of_range for an "
              "entry."});
  OpTable::add({.schema = "scatter_add(Tensor x, Dim dim, Tensor index, Tensor src) -> Tensor",
                .shape = ShapeClass::Index,
                .infer = infer_scatter_add,
                .kernel = kernel("scatter_add"),
                .launch = launch_scatter_add,
                .jvp = {wrt("x", [](Tensor t) { return t; }),
                        wrt("src", saves("x.sizes", "dim", "index"),
                            [](Tensor t, Ints sizes, int64_t dim, Tensor index) {
                              return scatter_add(new_zeros(t, sizes), dim, index, t);
                            })},
                .vjp = {wrt("x", [](Tensor dy) { return dy; }),
                        wrt("src", saves("dim", "index", "src.sizes"),
                            [](Tensor dy, int64_t dim, Tensor index, Ints sizes) {
                              return scatter_add_wrt_src(dy, dim, index, sizes);
                            })},
                .properties = kLinear | kValueErrors,
                .overflows_in = {Inside::Sums, "partial sums"},
                .numerics = {1, 0},
                .samples = scatter_add_samples,
                .doc = "x plus src's elements at the places gather would take them from; repeated places add "
                       "up in index order, half dtypes in f32 and rounded once. "
                       "src is no smaller than index. Errors: dtype, shape, index_out_of_range."});
}
}  // namespace

void define_index() {
  define_by_element();
  OpTable::add({.schema = "index_select(Tensor x, Dim dim, Tensor index) -> Tensor",
                .shape = ShapeClass::Index,
                .infer = infer_index_select,
                .kernel = kernel("index_select"),
                .launch = launch_gather,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("x.sizes", "dim", "index"),
                            [](Tensor dy, Ints sizes, int64_t dim, Tensor index) {
                              return index_add(new_zeros(dy, sizes), dim, index, dy);
                            })},
                .batch = batch_index_select,
                .properties = kLinear | kNoInPlace | kValueErrors,
                .promises = {.once = true},
                .numerics = {0, 1},
                .samples = index_select_samples,
                .doc = "x's slices at the entries of a rank-1 index along dim, in that order. Errors: dtype "
                       "unless index is i32 or i64, "
                       "shape, index_out_of_range."});
  OpTable::add(
      {.schema = "index_add(Tensor x, Dim dim, Tensor index, Tensor src, *, Scalar alpha=1) -> Tensor",
       .shape = ShapeClass::Index,
       .infer = infer_index_add,
       .kernel = kernel("scatter_add"),
       .launch = launch_index_add,
       .jvp = {wrt("x", [](Tensor t) { return t; }),
               wrt("src", saves("x.sizes", "dim", "index", "alpha"),
                   [](Tensor t, Ints sizes, int64_t dim, Tensor index, Scalar alpha) {
                     return index_add(new_zeros(t, sizes), dim, index, t, alpha);
                   })},
       .vjp = {wrt("x", [](Tensor dy) { return dy; }),
               wrt("src", saves("src.sizes", "dim", "index", "alpha"),
                   [](Tensor dy, Ints sizes, int64_t dim, Tensor index, Scalar alpha) {
                     return reshape(scaled(index_select(dy, dim, index), conjugate(alpha)), sizes);
                   })},
       .batch = batch_index_add,
       .properties = kLinear | kValueErrors,
       .overflows_in = {Inside::Products, "alpha times src, and partial sums"},
       .numerics = {1, 0},
       .samples = index_add_samples,
       .doc = "x plus alpha times src's slices, each added at its entry of a rank-1 index along dim; "
              "repeated entries add "
              "up in order, half dtypes in f32 and rounded once. Errors: dtype, shape, index_out_of_range."});
  OpTable::add({.schema = "nonzero(Tensor x) -> Tensor",
                .shape = ShapeClass::Dynamic,
                .infer = infer_nonzero,
                .kernel = kernel("nonzero"),
                .jvp = not_differentiable("indices are piecewise constant"),
                .vjp = not_differentiable("indices are piecewise constant"),
                .properties = kDiscontinuous | kNoInPlace,
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "Indices of x's nonzero elements in row-major order, i64[count, rank]. Error "
                       "no_kernel where values are not "
                       "visible: on meta and under vmap."});
}

}  // namespace lamella::ops
