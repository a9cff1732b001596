// Powers, choices and bounds, element by element.
#include "lamella/ops/functions/pointwise_other.h"

#include "lamella/ops/define.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_unary.h"

namespace lamella::ops {

namespace {
void infer_pow(const Frame& f, Inferred& out) {
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_bool(out.compute), DType, "{}: a: {}, b: {}; expected numbers, not bool", op_name(f),
                f.tensor(0), f.tensor(1));
}

void infer_ordered(const Frame& f, Inferred& out) {
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_complex(out.compute), DType,
                "{}: a: {}, b: {}: complex numbers have no order; expected real numbers", op_name(f),
                f.tensor(0), f.tensor(1));
}

DType computed_in(const Tensor& a, const Tensor& b) {
  const Tensor* const both[] = {&a, &b};
  return result_type(both);
}

/// The other operand of a power in the dtype the power is taken in: `b - 1` and `log a` would otherwise round
/// to a narrower one, and a scalar of a wider one would widen the result once it has dims.
Tensor operand(const Tensor& t, const Tensor& like) {
  const DType compute = computed_in(t, like);
  return t.dtype() == compute && !t.impl()->number ? t : to(t, compute);
}

/// NOTE: [derivatives of powers] Guards replace inputs, never results, so that no 0 * inf arises at any
/// order. At a = b = 0 the exponent b - 1 becomes 0: then b * a^0 = 0, and so are all its derivatives in a.
/// Elsewhere b = 0 needs none: 0 * a^-1 is 0 and its derivative in b is 1 / a, as it must be.
/// At a = 0 the mixed derivative a^(b-1) (1 + b log a) exists for b > 1 only and is 0 in both orders. For b
/// <= 1 it is infinite, and no guard of inputs says so: b first gives 0, a first b a^0 = 1 at b = 1 and NaN
/// below.
/// Halves take it in f32: a^(b-1) may overflow, or nearly vanish, where its product with b is an ordinary
/// number. A scalar of a wider dtype is not rounded to half on the way: the power was taken of all of it.
/// From 2^p on b is even, b - 1 rounds to an even number again, and a^(b-1) has lost the sign of a.
Tensor pow_wrt_a(const Tensor& a, const Tensor& exponent) {
  if (const DType d = computed_in(a, exponent); is_half(d))
    return in_dtype(pow_wrt_a(to(a, DType::F32), to(exponent, DType::F32)), d);
  const Tensor b = operand(exponent, a);
  const Tensor both_zero = logical_and(eq(a, 0), eq(b, 0));
  const Tensor less = where(both_zero, ones_like(b), b) - 1;
  const Tensor power = pow(a, less);
  if (is_complex(power.dtype())) return b * power;
  const Tensor lost = eq(abs(b - less - 1), 1);  // where 1 made no difference, or one of 2
  // Of the exponent's sizes up to here: a number costs two passes over a.
  const Tensor turned_below = where(lost, zeros_like(b), full_like(b, -INFINITY));
  return where(lt(a, turned_below), -b, b) * power;
}

/// a^b log a, whose limit for a -> 0 is 0 when b > 0; at a = b = 0 it is 0 by convention. Halves as above:
/// log a of a rounded a near 1 may be 0, and a^b may overflow, or nearly vanish, where its product with log a
/// is an ordinary number.
Tensor pow_wrt_b(const Tensor& base, const Tensor& b) {
  if (const DType d = computed_in(base, b); is_half(d))
    return in_dtype(pow_wrt_b(to(base, DType::F32), to(b, DType::F32)), d);
  const Tensor a = operand(base, b);
  const Tensor vanishes = logical_and(eq(a, 0), ge(real(b), 0));
  const Tensor guarded = where(vanishes, ones_like(a), a);
  return pow(guarded, b) * log(guarded);
}

/// What part of t goes to the operand that `wins` (half of it at ties). NaN operands both get all of it.
Tensor share(const Tensor& t, const Tensor& tie, const Tensor& loses) {
  return where(tie, t * 0.5, where(loses, zeros_like(t), t));
}

Rules extremum_rules(bool maximum) {
  const auto a_max = [](Tensor t, Tensor a, Tensor b) { return share(t, eq(a, b), lt(a, b)); };
  const auto b_max = [](Tensor t, Tensor a, Tensor b) { return share(t, eq(a, b), lt(b, a)); };
  const auto a_min = [](Tensor t, Tensor a, Tensor b) { return share(t, eq(a, b), gt(a, b)); };
  const auto b_min = [](Tensor t, Tensor a, Tensor b) { return share(t, eq(a, b), gt(b, a)); };
  const auto a_less = [](Tensor, Tensor a, Tensor b) { return lt(a, b); };
  const auto b_less = [](Tensor, Tensor a, Tensor b) { return lt(b, a); };
  const auto both = saves("a", "b");
  if (maximum) return {wrt("a", both, a_max).hides(a_less), wrt("b", both, b_max).hides(b_less)};
  return {wrt("a", both, a_min).hides(b_less), wrt("b", both, b_min).hides(a_less)};
}

