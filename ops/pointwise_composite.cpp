// Several pointwise operators in one call.
#include "lamella/ops/functions/pointwise_composite.h"

#include "lamella/core/math.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_math.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"

namespace lamella::ops {

namespace {
using definition::by_elements;

/// f.results[0] = body(tensors), which are in the dtype that the row's shape function says; half dtypes in
/// f32.
template <class F> void in_compute_dtype(Frame& f, F&& body) {
  Inferred wanted;
  f.op->base->infer(f, wanted);
  const DType compute = is_half(wanted.compute) ? DType::F32 : wanted.compute;
  Tensors operands;
  for (const uint8_t i : f.op->tensor_params) operands.push_back(in_dtype(f.tensor(i), compute));
  f.results[0] = in_dtype(body(operands), wanted.outs[0].dtype);
}

void infer_numbers(const Frame& f, Inferred& out) {
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_bool(out.compute), DType,
                "{}: x: {}, tensor1: {}, tensor2: {}; expected numbers, not bool", op_name(f), f.tensor(0),
                f.tensor(1), f.tensor(2));
  const Scalar& value = f.arg<Scalar>(3);
  LAMELLA_CHECK(category(value.kind()) <= category(out.compute), DType,
                "{}: value = {} does not fit a result of {}; expected a number of its kind", op_name(f),
                value.str(), out.compute);
}

void infer_softplus(const Frame& f, Inferred& out) {
  infer_real_float(f, out);
  for (const int i : {1, 2})
    LAMELLA_CHECK(!is_complex(f.arg<Scalar>(i).kind()), DType, "{}: {} = {}, expected a real number",
                  op_name(f), arg_name(f, i), f.arg<Scalar>(i).str());
}

Tensor interpolated(const Tensors& t) {
  const Tensor &start = t[0], &end = t[1], &weight = t[2], apart = end - start;
  return where(lt(abs(weight), 0.5), start + weight * apart, end - apart * (1 - weight));
}

/// The same of one element.
template <class T> T interpolated_of(const T& start, const T& end, const T& weight) {
  f128 size = 0;
  if constexpr (is_complex_type<T>) size = math::hypot(weight.real(), weight.imag());
  else size = math::fabs(f128(weight));
  const T apart = end - start;
  return size < 0.5 ? T(start + weight * apart) : T(end - apart * (T(1) - weight));
}

Tensor soft_ramp(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const Tensor scaled = x * beta;
  return where(gt(scaled, threshold), x, logaddexp(scaled, zeros_like(scaled)) / beta);
}
/// The same of one element, by its definition: log(1 + e^s), which is s + log(1 + e^-s) where e^s overflows.
f128 soft_ramp_of(f128 x, f128 beta, f128 threshold) {
  const f128 s = x * beta;
  if (s > threshold) return x;
  return (s > 0 ? s + math::log1p(math::exp(-s)) : math::log1p(math::exp(s))) / beta;
}

/// One of them has the full shape.
Values three(Draw& d, DTypeMask types, bool with_number) {
  const DType t = d.dtype(types), other = d.partner(t, types);
  const Dims s = d.shape();
  const uint32_t whole = d.below(3);
  Values v;
  for (uint32_t i = 0; i < 3; ++i) {
    const DType type = i == 1 ? other : t;
    v.push_back(d.tensor(i == whole ? s : d.broadcastable(s, type), type));
  }
  if (with_number && d.flag()) v.push_back(d.scalar(t));
  return v;
}

/// Powers of two: their products are exact, so that a product lies on the same side of the threshold for all,
/// which is no such product.
Values softplus_samples(Draw& d) {
  static constexpr double kBetas[] = {1, 2, 0.5, -1, 4};
  Values v = unary(d, kFloating);
  const uint32_t which = d.below(6);
  const double times = which == 2 ? 10 : 1;  // also where e^(beta x) is no number of f32
  const double threshold = times * double(d.range(-2, 25)) + 0.3;
  if (which == 5 && d.options().nonfinite) return v;  // the default is such a product, and results jump there
  v.push_back(kBetas[which % 5]);
  v.push_back(threshold);
  return v;
}

struct Composite {
  std::string_view schema;
  InferFn infer;
  CompositeFn composite;
  Kernels definition;
  Inside overflows_in = {};
  SampleFn samples;
  std::string_view doc;
};

void define(const Composite& c) {
  OpTable::add({.schema = c.schema,
                .shape = ShapeClass::Composite,
                .infer = c.infer,
                .kernel = c.definition,
                .launch = definition::run_elements,
                .composite = c.composite,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .overflows_in = c.overflows_in,
                .samples = c.samples,
                .doc = c.doc});
}
}  // namespace

void define_pointwise_composite() {
  define({.schema = "addcmul(Tensor x, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
          .infer = infer_numbers,
          .composite =
              [](Frame& f) {
                in_compute_dtype(f, [&f](const Tensors& t) { return t[0] + t[1] * t[2] * f.arg<Scalar>(3); });
              },
          .definition = by_elements({StatedTypes::Result::Promoted, false},
                                    [](const auto* x, const auto* s) { return x[0] + s[0] * x[1] * x[2]; }),
          .overflows_in = {Inside::Products, "the product, before it is added"},
          .samples = [](Draw& d) { return three(d, kRealTypes | kComplex, true); },
          .doc = "x + value * tensor1 * tensor2, broadcast and promoted; half dtypes compute in f32, "
                 "integers wrap. Error dtype for "
                 "bool, and for a value of a higher kind."});
  define({.schema = "lerp(Tensor start, Tensor end, Tensor weight) -> Tensor",
          .infer = infer_float,
          .composite = [](Frame& f) { in_compute_dtype(f, interpolated); },
          .definition =
              by_elements({StatedTypes::Result::Floating},
                          [](const auto* x, const auto*) { return interpolated_of(x[0], x[1], x[2]); }),
          .overflows_in = {Inside::Products, "end - start"},
          .samples = [](Draw& d) { return three(d, kInexact, false); },
          .doc = "start + weight * (end - start), from `end` where |weight| is 1/2 or more, so that weight 1 "
                 "gives `end`; broadcast "
                 "and promoted; half dtypes compute in f32."});
  define(
      {.schema = "softplus(Tensor x, *, Scalar beta=1, Scalar threshold=20) -> Tensor",
       .infer = infer_softplus,
       .composite =
           [](Frame& f) {
             in_compute_dtype(
                 f, [&f](const Tensors& t) { return soft_ramp(t[0], f.arg<Scalar>(1), f.arg<Scalar>(2)); });
           },
       .definition = by_elements({StatedTypes::Result::Floating, true, false},
                                 [](const f128* x, const f128* s) { return soft_ramp_of(x[0], s[0], s[1]); }),
       .samples = softplus_samples,
       .doc = "log(1 + e^(beta x)) / beta, and x where beta x is above threshold; half dtypes compute in "
              "f32. Error dtype for complex "
              "numbers."});
}

}  // namespace lamella::ops
