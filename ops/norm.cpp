// Layer normalisation.
#include <algorithm>
#include <cmath>

#include "lamella/core/thresholds.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/plain.h"

namespace lamella::ops {

namespace {
void check_parameter(const Frame& f, int i, Ints shape) {
  const Tensor& p = f.tensor(i);
  LAMELLA_CHECK(!p.defined() || Dims(p.sizes()) == Dims(shape), Shape,
                "{}: {} is {}, expected normalized_shape = {}", op_name(f), arg_name(f, i), p, Dims(shape));
  LAMELLA_CHECK(!p.defined() || is_floating(p.dtype()), DType, "{}: {} is {}, expected a floating dtype",
                op_name(f), arg_name(f, i), p);
}

void check_arguments(const Frame& f) {
  const Tensor& x = f.tensor(0);
  const Ints shape = f.ints(1);
  LAMELLA_CHECK(is_floating(x.dtype()), DType, "{}: x is {}, expected a floating dtype", op_name(f), x);
  const int lead = x.rank() - int(shape.size());
  LAMELLA_CHECK(!shape.empty() && lead >= 0 && Dims(x.sizes().subspan(size_t(lead))) == Dims(shape), Shape,
                "{}: normalized_shape = {} for x: {}; expected the last sizes of x, at least one", op_name(f),
                Dims(shape), x);
  const double eps = f.arg<double>(4);
  LAMELLA_CHECK(std::isfinite(eps), Value, "{}: eps = {}, expected a finite number", op_name(f), eps);
  check_parameter(f, 2, shape);
  check_parameter(f, 3, shape);
}

struct Normalised {
  Tensor out, mean, rstd;
};

/// Half dtypes are normalised, scaled and shifted in f32 and rounded once.
Normalised normalise(const Frame& f) {
  check_arguments(f);
  const Tensor& x = f.tensor(0);
  const bool half = is_half(x.dtype());
  const auto widened = [&](const Tensor& t) { return half && is_half(t.dtype()) ? to(t, DType::F32) : t; };
  Dims dims;
  for (int d = int(f.ints(1).size()); d > 0; --d)
    dims.push_back(-d);  // from the end: mapped dims never move these
  const Tensor wide = widened(x);
  const Tensor mean = lamella::mean(wide, Ints(dims), true);
  Tensor centred = wide - mean;
  // NOTE: [the mean twice] What the mean is off by is the mean of what is left: a constant, as its derivative
  // is 0.
  centred = centred - detach(lamella::mean(centred, Ints(dims), true));
  const Tensor rstd = reciprocal(sqrt(lamella::mean(centred * centred, Ints(dims), true) + f.arg<double>(4)));
  Tensor out = centred * rstd;
  if (f.tensor(2).defined()) out = out * widened(f.tensor(2));
  if (f.tensor(3).defined()) out = out + widened(f.tensor(3));
  if (out.dtype() != x.dtype()) out = to(out, x.dtype());
  const bool narrow_stats = half && (!f.tensor(2).defined() || is_half(f.tensor(2).dtype()));
  if (!narrow_stats) return {out, mean, rstd};
  return {out, to(mean, x.dtype()), to(rstd, x.dtype())};
}

/// Whether the rows are summed along memory, in the order that one pass takes: see reduce_along.
bool takes_one_pass(const Frame& f) {
  if (!f.args[0] || !f.tensor(0).defined()) return false;
  const Tensor& x = f.tensor(0);
  const DType dtype = x.dtype();
  if ((dtype != DType::F32 && dtype != DType::F64) || x.numel() == 0 || !is_plain(x, dtype)) return false;
  for (const int i : {2, 3})
    if (f.tensor(i).defined() && !is_plain(f.tensor(i), dtype)) return false;
  const Ints row =
      f.ints(1);  // nobody has looked at it yet: what are no dims of x is refused by the composite
  if (row.size() > x.sizes().size() || !std::ranges::equal(row, x.sizes().last(row.size()))) return false;
  int64_t n = 1;
  for (const int64_t size : row) n *= size;
  return n > thresholds().few_terms;
}

/// see NOTE: [layer_norm in one pass]
void in_one_pass(Frame& f, int key) {
  if (!takes_one_pass(f) || !sums_as_built_in()) return call_built_in(f, key);
  check_arguments(f);
  static const kernels::Kernel& kernel = kernels::named("layer_norm");
  const Tensor &x = f.tensor(0), &weight = f.tensor(2), &bias = f.tensor(3);
  f.results[0] = make_tensor(x.sizes(), x.dtype());
  const View out = f.results[0].view_of();
  View ins[3] = {x.view_of()};
  size_t n = 1;
  if (weight.defined()) ins[n++] = weight.view_of();
  if (bias.defined()) ins[n++] = bias.view_of();
  const int64_t ints[] = {int64_t(f.ints(1).size()), weight.defined(), bias.defined()};
  const Scalar eps = f.arg<double>(4);
  run_kernel(f, kernel.cpu, {{&out, 1}, {ins, n}, x.dtype(), ints, {&eps, 1}});
}

Values samples(Draw& d) {
  const DType t = d.dtype(kFloating);
  const Dims s = d.shape(1, 3);
  const int64_t count = d.range(1, s.size());
  const Dims shape(Ints(s).last(size_t(count)));
  Values v{d.tensor(s, t), shape, Value(), Value(), d.flag() ? 0.5 : 0.1};  // 0.1: no number of f32
  if (d.flag()) v[2] = d.tensor(shape, d.partner(t, kFloating));
  if (d.flag()) v[3] = d.tensor(shape, d.partner(t, kFloating));
  return v;
}
}  // namespace

void define_norm() {
  OpTable::add(
      {.schema = "layer_norm(Tensor x, Size normalized_shape, Tensor? weight=None, Tensor? "
                 "bias=None, float eps=1e-05) -> Tensor",
       .shape = ShapeClass::Composite,
       .infer = definition::shape_of_layer_norm,
       .kernel = {.reference = kernels::reference::normalised},
       .launch = definition::run_layer_norm,
       .composite = [](Frame& f) { f.results[0] = normalise(f).out; },
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kNoInPlace,
       .overflows_in = {Inside::Powers, "the variance, or an infinite weight of what cancels,"},
       .numerics = {.floor = 4,
                    .reason = "of the cotangent times weight the parts along 1 and along y are subtracted",
                    .times = "weight"},
       .samples = samples,
       .doc = "(x - mean) / sqrt(var + eps) over the last dims, which must be normalized_shape, "
              "times weight plus bias, both of that shape; var divides by n. Half dtypes compute in "
              "f32. Errors: shape, dtype unless floating."});
  OpTable::set("layer_norm", int(Device::CPU),
               {.name = "one_pass", .cell = in_one_pass, .asks_itself = true});
  OpTable::add({.schema = "native_layer_norm(Tensor x, Size normalized_shape, Tensor? weight, Tensor? bias, "
                          "float eps) -> (Tensor, Tensor, Tensor)",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_native_layer_norm,
                .kernel = {.reference = kernels::reference::normalised},
                .launch = definition::run_layer_norm,
                .composite =
                    [](Frame& f) {
                      Normalised n = normalise(f);
                      f.results[0] = std::move(n.out);
                      f.results[1] = std::move(n.mean);
                      f.results[2] = std::move(n.rstd);
                    },
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kNoInPlace,
                .overflows_in = {Inside::Powers, "the variance, or an infinite weight of what cancels,"},
                .numerics = {.floor = 4, .reason = "as layer_norm", .times = "weight"},
                .samples = samples,
                .doc = "layer_norm's result, and the mean and 1 / sqrt(var + eps) of each normalised block "
                       "with its dims kept as 1."});
}

}  // namespace lamella::ops
