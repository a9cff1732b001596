// Two tensors broadcast against each other, one result per element: arithmetic.
#include "lamella/ops/functions/pointwise_binary.h"

#include "lamella/ops/define.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"

namespace lamella::ops {

namespace {
void infer_true_div(const Frame& f, Inferred& out) {
  if (f.none(2)) return infer_float(f, out);
  const std::string& mode = f.arg<std::string>(2);
  LAMELLA_CHECK(mode == "floor" || mode == "trunc", Value,
                "{}: rounding_mode = \"{}\", expected \"floor\" or \"trunc\"", op_name(f), mode);
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_complex(out.compute), DType,
                "{}: a: {}, b: {}; expected real numbers for rounding_mode = \"{}\"", op_name(f), f.tensor(0),
                f.tensor(1), mode);
}

void check_no_bool(const Frame& f, const Inferred& inferred) {
  LAMELLA_CHECK(!is_bool(inferred.compute), DType, "{}: a: {}, b: {}; expected numbers, not bool", op_name(f),
                f.tensor(0), f.tensor(1));
}

/// add and sub: b is scaled first, in the compute dtype, and so is its tangent; halves in f32, in which they
/// are added then.
void infer_add(const Frame& f, Inferred& out) {
  infer_broadcast(f, out);
  const Scalar& alpha = f.arg<Scalar>(2);
  const bool whole_for_bool = is_bool(out.compute) && alpha.is_integral();  // as PyTorch: 0 or not
  LAMELLA_CHECK(whole_for_bool || category(alpha.kind()) <= category(out.compute), DType,
                "{}: alpha = {} does not fit a result of {}; expected a number of its kind", op_name(f),
                alpha.str(), out.compute);
  if (op_name(f) == "sub") check_no_bool(f, out);
}

bool alpha_is_one(const Frame& f) { return f.arg<Scalar>(2) == Scalar(1); }

void launch_add(const Launch& l) {
  const Scalar& alpha = l.frame.arg<Scalar>(2);
  Tensor b = l.frame.tensor(1);
  if (is_bool(l.inferred.compute)) b = alpha.to<bool>() ? b : zeros_like(b);
  else if (!(alpha == Scalar(1)))
    b = mul(in_dtype(b, is_half(l.inferred.compute) ? DType::F32 : l.inferred.compute), alpha);
  Dims strides[2];
  const View out = l.outs[0].view_of();
  const View ins[] = {broadcast_view(l.frame, l.frame.tensor(0), l.outs[0].sizes(), strides[0]),
                      broadcast_view(l.frame, b, l.outs[0].sizes(), strides[1])};
  run(l, {&out, 1}, ins);
}

void launch_div(const Launch& l) {
  static const Kernels floor = kernel("div_floor"), trunc = kernel("div_trunc");
  Dims strides[2];
  const View out = l.outs[0].view_of();
  const View ins[] = {broadcast_view(l.frame, l.frame.tensor(0), l.outs[0].sizes(), strides[0]),
                      broadcast_view(l.frame, l.frame.tensor(1), l.outs[0].sizes(), strides[1])};
  const Kernels& k = l.frame.none(2)                          ? l.frame.op->kernel
                     : l.frame.arg<std::string>(2) == "floor" ? floor
                                                              : trunc;
  run(l, k, {&out, 1}, ins);
}

Values add_samples(Draw& d) {
  constexpr DTypeMask kNumbers = kAllTypes & ~kBoolType;
  const DType t = d.dtype(kNumbers), other = d.partner(t, kAllTypes);
  Values v = two_tensors(d, t, other);
  if (d.flag()) v.push_back(d.scalar(t));
  return v;
}

/// Quotients of integers: true ones, and rounded ones, which have no derivative to speak of.
Values div_samples(Draw& d) {
  const DType t = d.dtype(kInexact | kIntegers);
  // Of floating numbers where nobody asks for derivatives: those have kinks at all whole quotients.
  const bool steps = d.options().nonfinite && is_floating(t) && d.one_in(4);
  const bool rounds = (is_integer(t) && d.flag()) || steps;
  const DTypeMask others = steps ? kFloating : rounds ? kIntegers : kInexact | kIntegers;
  Values v = two_tensors(d, t, d.partner(t, others), Domain::Any, Domain::NonZero);
  if (rounds) v.push_back(std::string(d.flag() ? "trunc" : "floor"));
  return v;
}
}  // namespace

