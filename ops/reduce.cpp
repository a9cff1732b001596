// Reductions: over some dims or all of them.
#include "lamella/ops/functions/reduce.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/scan.h"
#include "lamella/ops/functions/view.h"

namespace lamella::ops {

namespace {
/// The dims a call reduces, normalised and sorted: all for None and for an empty list.
Dims reduced_dims(int rank, std::optional<Ints> dim) {
  Dims out;
  if (!dim || dim->empty()) {
    for (int d = 0; d < rank; ++d) out.push_back(d);
  } else if (rank > 0) {
    for (const int64_t d : *dim) out.push_back(d < 0 ? d + rank : d);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A reduction's result with the reduced dims back as size 1: it broadcasts against the input.
Tensor with_reduced_dims(Tensor y, int rank, std::optional<Ints> dim, bool keepdim) {
  if (keepdim) return y;
  for (const int64_t d : reduced_dims(rank, dim)) y = unsqueeze(y, d);
  return y;
}

Tensor spread(const Tensor& y, Ints sizes, std::optional<Ints> dim, bool keepdim) {
  return expand(with_reduced_dims(y, int(sizes.size()), dim, keepdim), sizes);
}

DType sum_dtype(DType d) { return is_integer(d) || is_bool(d) ? DType::I64 : d; }

void infer_accumulate(const Frame& f, Inferred& out) {
  const int at = param(f, "dtype");
  const DType d = f.none(at) ? sum_dtype(f.tensor(0).dtype()) : f.arg<DType>(at);
  infer_reduce(f, out, d, d);
}

void launch_accumulate(const Launch& l) {
  launch_reduce(l, as_accumulated(l.frame.tensor(0), l.inferred.compute));
}

/// x / count, each part of a complex number by itself: a complex quotient would let the NaN of one part reach
/// the other.
Tensor divided_by_count(const Tensor& x, int64_t count) {
  const Scalar n(count);
  return is_complex(x.dtype()) ? complex(real(x) / n, imag(x) / n) : x / n;
}

/// mean: sum / count; half dtypes are summed and divided in f32.
void mean_composite(Frame& f) {
  const Tensor& x = f.tensor(0);
  const DType result = f.none(3) ? x.dtype() : f.arg<DType>(3);
  LAMELLA_CHECK(is_inexact(result), DType,
                "{}: x is {} and the result would be {}; expected a floating or complex dtype", op_name(f), x,
                result);
  const std::optional<Ints> dim = f.none(1) ? std::nullopt : std::optional<Ints>(f.ints(1));
  int64_t count = 1;
  const Dims dims = wrap_dims(f, "dim", dim, x);
  for (const int64_t d : dims) count *= x.size(int(d));
  const bool half = result == DType::F16 || result == DType::BF16;
  const Tensor total =
      sum(half ? in_dtype(x, result) : x, Ints(dims), f.arg<bool>(2), half ? DType::F32 : result);
  const Tensor mean = divided_by_count(total, count);
  f.results[0] = half ? to(mean, result) : mean;
}

/// Of nothing there is no greatest element.
void check_choice(const Frame& f, const Inferred& out) {
  const Tensor& x = f.tensor(0);
  for (const int64_t d : out.ints)
    LAMELLA_CHECK(x.size(int(d)) != 0, Shape,
                  "{}: dim {} of {}: {} is empty; expected at least one element to choose from", op_name(f),
                  d, Argument{"x"}, x);
}

void check_ordered(const Frame& f) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(!is_complex(x.dtype()), DType, "{}: x is {}, which has no order; expected a real dtype",
                op_name(f), x);
}

void infer_logsumexp(const Frame& f, Inferred& out) {
  check_ordered(f);
  const DType d = default_float(f.tensor(0).dtype());
  infer_reduce(f, out, d, d);
}

void infer_extreme(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  check_ordered(f);
  LAMELLA_CHECK(x.rank() <= kMaxDims, Shape, "{}: x has rank {}, expected at most {}", op_name(f), x.rank(),
                kMaxDims);
  infer_reduce(f, out, x.dtype(), x.dtype());
  check_choice(f, out);
}

/// What of the sum of exp(x) is x's: d logsumexp / dx. exp(x - result) would be off by the roundings of the
/// result, however far that is from 0. Those of halves are in f32: the sum of more than 65504 may overflow.
Tensor shares(const Tensor& of, Ints dim) {
  const Tensor x = widened(of);
  if (x.numel() == 0) return exp(x);
  const Dims dims = reduced_dims(x.rank(), dim);
  const Tensor e = exp(x - detach(amax(x, Ints(dims), true)));
  return e / sum(e, Ints(dims), true);
}

/// 1 / (number of ties) where x attains its extreme y, else 0: the tied elements share the derivative evenly.
Tensor tie_weights(const Tensor& like, const Tensor& x, const Tensor& y, Ints dim, bool keepdim) {
  const Tensor ties = eq(x, with_reduced_dims(y, x.rank(), dim, keepdim));
  const Tensor count = sum(ties, Ints(reduced_dims(x.rank(), dim)), true);
  return to(ties, like.dtype()) / count;
}

Tensor extreme_jvp(Tensor t, Tensor x, Tensor y, Ints dim, bool keepdim) {
  const Tensor wide = widened(t), parts = wide * tie_weights(wide, x, y, dim, keepdim);
  return in_dtype(sum(parts, Ints(reduced_dims(x.rank(), dim)), keepdim), t.dtype());
}

Tensor extreme_vjp(Tensor dy, Tensor x, Tensor y, Ints dim, bool keepdim) {
  const Tensor wide = with_reduced_dims(widened(dy), x.rank(), dim, keepdim);
  return in_dtype(wide * tie_weights(wide, x, y, dim, keepdim), dy.dtype());
}

void infer_argmax(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(!is_complex(x.dtype()) && !is_bool(x.dtype()), DType,
                "{}: x is {}, expected a real number's dtype", op_name(f), x);
  infer_reduce(f, out, DType::I64, x.dtype());
  check_choice(f, out);
}

/// Without a dim the index counts the elements in row-major order: the kernel sees one line.
void launch_argmax(const Launch& l) {
  const Tensor& x = l.frame.tensor(0);
  const bool flat = l.frame.none(1) || x.rank() == 0;
  const Tensor line = flat ? reshape(x, {x.numel()}) : x;
  const int64_t dim = flat ? 0 : l.inferred.ints[0];
  Dims sizes(line.sizes());
  sizes[int(dim)] = 1;
  const Dims strides = contiguous_strides(sizes);
  View out = l.outs[0].view_of();
  out.rank = sizes.size();
  out.sizes = sizes.data();
  out.strides = strides.data();
  const View in = line.view_of();
  run(l, {&out, 1}, {&in, 1}, {&dim, 1});
}

/// Without a dim each lane is one line.
void batch_argmax(BatchCall& b) {
  if (!b.frame.none(1)) return batch_front(b);
  const Tensor lines = reshape(b.front(0), Dims{b.size, b.logical.tensor(0).numel()});
  Dims sizes{b.size};
  if (b.frame.arg<bool>(2)) sizes.resize(b.logical_rank(0) + 1, 1);
  b.results[0] = reshape(argmax(lines, 1), sizes);
}

/// Along the last dim: the product of all other elements, from the products before and after each (no
/// division, so that zeros are right to all orders).
Tensor products_of_others(const Tensor& lines) {
  const int64_t n = lines.size(-1);
  if (n == 0) return lines;
  const auto before = [&](const Tensor& v) {
    return cat({ones_like(slice(v, -1, 0, 1)), slice(cumprod(v, -1), -1, 0, n - 1)}, -1);
  };
  return before(lines) * flip(before(flip(lines, {-1})), {-1});
}

/// d prod / dx at each element, shaped like x: see NOTE: [wide products].
Tensor prod_weights(const Tensor& x, std::optional<Ints> dim) {
  const Dims reduced = reduced_dims(x.rank(), dim);
  if (reduced.empty()) return ones_like(x);
  Dims order, lines, back(x.rank());
  for (int d = 0; d < x.rank(); ++d)
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) order.push_back(d);
  for (const int64_t d : order) lines.push_back(x.size(int(d)));
  int64_t length = 1;
  for (const int64_t d : reduced) {
    order.push_back(d);
    length *= x.size(int(d));
  }
  lines.push_back(length);
  for (int i = 0; i < order.size(); ++i) back[int(order[i])] = i;
  const Tensor moved = permute(x, order), wide = in_dtype(reshape(moved, lines), wide_range(x.dtype()));
  const Tensor others = in_dtype(products_of_others(wide), x.dtype());
  return permute(reshape(others, moved.sizes()), back);
}

/// x in the dtype the product was taken in.
Tensor converted(const Tensor& x, std::optional<DType> dtype) { return dtype ? in_dtype(x, *dtype) : x; }

/// Sums x over the dims that broadcasting would have added or widened from `size`.
void sum_to_size_composite(Frame& f) {
  const Tensor& x = f.tensor(0);
  const Ints size = f.ints(1);
  const int shift = x.rank() - int(size.size());
  LAMELLA_CHECK(shift >= 0, Shape,
                "{}: size = {} has more dims than x: {}; expected sizes that broadcast to x", op_name(f),
                Dims(size), x);
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t wanted = d < shift ? 1 : size[size_t(d - shift)];
    LAMELLA_CHECK(wanted == x.size(d) || wanted == 1, Shape,
                  "{}: size = {} does not broadcast to x: {}; expected equal sizes or 1", op_name(f),
                  Dims(size), x);
    if (d < shift || wanted != x.size(d)) dims.push_back(d);
  }
  if (dims.empty()) f.results[0] = size.empty() ? sum(x) : clone(x);
  else f.results[0] = reshape(sum(x, Ints(dims), true), size);
}

/// x, then dim (None or some), keepdim and, now and then or where one is needed, dtype.
Values accumulate_samples(Draw& d, DTypeMask results) {
  const DType t = d.dtype(kAllTypes);
  return d.with_dtype(t, results, !(results & mask(t)), [&] {
    const Dims s = d.shape();
    Values v{d.tensor(s, t), Value(), false};
    if (d.flag()) v[1] = d.dims(s.size());
    v[2] = d.flag();
    return v;
  });
}

Values logsumexp_samples(Draw& d) {
  const DType t = d.dtype(kFloating);
  const DType other = d.partner(t, d.options().dtypes & (kRealTypes | kBoolType));
  const Dims s = d.shape();
  const Dims dims = d.dims(s.size());
  return {d.tensor(s, is_inexact(other) ? t : other), dims, d.flag()};
}

/// x with no empty reduced dim, then dims and keepdim.
Values extreme_samples(Draw& d) {
  const DType t = d.dtype(kRealTypes | kBoolType);
  Dims s = d.shape();
  const Dims dims = d.dims(s.size());
  for (const int64_t at : reduced_dims(s.size(), Ints(dims))) s[int(at)] = std::max<int64_t>(s[int(at)], 1);
  return {d.tensor(s, t), dims, d.flag()};
}

Values argmax_samples(Draw& d) {
  const DType t = d.dtype(kRealTypes);
  Dims s = d.shape();
  const bool all = d.flag();
  const int64_t dim = d.dim(s.size());
  for (int i = 0; i < s.size(); ++i)
    if (all || i == (dim < 0 ? dim + s.size() : dim)) s[i] = std::max<int64_t>(s[i], 1);
  const Tensor x = d.tensor(s, t);
  if (all) return {x, Value(), d.flag()};
  return {x, dim, d.flag()};
}

Values sum_to_size_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  const Dims s = d.shape();
  return {d.tensor(s, t), d.broadcastable(s)};
}

