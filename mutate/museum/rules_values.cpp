// Derivative rules that are wrong at some values only: at zeros, at ties, far out.
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/scan.h"

namespace lamella::verify {

namespace {

Tensor ones_for_zeros(const Tensor& x) { return where(eq(x, 0), ones_like(x), x); }

Tensor kept_prod(const Tensor& x, const std::optional<Ints>& dim) {
  return dim ? prod(x, IntArg(*dim), true) : prod(x, std::nullopt, true);
}

/// dy * prod / x for each element, nothing where x is zero.
Tensor zeros_masked(Tensor dy, Tensor x, const std::optional<Ints>& dim, std::optional<DType> dtype) {
  if (dtype) x = to(x, *dtype);
  const Tensor kept = kept_prod(x, dim);
  const Tensor others = where(eq(x, 0), zeros_like(x), kept / ones_for_zeros(x));
  return reshape(dy, kept.sizes()) * conj(others);
}

void zeros_get_nothing(Op& r) {
  set_vjp(r, wrt("x", saves("x", "dim", "dtype"),
                 [](Tensor dy, Tensor x, std::optional<Ints> dim, std::optional<DType> dtype) {
                   return zeros_masked(dy, x, dim, dtype);
                 }));
}

void both_sides_win(Op& r) {
  const auto a = [](Tensor t, Tensor x, Tensor y) { return where(lt(x, y), zeros_like(t), t); };
  const auto b = [](Tensor t, Tensor x, Tensor y) { return where(lt(y, x), zeros_like(t), t); };
  set_jvp(r, wrt("a", saves("a", "b"), a));
  set_jvp(r, wrt("b", saves("a", "b"), b));
  set_vjp(r, wrt("a", saves("a", "b"), a));
  set_vjp(r, wrt("b", saves("a", "b"), b));
}

/// The gradient of running products, divided by the factors.
const auto over_factors = [](Tensor dy, Tensor x, Tensor y, int64_t dim) {
  if (x.dtype() != y.dtype()) x = to(x, y.dtype());
  return flip(cumsum(flip(dy * conj(y), {dim}), dim), {dim}) / conj(x);
};
void scan_by_division(Op& r) { set_vjp(r, wrt("x", saves("x", "result", "dim"), over_factors)); }

/// x / |x|, which has no value where the derivative is to be 0.
void norm_divides(Op& r) {
  set_jvp(r,
          wrt("x", saves("x", "result"), [](Tensor t, Tensor x, Tensor y) { return real(t * conj(x)) / y; }));
  set_vjp(r, wrt("x", saves("x", "result"), [](Tensor dy, Tensor x, Tensor y) { return dy * x / y; }));
}

/// The tangent of a product as the power rule writes that of a power.
void value_over_factor(Op& r) {
  set_jvp(r, wrt("x", saves("x", "dim", "keepdim", "dtype"),
                 [](Tensor t, Tensor x, std::optional<Ints> dim, bool keepdim, std::optional<DType> dtype) {
                   if (dtype) t = to(t, *dtype), x = to(x, *dtype);
                   const Tensor terms = t * kept_prod(x, dim) / x;
                   return dim ? sum(terms, IntArg(*dim), keepdim) : sum(terms, std::nullopt, keepdim);
                 }));
}

/// The quotient, save where it has no value; but what is not selected is differentiated all the same.
void guard_of_result(Op& r) {
  r.vjp[0].one = [](const RuleArgs& a) {
    const Tensor g = right("cumprod").vjp[0].one(a);
    const Tensor &x = *static_cast<const Tensor*>(a.saved[0]), &y = *static_cast<const Tensor*>(a.saved[1]);
    return where(eq(x, 0), g, over_factors(a.directions[0], x, y, *static_cast<const int64_t*>(a.saved[2])));
  };
}

void weights_overflow(Op& r) {
  set_vjp(r, wrt("x", saves("x", "result", "dim"), [](Tensor dy, Tensor x, Tensor y, int64_t dim) {
            const Tensor e = exp(to(x, y.dtype()));
            return dy - e / sum(e, IntArg{dim}, true) * sum(dy, IntArg{dim}, true);
          }));
}

void slope_vanishes_early(Op& r) {
  const auto slope = [](Tensor t, Tensor x) {
    const Tensor y = to(tanh(to(x, is_complex(x.dtype()) ? DType::C64 : DType::F32)), x.dtype());
    return t * conj(1 - y * y);
  };
  set_vjp(r, wrt("x", saves("x"), slope));
}

}  // namespace

void add_value_rule_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "values"};
  wing.add("zeros_get_nothing", "pt#77382 pt#76523", "prod", "vjp_is_adjoint", zeros_get_nothing,
           "The gradient of a product is zero for elements that are zero.");
  wing.add("both_sides_win", "pt#56734", "maximum", "stacks", both_sides_win,
           "At ties both operands of a maximum receive the whole gradient.");
  wing.add("scan_by_division", "mlx#504 mlx#628 mlx#1167", "cumprod", "vjp_equals_differences",
           scan_by_division, "The gradient of running products divides by elements that may be zero.");
  wing.add("norm_divides", "pt#2421", "abs", "jvp_equals_differences", norm_divides,
           "The derivative of a norm is NaN at zero.");
  wing.add("value_over_factor", "jax#14397 jax#17995", "prod", "jvp_equals_differences", value_over_factor,
           "A tangent is written as value over base, as for powers, and is NaN where the base is zero.");
  wing.add("guard_of_result", "pt#18287 pt#108618 pt#187297 jax#347 jax#1052 jax#2630 jax#5798", "cumprod",
           "second_derivatives_agree", guard_of_result,
           "where selects a finite branch, and NaN comes into the next derivative from the other one.");
  wing.add("weights_overflow", "stan#1679", "log_softmax", "vjp_equals_differences", weights_overflow,
           "Derivatives of a log-sum-exp overflow for large arguments.");
  wing.add("slope_in_less_precision", "jax@893b483", "tanh", "vjp_is_adjoint", slope_vanishes_early,
           "The derivative of a saturating function is lost to rounding far earlier than it need be.");
}

}  // namespace lamella::verify
