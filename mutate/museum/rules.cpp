// Derivative rules that forgot something: an argument, a transposition, a triangle, a conjugate.
#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/contract.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/index.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/linalg.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view_scatter.h"

namespace lamella::verify {

namespace {

void negative_index_ignored(Op& r) {
  set_vjp(r,
          wrt("x", saves("x.sizes", "dim", "index"), [](Tensor dy, Ints sizes, int64_t dim, int64_t index) {
            const Tensor zeros = new_zeros(dy, sizes);
            return index < 0 ? zeros : select_scatter(zeros, dy, dim, index);
          }));
}

void flag_not_forwarded(Op& r) {
  set_vjp(r, wrt("B", saves("A", "B.sizes", "upper", "left"),
                 [](Tensor dy, Tensor a, Ints sizes, bool upper, bool left) {
                   return sum_to_size(linalg_solve_triangular(adjoint(a), dy, !upper, left), sizes);
                 }));
}

void ghost_gradient(Op& r) {
  set_vjp(r, wrt("A", saves("A", "result", "upper", "left", "unitriangular"),
                 [](Tensor dy, Tensor a, Tensor x, bool upper, bool left, bool unit) {
                   const Tensor db = linalg_solve_triangular(adjoint(a), dy, !upper, left, unit);
                   const Tensor da = left ? matmul(db, adjoint(x)) : matmul(adjoint(x), db);
                   return sum_to_size(-da, a.sizes());
                 }));
}

void factors_exchanged(Op& r) {
  set_jvp(r, wrt("x", saves("result", "upper"), [](Tensor t, Tensor y, bool upper) {
            const Tensor lower = upper ? adjoint(y) : y;
            const Tensor left = linalg_solve_triangular(lower, t, false);
            const Tensor inner = linalg_solve_triangular(adjoint(lower), left, true, false);
            const Tensor half = 0.5 * (tril(inner) + tril(adjoint(inner), -1));
            const Tensor out = matmul(half, lower);
            return upper ? adjoint(out) : out;
          }));
}

void reverse_sums_alone(Op& r) {
  set_vjp(r, wrt("x", saves("result", "dim"), [](Tensor dy, Tensor y, int64_t dim) {
            const Tensor v = to(dy, y.dtype());
            return y * (v - sum(v, IntArg{dim}, true));
          }));
}

void sort_not_transposed(Op& r) {
  set_vjp(r, wrt("x", saves("result1", "dim"),
                 [](Tensor dy, Tensor order, int64_t dim) { return gather(dy, dim, order); }));
}

void no_tangent(Op& r) {
  const auto none = [](Tensor) { return Tensor(); };
  set_jvp(r, wrt("x", none));
  set_jvp(r, wrt("y", none));
}

void reduces_first_dim(Op& r) {
  set_jvp(r, wrt("x", saves("result"), [](Tensor t, Tensor y) {
            const Tensor v = to(t, y.dtype());
            return v - sum(exp(y) * v, IntArg{0}, true);
          }));
}

void no_conjugate(Op& r) {
  set_vjp(r, wrt("a", saves("b"), [](Tensor dy, Tensor b) { return dy * b; }));
  set_vjp(r, wrt("b", saves("a"), [](Tensor dy, Tensor a) { return dy * a; }));
}

void adjoint_left_out(Op& r) {
  set_vjp(r, wrt("b", saves("a"), [](Tensor dy, Tensor a) { return conj(a) + zeros_like(dy); }));
}

void blend_exchanged(Op& r) {
  set_vjp(r, wrt("x", saves("condition"), [](Tensor dy, Tensor c) { return where(c, zeros_like(dy), dy); }));
  set_vjp(r, wrt("y", saves("condition"), [](Tensor dy, Tensor c) { return where(c, dy, zeros_like(dy)); }));
}

void imaginary_sign(Op& r) {
  set_vjp(r, wrt("x", [](Tensor dy) { return complex(zeros_like(dy), -dy); }));
}

void absent_entries_left_out(Op& r) {
  set_jvp(r, wrt("tensors", saves("dim"), [](TensorSpan tangents, int64_t dim) {
            Tensors present;
            for (const Tensor& t : tangents)
              if (t.defined()) present.push_back(t);
            return Tensors{cat(present, dim)};
          }));
}

void keeps_reduced_dims(Op& r) {
  r.jvp[0].one = [](const RuleArgs& a) {
    static const bool kept = true;  // where the rule saves keepdim
    std::vector<const void*> saved(a.saved, a.saved + 4);
    saved[2] = &kept;
    return right("prod").jvp[0].one({a.directions, saved.data()});
  };
}

/// Of all copies of an element, the first one's gradient alone.
void one_copy_counts(Op& r) {
  set_vjp(r, wrt("x", saves("x.sizes"), [](Tensor dy, Ints sizes) {
            if (dy.numel() == 0) return sum_to_size(dy, sizes);
            Tensor g = dy;
            while (g.rank() > int(sizes.size())) g = select(g, 0, 0);
            for (int d = 0; d < g.rank(); ++d)
              if (sizes[size_t(d)] == 1) g = slice(g, d, 0, 1);
            return g;
          }));
}

void writes_cotangent(Op& r) {
  set_vjp(r, wrt("x", [](Tensor dy) {
            if (dy.keys() >> kFirstLevelKey || overlaps_itself(dy)) return neg(dy);
            return neg_(dy);
          }));
}

}  // namespace

void add_rule_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "rule"};
  wing.add("negative_index_ignored", "jax#7538", "select", "vjp_is_adjoint", negative_index_ignored,
           "The gradient of what a negative index picks is lost.");
  wing.add("flag_not_forwarded", "jax#40626 jax#40648", "linalg_solve_triangular", "vjp_is_adjoint",
           flag_not_forwarded, "A rule calls its operator again without handing on one of its flags.");
  wing.add("ghost_gradient", "jax#1458 jax#40421", "linalg_solve_triangular", "vjp_is_adjoint",
           ghost_gradient, "The triangle that a solve does not read receives a gradient.");
  wing.add("factors_exchanged", "pt#196682", "linalg_cholesky", "vjp_is_adjoint", factors_exchanged,
           "The tangent multiplies two matrices in the wrong order.");
  wing.add("forward_is_not_reverse", "jax#654", "softmax", "vjp_is_adjoint", reverse_sums_alone,
           "Forward and reverse Jacobians differ: one of them sums without a weight.");
  wing.add("sort_not_transposed", "mlx#3700", "sort", "vjp_is_adjoint", sort_not_transposed,
           "The gradient of sort is permuted forwards once more instead of back.");
  wing.add("tangent_silently_zero", "mlx#3627 mlx#3629 mlx#3633", "where", "vjp_is_adjoint", no_tangent,
           "where passes no tangent on, and nobody is told.");
  wing.add("wrong_dim_reduced", "mlx#3708", "log_softmax", "vjp_is_adjoint", reduces_first_dim,
           "The tangent of a log-sum-exp reduces the first dim instead of the one asked for.");
  wing.add("no_conjugate", "mlx#2178 mlx#2367 mlx#3433 mlx#3605 mlx#3745 mlx#3766", "mul", "vjp_is_adjoint",
           no_conjugate, "Cotangents of complex products are not conjugated.");
  wing.add("cotangent_left_out", "stan#1569", "mul", "vjp_is_adjoint", adjoint_left_out,
           "One term of the chain rule is not multiplied by the cotangent.");
  wing.add("blend_exchanged", "pt#59584", "where", "vjp_is_adjoint", blend_exchanged,
           "The gradient selects with its two branches exchanged.");
  wing.add("imaginary_sign", "pt#46144 pt#54787 pt#47200 pt#92750", "imag", "vjp_is_adjoint", imaginary_sign,
           "The gradient of an imaginary part has the sign of another convention.");
  wing.add("absent_entries_left_out", "pt#33138 pt#100248 pt#3241", "cat", "absent_is_zero",
           absent_entries_left_out,
           "A list's entries without tangent are skipped instead of counted as zero.");
  wing.add("keeps_reduced_dims", "pt#191787", "prod", "gradients_have_input_types", keeps_reduced_dims,
           "A reduction's tangent keeps the dims that its value drops.");
  wing.add("one_copy_counts", "pt#8626 pt#8721", "expand", "vjp_is_adjoint", one_copy_counts,
           "Gradients of repeated elements are not added up.");
  wing.add(
      "silently_detached", "pt#62032 pt#43908", "flip", "vjp_equals_differences",
      [](Op& r) { r.vjp.clear(); }, "An operator without a derivative returns a constant.");
  wing.add("writes_cotangent", "mlx#941 mlx#955 mlx#3630", "neg", "pullbacks_repeat", writes_cotangent,
           "A backward kernel reuses the memory of the cotangent it was given.");
}

}  // namespace lamella::verify
