// One tensor in, one result per element.
#include "lamella/ops/functions/pointwise_unary.h"

#include "lamella/core/visit.h"
#include "lamella/ops/define.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_math.h"
#include "lamella/ops/functions/pointwise_other.h"

namespace lamella::ops {

namespace {
void infer_no_bool(const Frame& f, Inferred& out) {
  infer_same(f, out);
  LAMELLA_CHECK(!is_bool(out.compute), DType, "{}: x is {}, expected a number", op_name(f), f.tensor(0));
}

void infer_real(const Frame& f, Inferred& out) {
  infer_no_bool(f, out);
  out.outs[0].dtype = to_real(out.compute);
}

void infer_real_number(const Frame& f, Inferred& out) {
  infer_no_bool(f, out);
  LAMELLA_CHECK(!is_complex(out.compute), DType, "{}: x is {}, expected a real number", op_name(f),
                f.tensor(0));
}

constexpr double kLog2 = 0.69314718055994530942, kLog2OfE = 1.44269504088896340736,
                 kTwoOverRootPi = 1.12837916709551257390;

/// 1 / f(1 + x^2), f the root or nothing, of a complex x: far out, where x^2 may overflow and its inverse
/// not, of (1 + ix)(1 - ix), whose arguments add up to less than pi: so the product of the roots is the root
/// of the product. Near 0 those cancel at second order. Zeros keep their signs, by which the sides of cuts
/// differ.
template <class F> Tensor over_one_plus_square(const Tensor& x, F&& inverse) {
  const Tensor far = gt(abs(x), 1024), none = zeros_like(x);
  const Tensor inside = where(far, none, x), outside = where(far, x, none);
  const Tensor re = real(outside), im = imag(outside);
  return where(far, inverse(complex(1 - im, re)) * inverse(complex(1 + im, -re)),
               inverse(inside * inside + 1));
}

/// 1 / sqrt(1 + x^2). Real: by hypot, for x^2 may overflow where 1 / |x| is an ordinary number.
Tensor asinh_derivative(const Tensor& x) {
  if (is_complex(x.dtype())) return over_one_plus_square(x, [](const Tensor& v) { return rsqrt(v); });
  return reciprocal(hypot(x, ones_like(x)));
}

/// 1 / (1 + x^2). Halves in f32: the square leaves the range of f16 at 256. Real: a square itself, since that
/// of 1 / (1 + x^2) vanishes where the second derivative 2 / x^3 is an ordinary number.
Tensor atan_derivative(const Tensor& x) {
  if (is_half(x.dtype())) return in_dtype(atan_derivative(in_dtype(x, DType::F32)), x.dtype());
  if (is_complex(x.dtype())) return over_one_plus_square(x, [](const Tensor& v) { return reciprocal(v); });
  const Tensor root = asinh_derivative(x);
  return root * root;
}

/// t times -y^3 / 2. From t on, sizes go one way: nothing overflows or vanishes that the last product does
/// not.
Tensor rsqrt_tangent(Tensor t, Tensor y) { return t * (y * -0.5) * y * y; }

/// e^(-x^2). Halves in f32: a rounding of x^2, which may be 80, is a factor of e to that rounding. Beyond 110
/// it is 0 in all dtypes, and so are its derivatives, which would be 0 times an infinity where 2x is one.
Tensor bell(const Tensor& x) {
  if (is_half(x.dtype())) return in_dtype(bell(in_dtype(x, DType::F32)), x.dtype());
  const Tensor near = clamp(x, number_like(-110, x), number_like(110, x));
  return exp(-(near * near));
}

/// d(x/|x|): the component of t across the direction y = x/|x|, over |x|; self-adjoint for Re<.,.>; 0 at 0.
Tensor sign_tangent(const Tensor& t, const Tensor& x, const Tensor& y) {
  const Tensor size = abs(x);
  const Tensor across = t - y * real(t * conj(y));
  return where(eq(size, 0), zeros_like(across), across / where(eq(size, 0), ones_like(size), size));
}

/// Integers and bool, too, where the law takes them: they promote to the default dtype.
Values smooth_samples(Draw& d, Domain domain, DTypeMask types = kInexact) {
  const DType t = d.dtype(types);
  const DType other =
      d.partner(t, d.options().dtypes & (types == kInexact ? kAllTypes : kAllTypes & ~kComplex));
  return {d.tensor(d.shape(), is_inexact(other) ? t : other, domain)};
}
Values any_samples(Draw& d) { return smooth_samples(d, Domain::Any); }
Values positive_samples(Draw& d) { return smooth_samples(d, Domain::Positive); }
Values real_samples(Draw& d) { return smooth_samples(d, Domain::Any, kFloating); }
/// Of functions that are cut along the imaginary numbers: complex ones to the right of them.
Values cut_samples(Draw& d) {
  const DType t = d.dtype(kInexact);
  return smooth_samples(d, is_complex(t) ? Domain::Positive : Domain::Any);
}

/// Away from the kink, with exact zeros in one case of four: what lies closer than the oracle's steps is
/// neither.
Values kinked_at_zero(Draw& d, DTypeMask types) {
  Values v = unary(d, types, Domain::NonZero);
  const uint32_t w = d.word("zeros");
  const Tensor& x = std::get<Tensor>(v[0]);
  if (w % 4 != 3 || x.numel() == 0) return v;
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const data = static_cast<T*>(x.raw_data());
    data[0] = T{};
    int64_t last = 0;
    for (int k = 0; k < x.rank(); ++k) last += (x.size(k) - 1) * x.stride(k);
    if (w & 4) data[last] = T{};
  });
  return v;
}