void define_sums() {
  OpTable::add(
      {.schema = "sum(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::Reduce,
       .infer = infer_accumulate,
       .kernel = kernel("sum"),
       .launch = launch_accumulate,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes", "dim", "keepdim"),
                   [](Tensor dy, Ints sizes, std::optional<Ints> dim, bool keepdim) {
                     return spread(dy, sizes, dim, keepdim);
                   })},
       .properties = kLinear | kNoInPlace,
       .overflows_in = {Inside::Sums, "partial sums"},
       .samples = [](Draw& d) { return accumulate_samples(d, kAllTypes); },
       .doc = "Sum over dims `dim` (all when None or empty), 0 over nothing; integers and bool sum in i64 "
              "(wrapping) unless dtype is given: elements are converted to it first, and bool sums are `or`. "
              "Half dtypes accumulate in f32. Error at most n * 2^-p * sum |x|."});
  OpTable::add(
      {.schema = "prod(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::Reduce,
       .infer = infer_accumulate,
       .kernel = kernel("prod"),
       .launch = launch_accumulate,
       .jvp = {wrt("x", saves("x", "dim", "keepdim", "dtype"),
                   [](Tensor t, Tensor x, std::optional<Ints> dim, bool keepdim, std::optional<DType> dtype) {
                     return sum(converted(t, dtype) * prod_weights(converted(x, dtype), dim),
                                Ints(reduced_dims(x.rank(), dim)), keepdim);
                   })},
       .vjp = {wrt(
           "x", saves("x", "dim", "keepdim", "dtype"),
           [](Tensor dy, Tensor x, std::optional<Ints> dim, bool keepdim, std::optional<DType> dtype) {
             return with_reduced_dims(dy, x.rank(), dim, keepdim) *
                    conj(prod_weights(converted(x, dtype), dim));
           })},
       .properties = kNoInPlace,
       .overflows_in = {Inside::Powers, "partial products"},
       .samples = [](Draw& d) { return accumulate_samples(d, kAllTypes); },
       .doc =
           "Product over dims `dim` (all when None or empty), 1 over nothing; integers and bool multiply "
           "in i64 (wrapping) unless dtype is given: elements are converted to it first, and bool products "
           "are `and`. The derivative is right at zeros. Relative error at most n * 2^-p."});
}

