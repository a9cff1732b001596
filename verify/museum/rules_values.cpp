// Derivative rules that are wrong at some values only: at zeros, at ties, far out.
#include "lamella/verify/museum/plant.h"

namespace lamella::verify {

namespace {

Tensor ones_for_zeros(const Tensor& x) { return where(eq(x, 0), ones_like(x), x); }

/// dy * prod / x for each element, nothing where x is zero.
Tensor zeros_masked(Tensor dy, Tensor x, const std::optional<Ints>& dim, std::optional<DType> dtype) {
  if (dtype) x = to(x, *dtype);
  const Tensor kept = dim ? prod(x, IntArg(*dim), true) : prod(x, std::nullopt, true);
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

void scan_by_division(Op& r) {
  set_vjp(r, wrt("x", saves("x", "result", "dim"), [](Tensor dy, Tensor x, Tensor y, int64_t dim) {
            if (x.dtype() != y.dtype()) x = to(x, y.dtype());
            return flip(cumsum(flip(dy * conj(y), {dim}), dim), {dim}) / conj(x);
          }));
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
  const auto add = [&](std::string_view id, std::string_view source, std::string_view op,
                       std::string_view law, void (*plant)(Op&), std::string_view summary) {
    list.push_back({id, "values", source, summary, op, law, plant});
  };
  add("zeros_get_nothing", "pt#77382 pt#76523", "prod", "vjp_is_adjoint", zeros_get_nothing,
      "The gradient of a product is zero for elements that are zero.");
  add("both_sides_win", "pt#56734", "maximum", "stacks", both_sides_win,
      "At ties both operands of a maximum receive the whole gradient.");
  add("scan_by_division", "mlx#504 mlx#628 mlx#1167", "cumprod", "vjp_equals_differences", scan_by_division,
      "The gradient of running products divides by elements that may be zero.");
  add("weights_overflow", "stan#1679", "log_softmax", "vjp_equals_differences", weights_overflow,
      "Derivatives of a log-sum-exp overflow for large arguments.");
  add("slope_in_less_precision", "jax@893b483", "tanh", "vjp_is_adjoint", slope_vanishes_early,
      "The derivative of a saturating function is lost to rounding far earlier than it need be.");
}

}  // namespace lamella::verify