struct Smooth {
  std::string_view schema;
  ShapeClass shape;
  InferFn infer;  ///< said in each row, for its docs
  std::string_view kernel;
  Derivative derivative;
  SampleFn samples;
  Promises promises = {};
  Numerics numerics = {};
  std::string_view doc;
};

void define_smooth(const Smooth& s) {
  OpTable::add({.schema = s.schema,
                .shape = s.shape,
                .infer = s.infer,
                .kernel = kernel(s.kernel),
                .jvp = s.derivative.jvp,
                .vjp = s.derivative.vjp,
                .promises = s.promises,
                .numerics = s.numerics,
                .samples = s.samples,
                .doc = s.doc});
}

void define_powers_and_logarithms() {
  define_smooth(
      {.schema = "exp(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_float,
       .kernel = "exp",
       .derivative = derivative("x", saves("result"), [](Tensor y) { return y; }),
       .samples = any_samples,
       .promises = {.range = {.low = 0}},
       .doc = "e^x, never below 0. Integers compute in the default dtype. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "expm1(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "expm1",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return exp(x); }),
                 .samples = any_samples,
                 .promises = {.range = {.low = -1}},
                 .doc = "e^x - 1 without cancelling near 0, never below -1. At most 4 ULP (f32, f64)."});
  define_smooth(
      {.schema = "exp2(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_float,
       .kernel = "exp2",
       .derivative = derivative("x", saves("result"), [](Tensor y) { return y * kLog2; }),
       .samples = any_samples,
       .promises = {.range = {.low = 0}},
       .doc = "2^x, never below 0. Integers compute in the default dtype. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "log(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "log",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return reciprocal(x); }),
                 .samples = positive_samples,
                 .doc = "Natural logarithm; NaN below 0, -inf at 0. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "log1p(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "log1p",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return reciprocal(x + 1); }),
                 .samples = positive_samples,
                 .doc = "log(1 + x), precise near 0; NaN below -1, -inf at -1. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "log2(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "log2",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return reciprocal(x) * kLog2OfE; }),
                 .samples = positive_samples,
                 .doc = "Logarithm to base 2; NaN below 0, -inf at 0. At most 4 ULP (f32, f64)."});
}

void define_roots() {
  define_smooth({.schema = "sqrt(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "sqrt",
                 .derivative = derivative("x", saves("result"), [](Tensor y) { return reciprocal(2 * y); }),
                 .samples = positive_samples,
                 .promises = {.range = {.low = 0}, .once = true, .rising = true},
                 .doc = "Square root; NaN below 0; the derivative at 0 is +inf. Real: correctly rounded."});
  define_smooth(
      {.schema = "rsqrt(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_float,
       .kernel = "rsqrt",
       .derivative = {{wrt("x", saves("result"), [](Tensor t, Tensor y) { return rsqrt_tangent(t, y); })},
                      {wrt("x", saves("result"),
                           [](Tensor dy, Tensor y) { return rsqrt_tangent(dy, conj(y)); })}},
       .samples = positive_samples,
       .doc = "1 / sqrt(x): +inf at 0, -inf at -0, NaN below. At most 2 ULP (f32, f64)."});
  define_smooth({.schema = "reciprocal(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "reciprocal",
                 .derivative = {{wrt("x", saves("result"), [](Tensor t, Tensor y) { return -(t * y * y); })},
                                {wrt("x", saves("result"),
                                     [](Tensor dy, Tensor y) { return -(dy * conj(y) * conj(y)); })}},
                 .samples = positive_samples,
                 .promises = {.once = true, .odd = true},
                 .doc = "1 / x. Real: correctly rounded."});
}

