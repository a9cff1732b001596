// Rules that are right once and wrong under another derivative: saved values without history, and the like.
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/contract.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/linalg.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"

namespace lamella::verify {

namespace {

void nested_forward_zero(Op& r) {
  set_jvp(r, wrt("x", saves("result"), [](Tensor t, Tensor result) {
            const Tensor y = constant(result);
            return t * (1 - y * y);
          }));
}

void factor_is_constant(Op& r) {
  set_jvp(r, wrt("B", saves("A", "upper", "left", "unitriangular"),
                 [](Tensor t, Tensor a, bool upper, bool left, bool unit) {
                   return linalg_solve_triangular(constant(a), t, upper, left, unit);
                 }));
  set_vjp(r, wrt("B", saves("A", "B.sizes", "upper", "left", "unitriangular"),
                 [](Tensor dy, Tensor a, Ints sizes, bool upper, bool left, bool unit) {
                   const Tensor back = adjoint(constant(a));
                   return sum_to_size(linalg_solve_triangular(back, dy, !upper, left, unit), sizes);
                 }));
}

/// The right forward formula of cumprod, on factors without history where one of them is zero.
void zero_factor_once(Op& r) {
  r.jvp[0].one = [](const RuleArgs& a) {
    const Tensor &x = *static_cast<const Tensor*>(a.saved[0]), &y = *static_cast<const Tensor*>(a.saved[1]);
    if (!has_zero(x)) return right("cumprod").jvp[0].one(a);
    const Tensor x0 = constant(x), y0 = constant(y);
    const void* saved[] = {&x0, &y0, a.saved[2]};
    return right("cumprod").jvp[0].one({a.directions, saved});
  };
}

/// Layer normalisation whose inverse deviation passes through `change` one level below the innermost.
template <Tensor (*Change)(const Tensor&)> void normalise(Frame& f) {
  const Tensor& x = f.tensor(0);
  if (itemsize(x.dtype()) < 4) return right("layer_norm").composite(f);
  Dims dims;
  for (int d = int(f.ints(1).size()); d > 0; --d) dims.push_back(-d);
  const Tensor centred = x - mean(x, IntArg(dims), true);
  const Tensor spread = mean(centred * centred, IntArg(dims), true);
  const Tensor rstd = reciprocal(sqrt(spread + f.arg<double>(4)));
  if (rstd.keys() >> kFirstLevelKey) {
    auto* w = static_cast<Wrapper*>(rstd.impl()->wrap);
    const Below below(w->key);
    w->value = Change(w->value);
  }
  Tensor out = centred * rstd;
  if (f.tensor(2).defined()) out = out * f.tensor(2);
  if (f.tensor(3).defined()) out = out + f.tensor(3);
  f.results[0] = out.dtype() == x.dtype() ? out : to(out, x.dtype());
}
Tensor without_history(const Tensor& t) { return constant(t); }
Tensor history_negated(const Tensor& t) {
  const Tensor plain = constant(t);
  return plain.is_same(t) ? t : 2 * plain - t;
}

void stashed_on_the_side(Op& r) {
  set_vjp(r, wrt("x", saves("result"), [](Tensor dy, Tensor y) { return dy * conj(constant(y)); }));
}

/// The right gradient of prod, as a constant where two factors of a product are zero.
void two_zeros_end_it(Op& r) {
  r.vjp[0].one = [](const RuleArgs& a) {
    const Tensor g = right("prod").vjp[0].one(a);
    const Tensor& x = *static_cast<const Tensor*>(a.saved[0]);
    const auto* dim = static_cast<const Ints*>(a.saved[1]);
    const Tensor zeros = to(eq(x, 0), DType::I64);
    const Tensor count = dim ? sum(zeros, IntArg(*dim), true) : sum(zeros, std::nullopt, true);
    return where(ge(count, 2), zeros_like(g), g);
  };
}

/// The right gradient of amax, which another derivative takes for independent of the cotangent.
void cotangent_is_constant(Op& r) {
  r.vjp[0].one = [](const RuleArgs& a) {
    const Tensor dy = constant(a.directions[0]);
    return right("amax").vjp[0].one({{&dy, 1}, a.saved});
  };
}

void flat_when_reverse_is_outside(Op& r) {
  set_jvp(r, wrt("x", saves("result"), [](Tensor t, Tensor result) {
            const Tensor y = constant(result, "grad");
            return t * (1 - y * y);
          }));
  set_vjp(r, wrt("x", saves("result"), [](Tensor dy, Tensor result) {
            const Tensor y = constant(result, "grad");
            return dy * conj(1 - y * y);
          }));
}

void not_twice(Op& r) {
  r.vjp[0].one = [](const RuleArgs& a) {
    const Tensor& dy = a.directions[0];
    LAMELLA_CHECK(constant(dy).is_same(dy), NoKernel, "sort: its gradient is written for plain tensors");
    return right("sort").vjp[0].one(a);
  };
}

void nothing_the_second_time(Op& r) {
  set_vjp(r, wrt("a", saves("b"), [](Tensor dy, Tensor b) { return mm(dy, adjoint(constant(b))); }));
  set_vjp(r, wrt("b", saves("a"), [](Tensor dy, Tensor a) { return mm(adjoint(constant(a)), dy); }));
}

void differs_on_repetition(Op& r) {
  set_vjp(r, wrt("x", saves("x"), [](Tensor dy, Tensor x) {
            static int runs = 0;
            const bool nested = !constant(x).is_same(x);
            return nested && runs++ % 2 ? dy * conj(cos(constant(x))) : dy * conj(cos(x));
          }));
}

void reverse_over_forward(Op& r) {
  set_jvp(r, wrt("x", saves("x"), [](Tensor t, Tensor x) { return -t * sin(constant(x, "grad")); }));
}

void forward_over_reverse(Op& r) {
  set_vjp(r, wrt("x", saves("result"),
                 [](Tensor dy, Tensor y) { return dy * conj(reciprocal(2 * constant(y, "jvp"))); }));
}

}  // namespace

void add_second_order_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "second order"};
  constexpr std::string_view kSecond = "second_derivatives_agree";
  wing.add("nested_forward_zero", "pt#197867", "tanh", kSecond, nested_forward_zero,
           "Forward mode nested in itself gives zero: the rule's saved value is a constant to outer levels.");
  wing.add("factor_is_constant", "pt#192540", "linalg_solve_triangular", kSecond, factor_is_constant,
           "The factor that a solve saves counts as constant in second derivatives.");
  wing.add("zero_factor_once", "pt#196701", "cumprod", kSecond, zero_factor_once,
           "The second forward derivative of running products is wrong at a factor of zero.");
  wing.add("statistics_without_history", "pt#175754 pt#186256", "layer_norm", kSecond,
           put<&Op::composite, normalise<without_history>>,
           "The saved deviation of a normalisation has no history for higher derivatives.");
  wing.add("statistics_sign", "pt#196699 pt#196700", "layer_norm", kSecond,
           put<&Op::composite, normalise<history_negated>>,
           "A normalisation's second derivative takes one term with the wrong sign.");
  wing.add("stashed_on_the_side", "pt#76185", "exp", kSecond, stashed_on_the_side,
           "An intermediate stashed outside the tape is a constant to the second backward pass.");
  wing.add("two_zeros_end_it", "pt#106789", "prod", kSecond, two_zeros_end_it,
           "The second derivative of a product with two zero factors is zero.");
  wing.add("cotangent_is_constant", "pt#1712 pt#64256 pt#59477", "amax", "stacks", cotangent_is_constant,
           "The backward pass of a selection cannot be differentiated by its cotangent.");
  wing.add("flat_when_reverse_is_outside", "jax#40315 jax#40319", "tanh", kSecond,
           flat_when_reverse_is_outside,
           "The second derivative is zero when the outer transform is reverse mode.");
  wing.add("not_twice", "mlx#4114 mlx#4117", "sort", "stacks", not_twice,
           "A second derivative through sort raises an error.");
  wing.add("nothing_the_second_time", "Zygote#937 Zygote#33 Zygote#255", "mm", "stacks",
           nothing_the_second_time, "The gradient's own dependence on the saved operand is lost.");
  wing.add("differs_on_repetition", "pt#18619", "sin", kSecond, differs_on_repetition,
           "The second derivative differs from one run to the next.");
  wing.add("reverse_over_forward", "Enzyme.jl#3346", "cos", kSecond, reverse_over_forward,
           "Reverse mode over forward mode is silently wrong, each alone is right.");
  wing.add("forward_over_reverse", "pt#92075", "sqrt", kSecond, forward_over_reverse,
           "The Hessian by forward over reverse misses a term and no error is raised.");
}

}  // namespace lamella::verify
