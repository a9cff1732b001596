// Whole numbers near x, and what whole multiples leave over.
#include "lamella/ops/functions/rounding.h"

#include <cmath>

#include "lamella/core/visit.h"
#include "lamella/ops/define.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"

namespace lamella::ops {

namespace {
void infer_real_numbers(const Frame& f, Inferred& out) {
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_complex(out.compute) && !is_bool(out.compute), DType,
                "{}: {} is {} and would compute in {}; expected real numbers", op_name(f), arg_name(f, 0),
                f.tensor(0), out.compute);
}

/// Numbers of at most 8 in size that are `rounded`, such that quotients lie off whole numbers.
template <class F> Tensor each(Tensor x, F&& rounded) {
  if (!is_inexact(x.dtype()) || x.numel() == 0) return x;
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (!is_complex_type<T>) {
      T* const data = static_cast<T*>(x.raw_data());
      const Dims sizes = x.sizes(), strides = x.strides();
      for (int64_t i = 0; i < x.numel(); ++i) {
        int64_t at = 0, left = i;
        for (int d = sizes.size() - 1; d >= 0; --d) at += left % sizes[d] * strides[d], left /= sizes[d];
        data[at] = T(rounded(double(data[at])));
      }
    }
  });
  return x;
}

/// Where derivatives are asked for, no element lies near a whole number or between two.
Values one(Draw& d, DTypeMask types) {
  Values v = unary(d, types);
  if (!d.options().nonfinite)
    v[0] = each(std::get<Tensor>(v[0]), [](double x) { return std::floor(std::fmod(x, 8)) + 0.25; });
  return v;
}

/// Likewise of quotients: an odd number of sixteenths is no whole multiple of m, nor of m times 5/4, 3/4, 3/2
/// or 7/8, as lanes are.
Values two(Draw& d) {
  if (d.options().nonfinite) return binary(d, kRealTypes, Domain::Any, Domain::NonZero);
  const DType t = d.dtype(kRealTypes);  // an integer beside a number would be a whole multiple of it
  Values v =
      two_tensors(d, t, d.partner(t, is_floating(t) ? kFloating : kIntegers), Domain::Any, Domain::NonZero);
  v[0] = each(std::get<Tensor>(v[0]), [](double x) { return std::floor(std::fmod(x, 8)) + 0.4375; });
  v[1] = each(std::get<Tensor>(v[1]),
              [](double x) { return std::copysign(1 + std::floor(std::fmod(std::fabs(x), 8)), x); });
  return v;
}

struct Rounding {
  std::string_view schema;
  ShapeClass shape;
  InferFn infer;  ///< said in each row, for its docs
  std::string_view kernel;
  Promises promises;
  std::string_view doc;
};

void define(const Rounding& r) {
  const auto zero = [](Tensor t) { return zeros_like(t); };
  OpTable::add({.schema = r.schema,
                .shape = r.shape,
                .infer = r.infer,
                .kernel = kernel(r.kernel, kRealTypes),
                .jvp = {wrt("x", zero)},
                .vjp = {wrt("x", zero)},
                .promises = r.promises,
                .samples = [](Draw& d) { return one(d, kRealTypes); },
                .doc = r.doc});
}

struct Rest {
  std::string_view schema;
  ShapeClass shape;
  InferFn infer;  ///< likewise
  std::string_view kernel;
  Promises promises;
  std::string_view doc;
};

/// n of a - b * n. The quotient alone may be rounded up to the next whole number, as 1 / 0.001 is; what is
/// left of a says which one it was taken off. Neither part overflows where n does not; their derivatives a /
/// b^2 may, and 0 times those would be NaN: n is constant.
Tensor times_taken_off(const Tensor& a, const Tensor& b, const Tensor& left) {
  return detach(round(a / b - left / b));
}

/// a - b * n for a whole number n, whose derivative is 0.
void define_rest(const Rest& r) {
  OpTable::add(
      {.schema = r.schema,
       .shape = r.shape,
       .infer = r.infer,
       .kernel = kernel(r.kernel, kRealTypes),
       .jvp = {wrt("a", [](Tensor t) { return t; }),
               wrt("b", saves("a", "b", "result"),
                   [](Tensor t, Tensor a, Tensor b, Tensor y) { return -(t * times_taken_off(a, b, y)); })},
       .vjp = {wrt("a", [](Tensor dy) { return dy; }),
               wrt("b", saves("a", "b", "result"),
                   [](Tensor dy, Tensor a, Tensor b, Tensor y) { return -(dy * times_taken_off(a, b, y)); })},
       .promises = r.promises,
       .samples = two,
       .doc = r.doc});
}
}  // namespace

void define_rounding() {
  define({.schema = "floor(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_real_numbers,
          .kernel = "floor",
          .promises = {.whole = "always", .once = true, .rising = true},
          .doc = "The greatest whole number not above x; integers stay as they are. The derivative is 0. "
                 "Exact. Error dtype for complex numbers and bool."});
  define({.schema = "ceil(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_real_numbers,
          .kernel = "ceil",
          .promises = {.whole = "always", .once = true, .rising = true},
          .doc = "The least whole number not below x; integers stay as they are. The derivative is 0. Exact. "
                 "Error dtype for complex numbers and bool."});
  define({.schema = "round(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_real_numbers,
          .kernel = "round",
          .promises = {.whole = "always", .once = true, .odd = true, .rising = true},
          .doc = "The nearest whole number, the even one of two; integers stay as they are. The derivative "
                 "is 0. Exact. Error dtype for complex numbers and bool."});
  define({.schema = "trunc(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_real_numbers,
          .kernel = "trunc",
          .promises = {.whole = "always", .once = true, .odd = true, .rising = true},
          .doc = "x without its fraction; integers stay as they are. The derivative is 0. Exact. Error dtype "
                 "for complex numbers and bool."});
  OpTable::add(
      {.schema = "frac(Tensor x) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_float,
       .kernel = kernel("frac", kFloating),
       .jvp = {wrt("x", [](Tensor t) { return t; })},
       .vjp = {wrt("x", [](Tensor dy) { return dy; })},
       .promises = {.range = {-1, 1, true, true}, .sign_of = "x", .once = true, .odd = true},
       .samples = [](Draw& d) { return one(d, kFloating); },
       .doc =
           "x - trunc(x), in (-1, 1) and of the sign of x; NaN for infinities. The derivative is 1. Exact. "
           "Integers compute in the default dtype. Error dtype for complex numbers."});
  define_rest(
      {.schema = "fmod(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_numbers,
       .kernel = "fmod",
       .promises = {.sign_of = "a", .once = true},
       .doc = "a - b * trunc(a / b): what is left of a by whole multiples of b, with the sign of a (C's "
              "fmod). Exact but for one rounding. Derivatives are those of a - b * n for the whole number n "
              "that it is. Errors: value for an integer b = 0, dtype for complex numbers and bool."});
  define_rest(
      {.schema = "remainder(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_real_numbers,
       .kernel = "remainder",
       .promises = {.sign_of = "b", .once = true},
       .doc = "a - b * floor(a / b): what is left of a by whole multiples of b, with the sign of b (Python's "
              "%). Exact but for one rounding. Derivatives are those of a - b * n for the whole number n "
              "that it is. Errors: value for an integer b = 0, dtype for complex numbers and bool."});
}

}  // namespace lamella::ops