void define_means() {
  OpTable::add(
      {.schema = "mean(Tensor x, Dim[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::Composite,
       .infer = definition::shape_of_mean,
       .kernel = {.reference = kernels::reference::mean},
       .composite = mean_composite,
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kLinear | kNoInPlace,
       .overflows_in = {Inside::Sums, "the sum, before it is divided"},
       .samples = [](Draw& d) { return accumulate_samples(d, kInexact); },
       .doc = "Sum over `dim` (all when None or empty) by the number of elements, NaN over nothing; elements "
              "are converted to dtype first. Error dtype when the result would be integer or bool."});
  OpTable::add({.schema = "sum_to_size(Tensor x, Size size) -> Tensor",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_sum_to_size,
                .kernel = {.reference = kernels::reference::summed_to},
                .composite = sum_to_size_composite,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kLinear | kNoInPlace,
                .overflows_in = {Inside::Sums, "partial sums"},
                .samples = sum_to_size_samples,
                .doc = "The transpose of broadcasting from `size` to x's sizes: sums the dims that were "
                       "added or widened. Error shape when size does not broadcast to x."});
}

struct Extreme {
  std::string_view schema;
  InferFn infer;  ///< said in each row, for its docs
  std::string_view kernel;
  uint32_t properties;
  std::string_view doc;
};

