// Variance.
#include "lamella/ops/functions/var.h"

#include <cmath>
#include <limits>

#include "lamella/core/thresholds.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/plain.h"

namespace lamella::ops {

namespace {
double correction_of(const Frame& f) { return f.none(2) ? 1 : f.arg<double>(2); }

void check_arguments(const Frame& f) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(is_inexact(x.dtype()), DType, "{}: x is {}, expected a floating or complex dtype", op_name(f),
                x);
  const double correction = correction_of(f);
  LAMELLA_CHECK(std::isfinite(correction), Value, "{}: correction = {}, expected a finite number", op_name(f),
                correction);
}

/// The degrees of freedom of `count` elements; NaN where there are none.
double freedom(int64_t count, double correction) {
  const double left = double(count) - correction;
  return count > 0 && left > 0 ? left : std::numeric_limits<double>::quiet_NaN();
}

/// NOTE: [the mean twice] A mean is rounded, and what it is off by adds its square to every square: of f32
/// near 10^6 more than there is. It is the mean of the differences, which is taken off as well. (The
/// corrected sums of Chan, Golub and LeVeque, The American Statistician 37, 1983, take off its square: that
/// may leave less than 0, and something of equal numbers.)
///
/// The sum of squares of what real numbers are apart from their mean.
Tensor squares_apart(const Tensor& x, Ints dims, bool keepdim) {
  Tensor apart = x - mean(x, dims, true);
  apart = apart - mean(apart, dims, true);
  return sum(apart * apart, dims, keepdim);
}

Dims reduced_dims(const Frame& f) {
  return wrap_dims(f, "dim", f.none(1) ? std::nullopt : std::optional<Ints>(f.ints(1)), f.tensor(0));
}

/// Half dtypes are computed in f32 and rounded once.
void var_composite(Frame& f) {
  check_arguments(f);
  const Tensor& x = f.tensor(0);
  const bool half = is_half(x.dtype()), keepdim = f.arg<bool>(3);
  const Dims dims = reduced_dims(f);
  int64_t count = 1;
  for (const int64_t d : dims) count *= x.size(int(d));
  Tensor squares;
  if (is_complex(x.dtype()))
    squares = squares_apart(real(x), dims, keepdim) + squares_apart(imag(x), dims, keepdim);
  else squares = squares_apart(half ? to(x, DType::F32) : x, dims, keepdim);
  const Tensor y = squares / Scalar(freedom(count, correction_of(f)));
  f.results[0] = half ? to(y, x.dtype()) : y;
}

/// 0 where v is, with v's derivative there: that of the root alone is infinite.
Tensor root_of_variance(const Tensor& v) {
  const Tensor none = eq(v, 0);
  return where(none, v, sqrt(where(none, ones_like(v), v)));
}

/// In wide_range's dtypes: squares of narrow ones vanish and overflow where their roots are ordinary numbers.
void std_composite(Frame& f) {
  check_arguments(f);
  const DType dtype = f.tensor(0).dtype();
  const Tensor x = in_dtype(f.tensor(0), wide_range(dtype));
  const Dims dims = reduced_dims(f);  // none: all
  const Tensor v = var(x, Ints(dims), correction_of(f), f.arg<bool>(3));
  f.results[0] = in_dtype(root_of_variance(v), to_real(dtype));
}

/// How many neighbours each result is of in a gapless x, where the reduced dims are the last ones; else 0.
int64_t row_length(const Tensor& x, Ints reduced) {
  int64_t n = 1;
  bool inside = true;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (x.size(d) == 1) continue;
    if (!reduced[size_t(d)]) inside = false;
    else if (!inside) return 0;
    else n *= x.size(d);
  }
  return n;
}

/// Worth a look: gapless f32 or f64 whose rows may be longer than a sum takes across, see reduce_along.
bool may_take_one_pass(const Frame& f) {
  if (!f.args[0] || !f.tensor(0).defined()) return false;
  const Tensor& x = f.tensor(0);
  const DType dtype = x.dtype();
  return (dtype == DType::F32 || dtype == DType::F64) && x.numel() > thresholds().few_terms &&
         is_plain(x, dtype);
}

