// Operators that work on lines along a dim: softmax, log_softmax, sort, flip.
#include "lamella/ops/functions/along_dim.h"

#include "lamella/ops/define.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/index.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"

namespace lamella::ops {

namespace {
void infer_softmax(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  out.ints = {wrap_dim(f, "dim", f.arg<int64_t>(1), x)};
  out.compute = f.none(2) ? x.dtype() : f.arg<DType>(2);
  LAMELLA_CHECK(is_floating(out.compute), DType, "{}: {} is {}; expected a floating dtype", op_name(f),
                f.none(2) ? "x" : "dtype", f.none(2) ? type_str(x) : std::string(name(out.compute)));
  out.outs.push_back({x.sizes(), out.compute});
}

/// The kernel reads the dtype it works in: x is converted first when dtype= asks for another.
void launch_softmax(const Launch& l) {
  const Tensor& x = l.frame.tensor(0);
  const Tensor converted = in_dtype(x, l.inferred.compute);
  const View in = converted.view_of(), out = l.outs[0].view_of();
  run(l, {&out, 1}, {&in, 1}, l.inferred.ints);
}

/// y * (v - <v, y>): the Jacobian of softmax is symmetric, so that it serves tangents and cotangents.
Tensor softmax_derivative(Tensor v, Tensor y, int64_t dim) {
  const Tensor wide = widened(y), vy = in_dtype(v, wide.dtype()) * wide;
  return in_dtype(vy - wide * sum(vy, IntArg{dim}, true), y.dtype());
}

Values softmax_samples(Draw& d) {
  const DType t = d.dtype(kFloating);
  return d.with_dtype(t, kFloating, false, [&] {
    const Dims s = d.shape();
    const int64_t dim = d.dim(s.size());
    return Values{d.tensor(s, t), dim};
  });
}

void infer_sort(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(!is_complex(x.dtype()), DType, "{}: x is {}, which has no order; expected a real dtype",
                op_name(f), x);
  out.ints = {wrap_dim(f, "dim", f.arg<int64_t>(1), x), f.arg<bool>(2)};
  out.compute = x.dtype();
  out.outs.push_back({x.sizes(), x.dtype()});
  out.outs.push_back({x.sizes(), DType::I64});
}

void infer_flip(const Frame& f, Inferred& out) {
  infer_same(f, out);
  out.ints = wrap_dims(f, "dims", f.ints(1), f.tensor(0), false);
}

void define_softmax() {
  OpTable::add(
      {.schema = "softmax(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::AlongDim,
       .infer = infer_softmax,
       .kernel = kernel("softmax"),
       .launch = launch_softmax,
       .jvp = {wrt("x", saves("result", "dim"),
                   [](Tensor t, Tensor y, int64_t dim) { return softmax_derivative(t, y, dim); })},
       .vjp = {wrt("x", saves("result", "dim"),
                   [](Tensor dy, Tensor y, int64_t dim) { return softmax_derivative(dy, y, dim); })},
       .properties = kNoInPlace,
       .promises = {.range = {0, 1}},
       .numerics = {.floor = 1, .reason = "u - sum(u*y) cancels where one y is close to 1"},
       .samples = softmax_samples,
       .doc = "exp(x) over its sum along dim, in [0, 1], computed from x - max x, after x is converted to "
              "dtype if given. Half dtypes compute in f32. Error dtype unless floating."});
  OpTable::add({.schema = "log_softmax(Tensor x, Dim dim, *, DType? dtype=None) -> Tensor",
                .shape = ShapeClass::AlongDim,
                .infer = infer_softmax,
                .kernel = kernel("log_softmax"),
                .launch = launch_softmax,
                .jvp = {wrt("x", saves("result", "dim"),
                            [](Tensor t, Tensor y, int64_t dim) {
                              const Tensor wide = widened(y), v = in_dtype(t, wide.dtype());
                              return in_dtype(v - sum(exp(wide) * v, IntArg{dim}, true), y.dtype());
                            })},
                .vjp = {wrt("x", saves("result", "dim"),
                            [](Tensor dy, Tensor y, int64_t dim) {
                              const Tensor wide = widened(y), v = in_dtype(dy, wide.dtype());
                              return in_dtype(v - exp(wide) * sum(v, IntArg{dim}, true), y.dtype());
                            })},
                .properties = kNoInPlace,
                .promises = {.range = {.high = 0}},
                .numerics = {.floor = 1, .reason = "u - exp(y)*sum(u) cancels where one y is close to 0"},
                .samples = softmax_samples,
                .doc = "log(softmax(x, dim)), never above 0, without overflow or cancellation, after x is "
                       "converted to dtype "
                       "if given. Half dtypes compute in f32. Error dtype unless floating."});
}
}  // namespace

void define_along_dim() {
  define_softmax();
  OpTable::add(
      {.schema = "sort(Tensor x, Dim dim=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)",
       .shape = ShapeClass::AlongDim,
       .infer = infer_sort,
       .kernel = kernel("sort"),
       .jvp = {wrt("x", saves("result1", "dim"),
                   [](Tensor t, Tensor order, int64_t dim) {
                     return Tensors{gather(t, dim, order), Tensor()};
                   })},
       .vjp = {wrt(
           "x", saves("result1", "dim"),
           [](Tensor dy, Tensor order, int64_t dim) { return scatter_add(zeros_like(dy), dim, order, dy); })},
       .properties = kKinks | kNoInPlace,
       .at_kinks = AtKinks::Chosen,
       .promises = {.once = true, .rising = true},
       .samples =
           [](Draw& d) {
             const DType t = d.dtype(kRealTypes | kBoolType);
             const Dims s = d.shape();
             const int64_t dim = d.dim(s.size());
             return Values{d.tensor(s, t), dim, d.flag(), d.flag()};
           },
       .doc = "Values along dim in ascending (or descending) order and their i64 positions in x. Always "
              "stable; NaN is greatest. Error dtype for complex x. Exact."});
  OpTable::add({.schema = "flip(Tensor x, Dim[] dims) -> Tensor",
                .shape = ShapeClass::AlongDim,
                .infer = infer_flip,
                .kernel = kernel("flip"),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("dims"), [](Tensor dy, Ints dims) { return flip(dy, dims); })},
                .properties = kLinear | kNoInPlace,
                .promises = {.once = true},
                .samples =
                    [](Draw& d) {
                      const DType t = d.dtype(kAllTypes);
                      const Dims s = d.shape();
                      const Dims dims = s.empty() ? Dims{} : d.dims(s.size());
                      return Values{d.tensor(s, t), dims};
                    },
                .doc = "A copy of x in reverse order along each of `dims`. Exact."});
}

}  // namespace lamella::ops