namespace {
void define_sums_of_two() {
  OpTable::add(
      {.schema = "add(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_add,
       .kernel = kernel("add", alpha_is_one, kAllTypes),
       .launch = launch_add,
       .jvp = {wrt("a", [](Tensor t) { return t; }), wrt("b", saves("result", "alpha"),
                                                         [](Tensor t, Tensor y, Scalar alpha) {
                                                           return alpha == Scalar(1)
                                                                      ? t
                                                                      : in_dtype(t, y.dtype()) * alpha;
                                                         })},
       .vjp = {wrt("a", [](Tensor dy) { return dy; }),
               wrt("b", saves("alpha"),
                   [](Tensor dy, Scalar alpha) { return alpha == Scalar(1) ? dy : conj(conj(dy) * alpha); })},
       .properties = kLinear,
       .promises = {.once = true, .rising = true, .symmetric = true},
       .overflows_in = {Inside::Products, "alpha * b", false, 2},
       .samples = add_samples,
       .doc = "a + alpha * b, element by element. Correctly rounded when alpha = 1 (one rounding more "
              "otherwise; halves scale and add in f32 and round once)."});
  OpTable::add(
      {.schema = "sub(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_add,
       .kernel = kernel(
           "sub", [](const Frame& f) { return !is_bool(f.tensor(0).dtype()) && alpha_is_one(f); },
           kAllTypes & ~kBoolType),
       .launch = launch_add,
       .jvp = {wrt("a", [](Tensor t) { return t; }),
               wrt("b", saves("result", "alpha"),
                   [](Tensor t, Tensor y, Scalar alpha) { return -in_dtype(t, y.dtype()) * alpha; })},
       .vjp = {wrt("a", [](Tensor dy) { return dy; }),
               wrt("b", saves("alpha"), [](Tensor dy, Scalar alpha) { return -conj(conj(dy) * alpha); })},
       .properties = kLinear,
       .promises = {.once = true},
       .overflows_in = {Inside::Products, "alpha * b", false, 2},
       .samples = add_samples,
       .doc = "a - alpha * b, element by element. Correctly rounded when alpha = 1. Error dtype for two bool "
              "tensors."});
}
}  // namespace

void define_pointwise_binary() {
  define_sums_of_two();
  OpTable::add({.schema = "mul(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .kernel = kernel("mul"),
                .jvp = {wrt("a", saves("b"), [](Tensor t, Tensor b) { return t * b; }),
                        wrt("b", saves("a"), [](Tensor t, Tensor a) { return t * a; })},
                .vjp = {wrt("a", saves("b"), [](Tensor dy, Tensor b) { return dy * conj(b); }),
                        wrt("b", saves("a"), [](Tensor dy, Tensor a) { return dy * conj(a); })},
                .promises = {.once = true, .symmetric = true},
                .overflows_in = {Inside::Products, "products of the parts of complex numbers", true},
                .samples = [](Draw& d) { return binary(d, kAllTypes); },
                .doc = "a * b, element by element; bool is `and`. Real: correctly rounded."});
  OpTable::add(
      {.schema = "div(Tensor a, Tensor b, *, str? rounding_mode=None) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_true_div,
       .kernel = kernel(
           "div", [](const Frame& f) { return f.none(2) && is_inexact(f.tensor(0).dtype()); }, kAllTypes),
       .launch = launch_div,
       .jvp = {wrt("a", saves("b", "rounding_mode"),
                   [](Tensor t, Tensor b, std::string_view m) {
                     return m.empty() ? t / b : zeros_like(t / b);
                   }),
               wrt("b", saves("b", "result", "rounding_mode"),
                   [](Tensor t, Tensor b, Tensor y, std::string_view m) {
                     return m.empty() ? -(t * (y / b)) : zeros_like(t * y);
                   })},
       .vjp = {wrt("a", saves("b", "rounding_mode"),
                   [](Tensor dy, Tensor b, std::string_view m) {
                     return m.empty() ? dy / conj(b) : zeros_like(dy);
                   }),
               wrt("b", saves("b", "result", "rounding_mode"),
                   [](Tensor dy, Tensor b, Tensor y, std::string_view m) {
                     return m.empty() ? -(dy * conj(y / b)) : zeros_like(dy);
                   })},
       .promises = {.whole = "rounding_mode", .once = true},
       .samples = div_samples,
       .doc = "a / b in floating point, of real numbers correctly rounded; rounding_mode \"floor\" "
              "or \"trunc\" rounds the quotient "
              "and keeps integers "
              "(wrapping: the smallest one by -1 is itself; error value for an integer b = 0; derivative "
              "zero)."});
}

}  // namespace lamella::ops