/// see NOTE: [var in one pass]
void in_one_pass(Frame& f, int key) {
  if (!may_take_one_pass(f) || !sums_as_built_in()) return call_built_in(f, key);
  const Tensor& x = f.tensor(0);
  Inferred defined;  // what that refuses, the composite refuses in words of its own
  definition::shape_of_var(f, defined);
  const int64_t n = defined.refused ? 0 : row_length(x, defined.ints);
  if (n <= thresholds().few_terms) return call_built_in(f, key);
  static const kernels::Kernel& kernel = kernels::named("var");
  f.results[0] = make_tensor(defined.outs[0].sizes, x.dtype());
  const View out = f.results[0].view_of(), in = x.view_of();
  const Scalar divisor = freedom(n, correction_of(f));
  run_kernel(f, kernel.cpu, {{&out, 1}, {&in, 1}, x.dtype(), {&n, 1}, {&divisor, 1}});
}

/// Elements of x that a result is of; `dim` None or some.
int64_t elements_of_result(const Dims& sizes, const Value& dim) {
  int64_t n = 1;
  const Dims* const some = std::get_if<Dims>(&dim);
  if (some && !some->empty())
    for (const int64_t d : *some) n *= sizes[int(d < 0 ? d + sizes.size() : d)];
  else
    for (const int64_t s : sizes) n *= s;
  return n;
}

/// x, dim (None or some), correction (None or some) and keepdim. Mostly there are degrees of freedom: laws of
/// derivatives leave out what is NaN.
Values samples_of(Draw& d, Domain domain) {
  static constexpr double kCorrections[] = {1, 1, 0, 2, 0.5, -1};
  const DType t = d.dtype(kInexact);
  const Dims s = d.shape();
  Values v{d.tensor(s, t, domain), Value(), Value(), false};
  if (d.flag()) v[1] = d.dims(s.size());
  v[3] = d.flag();
  const uint32_t which = d.below(7);
  if (which < 6) v[2] = kCorrections[which];
  const double taken = which < 6 ? kCorrections[which] : 1;
  if (double(elements_of_result(s, v[1])) <= taken && !d.one_in(8)) v[2] = 0.0;
  if (d.below(32) == 31) v[2] = double(elements_of_result(s, v[1]));  // no degrees of freedom: NaN
  return v;
}
Values samples(Draw& d) { return samples_of(d, Domain::Any); }
Values distinct_samples(Draw& d) { return samples_of(d, Domain::Distinct); }
}  // namespace

void define_var() {
  OpTable::add({.schema = "var(Tensor x, Dim[]? dim=None, *, float? correction=1, bool keepdim=False) -> "
                          "Tensor",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_var,
                .kernel = {.reference = kernels::reference::variance},
                .launch = definition::run_var,
                .composite = var_composite,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kNoInPlace,
                .promises = {.range = {.low = 0}},
                .overflows_in = {Inside::Products, "the sums, before they are divided"},
                .samples = samples,
                .doc = "Sum of |x - mean|^2 over dims `dim` (all when None or empty) by their number less "
                       "`correction` (1 when None); NaN where that is not positive, and over nothing. Of "
                       "complex x the parts' variances are added: the result is real. Half dtypes compute in "
                       "f32. Errors: dtype for integers and bool, value for a correction that is not "
                       "finite."});
  OpTable::add(
      {.schema = "std(Tensor x, Dim[]? dim=None, *, float? correction=1, bool keepdim=False) -> "
                 "Tensor",
       .shape = ShapeClass::Composite,
       .infer = definition::shape_of_var,
       .kernel = {.reference = kernels::reference::deviation},
       .launch = definition::run_var,
       .composite = std_composite,
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kNoInPlace,
       .promises = {.range = {.low = 0}},
       .numerics = {.floor = 1,
                    .reason =
                        "terms of derivatives of order n are of the size of 1 / std^(n - 1), and cancel "
                        "over two numbers, where std is linear",
                    .over_result = true},
       .samples = distinct_samples,
       .doc = "The square root of var(x, dim, correction, keepdim): as many digits are right as x has, not "
              "as the result. NaN where var is, infinite where it overflows. The derivative where it is 0 is "
              "0. Dtypes below f64 compute in f64, c64 in c128. Errors: dtype for integers and bool, value "
              "for a correction that is not finite."});
  OpTable::set("var", int(Device::CPU), {.name = "one_pass", .cell = in_one_pass, .asks_itself = true});
}

}  // namespace lamella::ops