void infer_where(const Frame& f, Inferred& out) {
  const Tensor &condition = f.tensor(0), &x = f.tensor(1), &y = f.tensor(2);
  LAMELLA_CHECK(is_bool(condition.dtype()), DType, "{}: condition is {}, expected bool", op_name(f),
                condition);
  const Tensor* values[] = {&x, &y};
  const Tensor* all[] = {&condition, &x, &y};
  out.compute = result_type(values);
  out.outs.push_back({broadcast(f, all), out.compute});
}

void infer_clamp(const Frame& f, Inferred& out) {
  LAMELLA_CHECK(f.tensor(1).defined() || f.tensor(2).defined(), Value,
                "{}: min and max are both None, expected one at least", op_name(f));
  infer_broadcast(f, out);
  LAMELLA_CHECK(!is_complex(out.compute), DType,
                "{}: x: {} and its bounds compare as {}, which has no order; expected real numbers",
                op_name(f), f.tensor(0), out.compute);
}

/// min(max(x, min), max): so max wins where min > max, and NaN anywhere gives NaN.
void launch_clamp(const Launch& l) {
  static const kernels::Kernel &maximum = kernels::named("maximum"), &minimum = kernels::named("minimum");
  const auto apply = [&](const kernels::Kernel& k, const Tensor& out, const Tensor& a, const Tensor& b) {
    Dims strides[2];
    const View to = out.view_of();
    const View ins[] = {broadcast_view(l.frame, a, out.sizes(), strides[0]),
                        broadcast_view(l.frame, b, out.sizes(), strides[1])};
    run_kernel(l.frame, k.on(l.device), {{&to, 1}, ins, l.inferred.compute});
  };
  const Tensor &x = l.frame.tensor(0), &min = l.frame.tensor(1), &max = l.frame.tensor(2), &out = l.outs[0];
  if (!max.defined()) return apply(maximum, out, x, min);
  if (!min.defined()) return apply(minimum, out, x, max);
  const Tensor raised = make_tensor(out.sizes(), l.inferred.compute, out.device());  // out may be x or max
  apply(maximum, raised, x, min);
  apply(minimum, out, raised, max);
}

/// NOTE: [derivative of clamp] To x between the bounds, bounds included; else to the bound that was taken, to
/// max where the bounds meet or cross: there no x changes the result. No halves at ties.
Tensor clamp_keeps_x(const Tensor& x, const Tensor& min, const Tensor& max) {
  if (!min.defined()) return le(x, max);
  if (!max.defined()) return ge(x, min);
  return logical_and(logical_and(ge(x, min), le(x, max)), lt(min, max));
}
Tensor clamp_takes_min(const Tensor& x, const Tensor& min, const Tensor& max) {
  const Tensor below = lt(x, min);
  return max.defined() ? logical_and(below, lt(min, max)) : below;
}
Tensor clamp_takes_max(const Tensor& x, const Tensor& min, const Tensor& max) {
  const Tensor above = gt(x, max);
  return min.defined() ? logical_or(above, le(max, min)) : above;
}

/// Which elements come from one of clamp's arguments, by what clamp compares: x and its bounds in the dtype
/// of all three. Two of them alone may have another one: -3 of i64 is no number of u64.
template <Tensor (*Taken)(const Tensor&, const Tensor&, const Tensor&)>
Tensor taken(Tensor x, Tensor min, Tensor max) {
  std::vector<const Tensor*> all;
  for (const Tensor* each : {&x, &min, &max})
    if (each->defined()) all.push_back(each);
  const DType compute = result_type(all);
  for (Tensor* each : {&x, &min, &max})
    if (each->defined() && each->dtype() != compute) *each = to(*each, compute);
  return Taken(x, min, max);
}

template <Tensor (*Taken)(const Tensor&, const Tensor&, const Tensor&)>
Formula clamp_rule(std::string_view input) {
  return wrt(input, saves("x", "min", "max"),
             [](Tensor t, Tensor x, Tensor min, Tensor max) {
               return where(taken<Taken>(x, min, max), t, zeros_like(t));
             })
      .hides([](Tensor, Tensor x, Tensor min, Tensor max) { return logical_not(taken<Taken>(x, min, max)); });
}

std::vector<Formula> clamp_rules() {
  return {clamp_rule<clamp_keeps_x>("x"), clamp_rule<clamp_takes_min>("min"),
          clamp_rule<clamp_takes_max>("max")};
}

Values pow_samples(Draw& d) {
  const DType t = d.dtype(kRealTypes | kComplex), other = d.partner(t, kRealTypes | kComplex);
  const bool whole = is_integer(t) && is_integer(other);
  return two_tensors(d, t, other, Domain::Positive, whole ? Domain::Positive : Domain::Any);
}