void define_angles() {
  define_smooth({.schema = "sin(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "sin",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return cos(x); }),
                 .samples = any_samples,
                 .promises = {.range = {-1, 1}, .odd = true},
                 .doc = "Sine of x in radians, in [-1, 1] and odd bit by bit. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "cos(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "cos",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return -sin(x); }),
                 .samples = any_samples,
                 .promises = {.range = {-1, 1}, .even = true},
                 .doc = "Cosine of x in radians, in [-1, 1] and even bit by bit. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "atan(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "atan",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return atan_derivative(x); }),
                 .samples = cut_samples,
                 .promises = {.odd = true},
                 .doc = "Arc tangent in radians, odd bit by bit; complex: cut along the imaginary numbers "
                        "beyond i and -i. At most 4 ULP (f32, f64)."});
}

void define_hyperbolic() {
  define_smooth({.schema = "sinh(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "sinh",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return cosh(x); }),
                 .samples = any_samples,
                 .promises = {.odd = true},
                 .doc = "Hyperbolic sine, odd bit by bit. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "cosh(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "cosh",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return sinh(x); }),
                 .samples = any_samples,
                 .promises = {.range = {.low = 1}, .even = true},
                 .doc = "Hyperbolic cosine, at least 1 and even bit by bit. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "tanh(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "tanh",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return sech_squared(x); }),
                 .samples = any_samples,
                 .promises = {.range = {-1, 1}, .odd = true},
                 .doc = "Hyperbolic tangent, in [-1, 1] and odd bit by bit. At most 4 ULP (f32, f64)."});
  define_smooth(
      {.schema = "sech_squared(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_float,
       .kernel = "sech_squared",
       .derivative =
           derivative("x", saves("x", "result"), [](Tensor x, Tensor y) { return -2 * y * tanh(x); }),
       .samples = any_samples,
       .promises = {.range = {0, 1}},
       .doc = "1 / cosh(x)^2, of real x in [0, 1]: the derivative of tanh, which 1 - tanh(x)^2 has with "
              "few right digits where it is small. At most 4 ULP (f32, f64)."});
  define_smooth({.schema = "asinh(Tensor x) -> Tensor",
                 .shape = ShapeClass::Broadcast,
                 .infer = infer_float,
                 .kernel = "asinh",
                 .derivative = derivative("x", saves("x"), [](Tensor x) { return asinh_derivative(x); }),
                 .samples = cut_samples,
                 .promises = {.odd = true},
                 .doc = "Inverse hyperbolic sine, odd bit by bit; complex: cut along the imaginary numbers "
                        "beyond i and -i. At most 4 ULP (f32, f64)."});
}

void define_probabilities() {
  define_smooth(
      {.schema = "sigmoid(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_float,
       .kernel = "sigmoid",
       .derivative = derivative("x", saves("x"), [](Tensor x) { return sech_squared(x * 0.5) * 0.25; }),
       .samples = any_samples,
       .promises = {.range = {0, 1}},
       .doc = "1 / (1 + e^-x), of real x in [0, 1]; slopes do not cancel. At most 4 ULP (f32, f64)."});
  define_smooth(
      {.schema = "erf(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "erf",
       .derivative = derivative("x", saves("x"), [](Tensor x) { return bell(x) * kTwoOverRootPi; }),
       .samples = real_samples,
       .promises = {.range = {-1, 1}, .odd = true},
       .doc = "Error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, in [-1, 1] and odd "
              "bit by bit. Error dtype for complex x. At most 4 ULP (f32, f64)."});
  define_smooth(
      {.schema = "erfc(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = "erfc",
       .derivative = derivative("x", saves("x"), [](Tensor x) { return bell(x) * -kTwoOverRootPi; }),
       .samples = real_samples,
       .promises = {.range = {0, 2}},
       .doc =
           "1 - erf(x) without cancelling, in [0, 2]. Error dtype for complex x. At most 6 ULP (f32, f64)."});
}