void define_extreme(const Extreme& e) {
  OpTable::add({.schema = e.schema,
                .shape = ShapeClass::Reduce,
                .infer = e.infer,
                .kernel = kernel(e.kernel),
                .jvp = {wrt("x", saves("x", "result", "dim", "keepdim"),
                            [](Tensor t, Tensor x, Tensor y, Ints dim, bool keepdim) {
                              return extreme_jvp(t, x, y, dim, keepdim);
                            })},
                .vjp = {wrt("x", saves("x", "result", "dim", "keepdim"),
                            [](Tensor dy, Tensor x, Tensor y, Ints dim, bool keepdim) {
                              return extreme_vjp(dy, x, y, dim, keepdim);
                            })},
                .properties = e.properties,
                .at_kinks = AtKinks::Shared,
                .promises = {.once = true, .rising = true},
                .samples = extreme_samples,
                .doc = e.doc});
}
}  // namespace

void define_reduce() {
  define_sums();
  define_means();
  define_extreme(
      {.schema = "amax(Tensor x, Dim[] dim=[], bool keepdim=False) -> Tensor",
       .infer = infer_extreme,
       .kernel = "amax",
       .properties = kKinks | kNoInPlace | kExactOut,
       .doc = "Greatest element over dims `dim` (all when empty); NaN wins. Ties share the cotangent evenly. "
              "Errors: dtype for complex x, shape for a reduced dim of size 0. Exact."});
  define_extreme({.schema = "amin(Tensor x, Dim[] dim=[], bool keepdim=False) -> Tensor",
                  .infer = infer_extreme,
                  .kernel = "amin",
                  .properties = kKinks | kNoInPlace | kExactOut,
                  .doc = "Least element over dims `dim` (all when empty); NaN wins. Ties share the cotangent "
                         "evenly. Errors: dtype for complex x, shape for a reduced dim of size 0. Exact."});
  OpTable::add(
      {.schema = "logsumexp(Tensor x, Dim[] dim, bool keepdim=False) -> Tensor",
       .shape = ShapeClass::Reduce,
       .infer = infer_logsumexp,
       .kernel = kernel("logsumexp"),
       .jvp = {wrt("x", saves("x", "dim", "keepdim"),
                   [](Tensor t, Tensor x, Ints dim, bool keepdim) {
                     const Tensor parts = in_dtype(t, is_half(x.dtype()) ? DType::F32 : x.dtype());
                     return in_dtype(sum(parts * shares(x, dim), Ints(reduced_dims(x.rank(), dim)), keepdim),
                                     x.dtype());
                   })},
       .vjp = {wrt("x", saves("x", "dim", "keepdim"),
                   [](Tensor dy, Tensor x, Ints dim, bool keepdim) {
                     const Tensor v = in_dtype(dy, is_half(x.dtype()) ? DType::F32 : x.dtype());
                     return in_dtype(with_reduced_dims(v, x.rank(), dim, keepdim) * shares(x, dim),
                                     x.dtype());
                   })},
       .properties = kNoInPlace,
       .numerics = {.floor = 1, .reason = "its derivative is softmax"},
       .samples = logsumexp_samples,
       .doc = "log of the sum of exp(x) over dims `dim` (all when empty), -inf over nothing and over -inf "
              "alone. "
              "Nothing overflows on the way. Integers and bool compute in the default dtype; half dtypes in "
              "f32. Error dtype for complex x."});
  OpTable::add(
      {.schema = "argmax(Tensor x, Dim? dim=None, bool keepdim=False) -> Tensor",
       .shape = ShapeClass::Reduce,
       .infer = infer_argmax,
       .kernel = kernel("argmax"),
       .launch = launch_argmax,
       .jvp = not_differentiable("the result is an index"),
       .vjp = not_differentiable("the result is an index"),
       .batch = batch_argmax,
       .properties = kDiscontinuous | kNoInPlace,
       .samples = argmax_samples,
       .doc =
           "i64 index of the greatest element along dim, in row-major order over all elements when None; the "
           "first of ties, the first NaN. Errors: dtype for complex and bool x, shape for an empty dim."});
}

}  // namespace lamella::ops