Values where_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes), other = d.partner(t, kAllTypes);
  const Dims s = d.shape();
  const uint32_t whole = d.below(3);  // which operand keeps the full shape
  const auto sizes = [&](uint32_t i, DType type) { return i == whole ? s : d.broadcastable(s, type); };
  const Tensor condition = d.boolean(sizes(0, DType::Bool)), x = d.tensor(sizes(1, t), t);
  return {condition, x, d.tensor(sizes(2, other), other)};
}

Values clamp_samples(Draw& d) {
  const DType t = d.dtype(kRealTypes), low_type = d.partner(t, kRealTypes),
              high_type = d.partner(t, kRealTypes);
  const Dims s = d.shape();
  const Tensor x = d.tensor(s, t);
  const uint32_t bounds = d.below(3);  // both, min alone, max alone
  const Tensor bound = d.tensor(d.broadcastable(s, low_type), low_type);
  if (bounds == 1) return {x, bound};
  if (bounds == 2) return {x, {}, bound};
  return {x, bound, d.tensor(d.broadcastable(s, high_type), high_type)};
}

void define_extrema() {
  OpTable::add({.schema = "maximum(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_ordered,
                .kernel = kernel("maximum", kRealTypes | kBoolType),
                .jvp = extremum_rules(true),
                .vjp = extremum_rules(true),
                .properties = kKinks,
                .at_kinks = AtKinks::Shared,
                .promises = {.once = true, .rising = true, .symmetric = true},
                .samples = [](Draw& d) { return binary(d, kRealTypes | kBoolType); },
                .doc = "The larger of a and b; NaN if either is NaN. At ties the derivative goes to both by "
                       "halves. Exact. Error "
                       "dtype for complex numbers."});
  OpTable::add({.schema = "minimum(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_ordered,
                .kernel = kernel("minimum", kRealTypes | kBoolType),
                .jvp = extremum_rules(false),
                .vjp = extremum_rules(false),
                .properties = kKinks,
                .at_kinks = AtKinks::Shared,
                .promises = {.once = true, .rising = true, .symmetric = true},
                .samples = [](Draw& d) { return binary(d, kRealTypes | kBoolType); },
                .doc = "The smaller of a and b; NaN if either is NaN. At ties the derivative goes to both by "
                       "halves. Exact. Error "
                       "dtype for complex numbers."});
}
}  // namespace

void define_pointwise_other() {
  const Derivative base =
      derivative("a", saves("a", "b"), [](Tensor a, Tensor b) { return pow_wrt_a(a, b); });
  const Derivative exponent =
      derivative("b", saves("a", "b"), [](Tensor a, Tensor b) { return pow_wrt_b(a, b); });
  OpTable::add({.schema = "pow(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_pow,
                .kernel = kernel("pow", kAllTypes & ~kBoolType),
                .jvp = std::vector<Formula>{base.jvp[0], exponent.jvp[0]},
                .vjp = std::vector<Formula>{base.vjp[0], exponent.vjp[0]},
                .samples = pow_samples,
                .doc =
                    "a^b; integers stay integers (wrapping). a^0 = 1, also for a = 0 and NaN; NaN for a < "
                    "0 and a fractional b. Second derivatives in both a and b exist at a = 0 for b > 1 only. "
                    "Error dtype for two bool tensors. At most 4 ULP (f32, f64); complex: relative to the "
                    "modulus about 2^-p + |b log a| * 2^-62."});
  define_extrema();
  OpTable::add(
      {.schema = "where(Tensor condition, Tensor x, Tensor y) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_where,
       .kernel = kernel("where", kBoolType),
       .jvp = {wrt("x", saves("condition"), [](Tensor t, Tensor c) { return where(c, t, zeros_like(t)); }),
               wrt("y", saves("condition"), [](Tensor t, Tensor c) { return where(c, zeros_like(t), t); })},
       .vjp = {wrt("x", saves("condition"), [](Tensor dy, Tensor c) { return where(c, dy, zeros_like(dy)); })
                   .hides([](Tensor, Tensor c) { return logical_not(c); }),
               wrt("y", saves("condition"), [](Tensor dy, Tensor c) { return where(c, zeros_like(dy), dy); })
                   .hides([](Tensor, Tensor c) { return c; })},
       .properties = kLinear | kNoInPlace,
       .promises = {.once = true},
       .samples = where_samples,
       .doc = "x where condition holds, else y; the three broadcast, x and y promote. Error dtype unless "
              "condition is "
              "bool. Exact."});
  OpTable::add({.schema = "clamp(Tensor x, Tensor? min=None, Tensor? max=None) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_clamp,
                .kernel = kernel("maximum"),
                .launch = launch_clamp,
                .jvp = clamp_rules(),
                .vjp = clamp_rules(),
                .properties = kKinks,
                .at_kinks = AtKinks::Interval,
                .promises = {.once = true, .rising = true},
                .samples = clamp_samples,
                .doc =
                    "min(max(x, min), max) with the bounds given, broadcast and promoted; NaN in any gives "
                    "NaN. The derivative "
                    "at a bound is x's, max's where the bounds meet. Errors: value without bounds, dtype for "
                    "complex numbers and bool."});
}

}  // namespace lamella::ops