void define_signs() {
  OpTable::add({.schema = "neg(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_no_bool,
                .kernel = kernel("neg", kAllTypes & ~kBoolType),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", [](Tensor dy) { return -dy; })},
                .properties = kLinear,
                .promises = {.once = true, .odd = true, .falling = true},
                .samples = [](Draw& d) { return unary(d, kRealTypes | kComplex); },
                .doc = "-x, exact; unsigned integers wrap. Error dtype for bool."});
  OpTable::add({.schema = "abs(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_real,
                .kernel = kernel("abs", kAllTypes & ~kBoolType),
                .jvp = {wrt("x", saves("x"), [](Tensor t, Tensor x) { return real(t * conj(sign(x))); })},
                .vjp = {wrt("x", saves("x"), [](Tensor dy, Tensor x) { return dy * sign(x); })},
                .properties = kKinks,
                .at_kinks = AtKinks::Zero,
                .promises = {.range = {.low = 0}, .once = true, .even = true},
                .numerics = {.floor = 4, .reason = "complex, second order: as sign"},
                .samples = [](Draw& d) { return kinked_at_zero(d, kRealTypes | kComplex); },
                .doc = "|x|; real for complex x. The derivative at 0 is 0. Real: exact."});
  const auto passes = [](Tensor t, Tensor y) { return where(le(y, 0), zeros_like(t), t); };
  OpTable::add(
      {.schema = "relu(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_number,
       .kernel = kernel("relu", kRealTypes),
       .jvp = {wrt("x", saves("result"), passes)},
       .vjp = {wrt("x", saves("result"), passes).hides([](Tensor, Tensor y) { return le(y, 0); })},
       .properties = kKinks,
       .at_kinks = AtKinks::Zero,
       .promises = {.range = {.low = 0}, .once = true, .rising = true},
       .samples = [](Draw& d) { return kinked_at_zero(d, kRealTypes); },
       .doc = "x where it is above 0, else 0; NaN stays. The derivative at 0 is 0. Exact. Error dtype for "
              "complex numbers and bool."});
  OpTable::add({.schema = "sign(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .kernel = kernel("sign"),
                .jvp = {wrt("x", saves("x", "result"),
                            [](Tensor t, Tensor x, Tensor y) {
                              return is_complex(x.dtype()) ? sign_tangent(t, x, y) : zeros_like(t);
                            })},
                .vjp = {wrt("x", saves("x", "result"),
                            [](Tensor dy, Tensor x, Tensor y) {
                              return is_complex(x.dtype()) ? sign_tangent(dy, x, y) : zeros_like(dy);
                            })},
                .properties = kKinks,
                .at_kinks = AtKinks::Zero,
                .promises = {.range = {-1, 1}, .whole = "always", .rising = true},
                .numerics = {.floor = 4,
                             .reason = "complex: the radial part of a direction is taken out by subtraction"},
                .samples = [](Draw& d) { return kinked_at_zero(d, kRealTypes | kComplex); },
                .doc = "-1, 0 or 1; x / |x| for complex x (0 at 0)."});
}

void define_square() {
  const Derivative twice = derivative("x", saves("x"), [](Tensor x) { return x * 2; });
  OpTable::add(
      {.schema = "square(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_no_bool,
       .kernel = kernel("square", kAllTypes & ~kBoolType),
       .jvp = twice.jvp,
       .vjp = twice.vjp,
       .promises = {.once = true, .even = true},
       .overflows_in = {Inside::Products, "products of the parts of complex numbers", true},
       .samples = [](Draw& d) { return unary(d, kRealTypes | kComplex); },
       .doc = "x * x; integers stay integers and wrap. Real: correctly rounded. Error dtype for bool."});
}
}  // namespace

void define_pointwise_unary() {
  define_powers_and_logarithms();
  define_roots();
  define_angles();
  define_hyperbolic();
  define_probabilities();
  define_signs();
  define_square();
}

}  // namespace lamella::ops
