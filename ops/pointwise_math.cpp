// Functions of two real numbers, element by element.
#include "lamella/ops/functions/pointwise_math.h"

#include "lamella/ops/define.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"

namespace lamella::ops {

namespace {
DType float_of(const Tensor& x, const Tensor& beside) {
  const Tensor* const both[] = {&x, &beside};
  return default_float(result_type(both));
}
/// In the dtype of the result: the difference of two u8 would wrap, log(y) of f32 be short beside an x of
/// f64.
Tensor in_float(const Tensor& x, const Tensor& beside) { return in_dtype(x, float_of(x, beside)); }

/// A divisor: what is 0 is not divided by, at any order of derivatives.
Tensor one_for_zero(const Tensor& y) { return where(eq(y, 0), ones_like(y), y); }

/// t / (x^2 + y^2), which neither overflows nor vanishes on the way. Narrow dtypes in the wide one: a further
/// derivative divides once more before it multiplies, and 1 / r^2 is no number of f32 below r = 2^-64.
Tensor over_modulus(const Tensor& t, const Tensor& y, const Tensor& x) {
  const Tensor* const both[] = {&y, &x};
  if (const DType d = result_type(both); d != wide_range(d)) {
    // Halves as they are: one beside them may be a scalar of a wider dtype.
    const DType read = is_half(d) ? DType::F32 : d;
    const auto wide = [&](const Tensor& v) { return in_dtype(in_dtype(v, read), wide_range(d)); };
    return in_dtype(over_modulus(wide(t), wide(y), wide(x)), d);
  }
  const Tensor modulus = one_for_zero(hypot(y, x));
  return t / modulus / modulus;
}

/// a / sqrt(a^2 + b^2), from the quotient of the smaller by the larger: the modulus may overflow where its
/// slopes are ordinary numbers, and second derivatives b^2 / r^3 would cancel out of 1 / r - a^2 / r^3.
/// 0 at (0, 0). Halves in f32: of a small quotient few digits are left in f16.
Tensor part_of_modulus(const Tensor& a, const Tensor& b) {
  if (const DType d = float_of(a, b); is_half(d))
    return in_dtype(part_of_modulus(in_dtype(a, DType::F32), in_dtype(b, DType::F32)), d);
  const Tensor x = in_float(a, b), y = in_float(b, a);
  const Tensor leads = ge(abs(x), abs(y)), larger = where(leads, x, y);
  const Tensor quotient = where(leads, y, x) / one_for_zero(larger);
  return sign(larger) * where(leads, ones_like(quotient), quotient) * rsqrt(quotient * quotient + 1);
}

/// a - b; equal infinities are 0 apart, equal numbers move apart as they do.
Tensor difference(const Tensor& a, const Tensor& b) {
  const Tensor x = in_float(a, b), y = in_float(b, a), apart = x - y;
  return where(logical_and(eq(x, y), ne(apart, apart)), zeros_like(apart), apart);
}

/// e^a / (e^a + e^b). Halves in f32: a rounding of a - b, which may be 80, is a factor of e to that rounding.
Tensor share_of_exponentials(const Tensor& a, const Tensor& b) {
  const DType d = float_of(a, b), wide = is_half(d) ? DType::F32 : d;
  return in_dtype(sigmoid(difference(in_dtype(a, wide), in_dtype(b, wide))), d);
}

/// log(y), which goes with x in x log(y): 0 where neither is above 0. Halves in f32: of a y near 1 in a wider
/// dtype the logarithm would be lost.
Tensor log_or_zero(const Tensor& x, const Tensor& y) {
  const DType d = float_of(y, x);
  const Tensor base = in_dtype(y, is_half(d) ? DType::F32 : d), none = logical_and(eq(x, 0), le(base, 0));
  return in_dtype(log(where(none, ones_like(base), base)), d);
}

/// x / y, the derivative in y: 0 where both are 0. Halves likewise.
Tensor quotient_or_zero(const Tensor& x, const Tensor& y) {
  const DType d = float_of(y, x), wide = is_half(d) ? DType::F32 : d;
  const Tensor base = in_dtype(y, wide), none = logical_and(eq(x, 0), eq(base, 0));
  return in_dtype(in_dtype(x, wide) / where(none, ones_like(base), base), d);
}

/// As f32 rounds it, which of all dtypes has the greatest: 3.14159274, where f64 has 3.14159265.
constexpr double kPi = float(3.14159265358979323846);

struct Binary {
  std::string_view schema;
  ShapeClass shape;  ///< said in each row: the typed API is written from what rows say
  InferFn infer;     ///< likewise
  std::string_view kernel;
  Derivative first, second;
  Promises promises = {};
  Numerics numerics = {};
  SampleFn samples;
  std::string_view doc;
};

void define(const Binary& b) {
  OpTable::add({.schema = b.schema,
                .shape = b.shape,
                .infer = b.infer,
                .kernel = kernel(b.kernel, kFloating),
                .jvp = std::vector<Formula>{b.first.jvp[0], b.second.jvp[0]},
                .vjp = std::vector<Formula>{b.first.vjp[0], b.second.vjp[0]},
                .promises = b.promises,
                .numerics = b.numerics,
                .samples = b.samples,
                .doc = b.doc});
}
}  // namespace

void define_pointwise_math() {
  define(
      {.schema = "atan2(Tensor y, Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "atan2",
       .first = derivative("y", saves("y", "x"), [](Tensor y, Tensor x) { return over_modulus(x, y, x); }),
       .second = derivative("x", saves("y", "x"), [](Tensor y, Tensor x) { return -over_modulus(y, y, x); }),
       .promises = {.range = {-kPi, kPi}, .sign_of = "y"},
       .numerics =
           {.floor = 8,
            .reason =
                "second derivatives (x^2 - y^2) / r^4 cancel where |x| = |y|; r is at least 1/8 as drawn"},
       .samples = [](Draw& d) { return binary(d, kFloating, Domain::NonZero, Domain::NonZero); },
       .doc = "The angle of the point (x, y) in radians, in [-pi, pi], pi as the dtype rounds it, and of the "
              "sign of y. The derivative at (0, 0) is 0. Error dtype for complex numbers. At most 4 ULP "
              "(f32, f64)."});
  define(
      {.schema = "hypot(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "hypot",
       .first = derivative("a", saves("a", "b"), [](Tensor a, Tensor b) { return part_of_modulus(a, b); }),
       .second = derivative("b", saves("a", "b"), [](Tensor a, Tensor b) { return part_of_modulus(b, a); }),
       .promises = {.range = {.low = 0}, .symmetric = true},
       .numerics = {.floor = 8,
                    .reason =
                        "terms of derivatives of order n are of the size of r^(1 - n), and cancel; r is at "
                        "least 1/8 as drawn"},
       .samples = [](Draw& d) { return binary(d, kFloating, Domain::NonZero, Domain::NonZero); },
       .doc = "sqrt(a^2 + b^2) without overflow on the way; inf if either is. The derivative at (0, 0) is 0. "
              "Error dtype for complex numbers. At most 2 ULP (f32, f64)."});
  define(
      {.schema = "logaddexp(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "logaddexp",
       .first =
           derivative("a", saves("a", "b"), [](Tensor a, Tensor b) { return share_of_exponentials(a, b); }),
       .second =
           derivative("b", saves("a", "b"), [](Tensor a, Tensor b) { return share_of_exponentials(b, a); }),
       .promises = {.symmetric = true},
       .samples = [](Draw& d) { return binary(d, kFloating, Domain::Any, Domain::Any); },
       .doc =
           "log(e^a + e^b) without overflow on the way. Derivatives at equal infinities are 1/2 each. Error "
           "dtype for complex numbers. Error at most 4 roundings of the larger of |a|, |b| and the result."});
  define(
      {.schema = "xlogy(Tensor x, Tensor y) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "xlogy",
       .first = derivative("x", saves("x", "y"), [](Tensor x, Tensor y) { return log_or_zero(x, y); }),
       .second = derivative("y", saves("x", "y"), [](Tensor x, Tensor y) { return quotient_or_zero(x, y); }),
       .samples = [](Draw& d) { return binary(d, kFloating, Domain::Any, Domain::Positive); },
       .doc = "x log(y), and 0 where x is 0 and y no NaN. The derivative in x is 0 where x is 0 and y not "
              "above 0. Error dtype for complex numbers. At most 4 ULP (f32, f64)."});
}

}  // namespace lamella::ops
