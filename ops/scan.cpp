// Cumulative sums and products along a dim.
#include "lamella/ops/functions/scan.h"

#include "lamella/ops/define.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/index.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"

namespace lamella::ops {

namespace {
void infer_scan(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  out.ints = {wrap_dim(f, "dim", f.arg<int64_t>(1), x)};
  const bool integral = is_integer(x.dtype()) || is_bool(x.dtype());
  out.compute = f.none(2) ? (integral ? DType::I64 : x.dtype()) : f.arg<DType>(2);
  LAMELLA_CHECK(!is_bool(out.compute), DType, "{}: dtype = {}, expected a number's dtype", op_name(f),
                out.compute);
  out.outs.push_back({x.sizes(), out.compute});
}

void launch_scan(const Launch& l) {
  const Tensor x = as_accumulated(l.frame.tensor(0), l.inferred.compute);
  const View in = x.view_of(), out = l.outs[0].view_of();
  run(l, {&out, 1}, {&in, 1}, l.inferred.ints);
}

void infer_cummax(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(!is_complex(x.dtype()), DType, "{}: x is {}, which has no order; expected a real dtype",
                op_name(f), x);
  out.ints = {wrap_dim(f, "dim", f.arg<int64_t>(1), x)};
  out.compute = x.dtype();
  out.outs = {{x.sizes(), x.dtype()}, {x.sizes(), DType::I64}};
}

/// Along dim: 1, then v without its last element.
Tensor previous(const Tensor& v, int64_t dim) {
  return cat({ones_like(slice(v, dim, 0, 1)), slice(v, dim, 0, v.size(int(dim)) - 1)}, dim);
}

/// s_k = b_k + a_(k-1) s_(k-1) along dim, s_0 = b_0: `a` is one shorter than `b`.
/// NOTE: [scan by doubling] After the step with `shift`, b_k and a_(k - 2 shift) describe s_k in terms of
/// s_(k - 2 shift): log2 n steps of products and sums. Nothing is divided, so derivatives of cumprod built on
/// it are right at zeros, to all orders.
Tensor recurrence(Tensor a, Tensor b, int64_t dim) {
  const int64_t n = b.size(int(dim));
  for (int64_t shift = 1; shift < n; shift *= 2) {
    const Tensor head = slice(b, dim, 0, shift), tail = slice(b, dim, shift, n);
    b = cat({head, tail + a * slice(b, dim, 0, n - shift)}, dim);
    if (2 * shift < n) a = slice(a, dim, shift, n - shift) * slice(a, dim, 0, n - 2 * shift);
  }
  return b;
}

bool is_identity(const Tensor& y, int64_t dim) { return y.rank() == 0 || y.size(int(dim)) == 0; }

/// y in the wide dtype: in its own, parts of it may have vanished or overflown.
Tensor wide_products(const Tensor& x, const Tensor& y, int64_t dim) {
  return x.dtype() == y.dtype() ? y : cumprod(x, dim);
}

/// t'_k = x_k t'_(k-1) + y_(k-1) t_k: see NOTE: [wide products].
Tensor cumprod_jvp(Tensor t, Tensor x, Tensor y, int64_t dim) {
  if (is_identity(y, dim)) return in_dtype(t, y.dtype());
  const DType wide = wide_range(y.dtype());
  const Tensor all = in_dtype(in_dtype(x, y.dtype()), wide);
  const Tensor factors = slice(all, dim, 1, {});
  const Tensor terms = previous(wide_products(all, y, dim), dim) * in_dtype(t, wide);
  return in_dtype(recurrence(factors, terms, dim), y.dtype());
}

/// dx_j = conj(y_(j-1)) s_j with s_j = dy_j + conj(x_(j+1)) s_(j+1), run from the end.
Tensor cumprod_vjp(Tensor dy, Tensor x, Tensor y, int64_t dim) {
  if (is_identity(y, dim)) return dy;
  const DType wide = wide_range(y.dtype());
  const Tensor from_end = flip(in_dtype(dy, wide), {dim}), all = in_dtype(in_dtype(x, y.dtype()), wide);
  const Tensor factors = flip(slice(conj(all), dim, 1, {}), {dim});
  const Tensor sums = flip(recurrence(factors, from_end, dim), {dim});
  return in_dtype(previous(conj(wide_products(all, y, dim)), dim) * sums, y.dtype());
}

Values scan_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return d.with_dtype(t, kAllTypes & ~kBoolType, false, [&] {
    const Dims s = d.shape();
    const int64_t dim = d.dim(s.size());
    return Values{d.tensor(s, t), dim};
  });
}
}  // namespace

void define_scan() {
  OpTable::add(
      {.schema = "cumsum(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::AlongDim,
       .infer = infer_scan,
       .kernel = kernel("cumsum"),
       .launch = launch_scan,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("dim"),
                   [](Tensor dy, int64_t dim) { return flip(cumsum(flip(dy, {dim}), dim), {dim}); })},
       .properties = kLinear,
       .overflows_in = {Inside::Sums, "the running sum"},
       .numerics = {1, 1},
       .samples = scan_samples,
       .doc = "Sums of the elements up to and including each, along dim. Integers and bool sum in i64 "
              "(wrapping) unless dtype, not bool, is given: elements are converted to it first. Error about "
              "2^-p * |sum| + n * 2^-2p * sum |x|; c128: n * 2^-p * sum |x|."});
  OpTable::add(
      {.schema = "cumprod(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::AlongDim,
       .infer = infer_scan,
       .kernel = kernel("cumprod"),
       .launch = launch_scan,
       .jvp = {wrt("x", saves("x", "result", "dim"),
                   [](Tensor t, Tensor x, Tensor y, int64_t dim) { return cumprod_jvp(t, x, y, dim); })},
       .vjp = {wrt("x", saves("x", "result", "dim"),
                   [](Tensor dy, Tensor x, Tensor y, int64_t dim) { return cumprod_vjp(dy, x, y, dim); })},
       .overflows_in = {Inside::Powers, "the running product"},
       .samples = scan_samples,
       .doc = "Products of the elements up to and including each, along dim. Integers and bool multiply in "
              "i64 (wrapping) unless dtype, not bool, is given: elements are converted to it first. The "
              "derivative is right at zeros, to all orders. "
              "Relative error at most n * 2^-p."});
  OpTable::add({.schema = "cummax(Tensor x, Dim dim) -> (Tensor, Tensor)",
                .shape = ShapeClass::AlongDim,
                .infer = infer_cummax,
                .kernel = kernel("cummax"),
                .jvp = {wrt("x", saves("result1", "dim"),
                            [](Tensor t, Tensor at, int64_t dim) {
                              return Tensors{gather(t, dim, at), Tensor()};
                            })},
                .vjp = {wrt("x", saves("result1", "dim"),
                            [](Tensor dy, Tensor at, int64_t dim) {
                              return scatter_add(zeros_like(dy), dim, at, dy);
                            })},
                .properties = kKinks | kNoInPlace,
                .at_kinks = AtKinks::Chosen,
                .promises = {.once = true, .rising = true},
                .numerics = {0, 1},
                .samples =
                    [](Draw& d) {
                      const DType t = d.dtype(kRealTypes | kBoolType);
                      const Dims s = d.shape();
                      const int64_t dim = d.dim(s.size());
                      return Values{d.tensor(s, t), dim};
                    },
                .doc = "The greatest element up to and including each, along dim, and its i64 position: of "
                       "equal ones the "
                       "last. NaN is greatest. Error dtype for complex x. Exact."});
}

}  // namespace lamella::ops
