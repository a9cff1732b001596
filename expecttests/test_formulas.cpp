// The derivative rules of all operators, as formulas.
#include <algorithm>

#include "lamella/dispatch/call.h"
#include "lamella/ops/all.h"

#include "expect.h"
#include "formula.h"

namespace {
using namespace lamella;

std::string formulas_of(std::initializer_list<ShapeClass> shapes) {
  std::vector<const Op*> ops;
  for (const Op* op : OpTable::current().rows())
    if (op->form == OpForm::Functional && std::ranges::count(shapes, op->shape) && !op->has(kTestOnly))
      ops.push_back(op);
  return expect::formulas(ops);
}

TEST(Formulas, Broadcast) {
  EXPECT_INLINE(formulas_of({ShapeClass::Broadcast}), R"(
      exp
        jvp x: mul(t, result)
        vjp x: mul(ct, conj(result))
      expm1
        jvp x: mul(t, exp(x))
        vjp x: mul(ct, conj(exp(x)))
      exp2
        jvp x: mul(t, mul(result, 0.6931471805599453))
        vjp x: mul(ct, conj(mul(result, 0.6931471805599453)))
      log
        jvp x: mul(t, reciprocal(x))
        vjp x: mul(ct, conj(reciprocal(x)))
      log1p
        jvp x: mul(t, reciprocal(add(x, 1)))
        vjp x: mul(ct, conj(reciprocal(add(x, 1))))
      log2
        jvp x: mul(t, reciprocal(mul(x, 0.6931471805599453)))
        vjp x: mul(ct, conj(reciprocal(mul(x, 0.6931471805599453))))
      sqrt
        jvp x: mul(t, reciprocal(mul(2, result)))
        vjp x: mul(ct, conj(reciprocal(mul(2, result))))
      rsqrt
        jvp x: mul(t, mul(mul(mul(result, result), result), -0.5))
        vjp x: mul(ct, conj(mul(mul(mul(result, result), result), -0.5)))
      reciprocal
        jvp x: mul(t, neg(mul(result, result)))
        vjp x: mul(ct, conj(neg(mul(result, result))))
      sin
        jvp x: mul(t, cos(x))
        vjp x: mul(ct, conj(cos(x)))
      cos
        jvp x: mul(t, neg(sin(x)))
        vjp x: mul(ct, conj(neg(sin(x))))
      atan
        jvp x: mul(t, reciprocal(add(mul(x, x), 1)))
        vjp x: mul(ct, conj(reciprocal(add(mul(x, x), 1))))
      sinh
        jvp x: mul(t, cosh(x))
        vjp x: mul(ct, conj(cosh(x)))
      cosh
        jvp x: mul(t, sinh(x))
        vjp x: mul(ct, conj(sinh(x)))
      tanh
        jvp x: mul(t, sub(1, mul(result, result)))
        vjp x: mul(ct, conj(sub(1, mul(result, result))))
      asinh
        jvp x: mul(t, rsqrt(add(mul(x, x), 1)))
        vjp x: mul(ct, conj(rsqrt(add(mul(x, x), 1))))
      sigmoid
        jvp x: mul(t, mul(result, sigmoid(neg(x))))
        vjp x: mul(ct, conj(mul(result, sigmoid(neg(x)))))
      erf
        jvp x: mul(t, mul(exp(neg(mul(x, x))), 1.1283791670955126))
        vjp x: mul(ct, mul(exp(neg(mul(x, x))), 1.1283791670955126))
      erfc
        jvp x: mul(t, mul(exp(neg(mul(x, x))), -1.1283791670955126))
        vjp x: mul(ct, mul(exp(neg(mul(x, x))), -1.1283791670955126))
      neg (linear)
        jvp x: neg(t)
        vjp x: neg(ct)
      abs (has kinks)
        jvp x: real(mul(t, conj(sign(x))))
        vjp x: mul(ct, sign(x))
      relu (has kinks)
        jvp x: where(le(result, 0), zeros_like(t), t)
        vjp x: where(le(result, 0), zeros_like(ct), ct)
      sign (has kinks)
          v1 = div(sub(t, mul(result, real(mul(t, conj(result))))), where(eq(abs(x), 0), \
      ones_like(abs(x)), abs(x)))
        jvp x: where(eq(abs(x), 0), zeros_like(sub(t, mul(result, real(mul(t, conj(result)))))), v1)
          v2 = div(sub(ct, mul(result, real(mul(ct, conj(result))))), where(eq(abs(x), 0), \
      ones_like(abs(x)), abs(x)))
          v3 = zeros_like(sub(ct, mul(result, real(mul(ct, conj(result))))))
        vjp x: where(eq(abs(x), 0), v3, v2)
      square
        jvp x: mul(t, mul(x, 2))
        vjp x: mul(ct, conj(mul(x, 2)))
      add (linear)
        jvp a: t
        jvp b: mul(t, alpha)
        vjp a: ct
        vjp b: conj(mul(conj(ct), alpha))
      sub (linear)
        jvp a: t
        jvp b: mul(neg(t), alpha)
        vjp a: ct
        vjp b: neg(conj(mul(conj(ct), alpha)))
      mul
        jvp a: mul(t, b)
        jvp b: mul(t, a)
        vjp a: mul(ct, conj(b))
        vjp b: mul(ct, conj(a))
      div
        jvp a: div(t, b)
        jvp b: neg(mul(t, div(result, b)))
        vjp a: div(ct, conj(b))
        vjp b: neg(mul(ct, conj(div(result, b))))
      pow
          v1 = sub(where(logical_and(eq(a, 0), eq(b, 0)), ones_like(b), b), 1)
        jvp a: mul(t, mul(b, pow(a, v1)))
          v2 = where(logical_and(eq(a, 0), ge(real(b), 0)), ones_like(a), a)
        jvp b: mul(t, mul(pow(v2, b), log(v2)))
        vjp a: mul(ct, conj(mul(b, pow(a, v1))))
        vjp b: mul(ct, conj(mul(pow(v2, b), log(v2))))
      maximum (has kinks)
        jvp a: where(eq(a, b), mul(t, 0.5), where(lt(a, b), zeros_like(t), t))
        jvp b: where(eq(a, b), mul(t, 0.5), where(lt(b, a), zeros_like(t), t))
        vjp a: where(eq(a, b), mul(ct, 0.5), where(lt(a, b), zeros_like(ct), ct))
        vjp b: where(eq(a, b), mul(ct, 0.5), where(lt(b, a), zeros_like(ct), ct))
      minimum (has kinks)
        jvp a: where(eq(a, b), mul(t, 0.5), where(gt(a, b), zeros_like(t), t))
        jvp b: where(eq(a, b), mul(t, 0.5), where(gt(b, a), zeros_like(t), t))
        vjp a: where(eq(a, b), mul(ct, 0.5), where(gt(a, b), zeros_like(ct), ct))
        vjp b: where(eq(a, b), mul(ct, 0.5), where(gt(b, a), zeros_like(ct), ct))
      where (linear)
        jvp x: where(condition, t, zeros_like(t))
        jvp y: where(condition, zeros_like(t), t)
        vjp x: where(condition, ct, zeros_like(ct))
        vjp y: where(condition, zeros_like(ct), ct)
      clamp (has kinks)
          v1 = logical_and(logical_and(ge(x, min), le(x, max)), lt(min, max))
        jvp x: where(v1, t, zeros_like(t))
        jvp min: where(logical_and(lt(x, min), lt(min, max)), t, zeros_like(t))
        jvp max: where(logical_or(gt(x, max), le(max, min)), t, zeros_like(t))
        vjp x: where(v1, ct, zeros_like(ct))
        vjp min: where(logical_and(lt(x, min), lt(min, max)), ct, zeros_like(ct))
        vjp max: where(logical_or(gt(x, max), le(max, min)), ct, zeros_like(ct))
      eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_not, isnan
        none, piecewise constant: bool result
      conj_physical (linear)
        jvp x: conj_physical(t)
        vjp x: conj(ct)
      complex (linear)
        jvp real: complex(t, zeros_like(t))
        jvp imag: complex(zeros_like(t), t)
        vjp real: real(ct)
        vjp imag: imag(ct)
      zeros_like, ones_like, empty_like, full_like
        none, the result does not depend on any element
      fold_in
        none, random numbers do not depend on differentiable inputs
      clone (linear)
        jvp x: clone(t)
        vjp x: ct
      copy
        jvp src: t
        vjp src: ct
      fill, floor, ceil, round, trunc
        jvp x: zeros_like(t)
        vjp x: zeros_like(ct)
      to
        jvp x: to(t, dtype)
        vjp x: ct
      to_device (linear)
        jvp x: to_device(t, device)
        vjp x: ct
      frac
        jvp x: t
        vjp x: ct
      fmod
        jvp a: t
        jvp b: neg(mul(t, trunc(div(a, b))))
        vjp a: ct
        vjp b: neg(mul(ct, trunc(div(a, b))))
      remainder
        jvp a: t
        jvp b: neg(mul(t, floor(div(a, b))))
        vjp a: ct
        vjp b: neg(mul(ct, floor(div(a, b))))
      atan2
          v1 = where(eq(hypot(y, x), 0), ones_like(hypot(y, x)), hypot(y, x))
        jvp y: mul(t, div(div(x, v1), v1))
        jvp x: mul(t, neg(div(div(y, v1), v1)))
        vjp y: mul(ct, div(div(x, v1), v1))
        vjp x: mul(ct, neg(div(div(y, v1), v1)))
      hypot
        jvp a: mul(t, div(a, where(eq(result, 0), ones_like(result), result)))
        jvp b: mul(t, div(b, where(eq(result, 0), ones_like(result), result)))
        vjp a: mul(ct, div(a, where(eq(result, 0), ones_like(result), result)))
        vjp b: mul(ct, div(b, where(eq(result, 0), ones_like(result), result)))
      logaddexp
          v1 = where(logical_and(eq(a, b), ne(sub(a, b), sub(a, b))), zeros_like(sub(a, b)), sub(a, b))
        jvp a: mul(t, sigmoid(v1))
          v2 = where(logical_and(eq(b, a), ne(sub(b, a), sub(b, a))), zeros_like(sub(b, a)), sub(b, a))
        jvp b: mul(t, sigmoid(v2))
        vjp a: mul(ct, sigmoid(v1))
        vjp b: mul(ct, sigmoid(v2))
      xlogy
        jvp x: mul(t, log(where(logical_and(eq(x, 0), le(y, 0)), ones_like(y), y)))
          v1 = div(x, where(logical_and(eq(x, 0), eq(y, 0)), ones_like(y), y))
        jvp y: mul(t, v1)
        vjp x: mul(ct, log(where(logical_and(eq(x, 0), le(y, 0)), ones_like(y), y)))
        vjp y: mul(ct, v1)
      )");
}
TEST(Formulas, Reduce) {
  EXPECT_INLINE(formulas_of({ShapeClass::Reduce}), R"(
      sum (linear)
        jvp x: sum(t, dim, true, dtype)
        vjp x: expand(ct, x.sizes)
      prod
          v1 = slice(flip(reshape(permute(x, [0]), x.sizes), [-1]), -1, 0, 1)
          v2 = slice(cumprod(flip(reshape(permute(x, [0]), x.sizes), [-1]), -1), -1, 0, 1)
          v3 = ones_like(slice(reshape(permute(x, [0]), x.sizes), -1, 0, 1))
          v4 = slice(cumprod(reshape(permute(x, [0]), x.sizes), -1), -1, 0, 1)
          v5 = mul(cat([v3, v4], -1), flip(cat([ones_like(v1), v2], -1), [-1]))
        jvp x: sum(mul(t, permute(reshape(v5, x.sizes), [0])), [0], true)
        vjp x: mul(ct, conj(permute(reshape(v5, x.sizes), [0])))
      amax, amin (has kinks)
          v1 = div(to(eq(x, unsqueeze(unsqueeze(result, 0), 1)), x.dtype), sum(eq(x, \
      unsqueeze(unsqueeze(result, 0), 1)), [0,1], true))
        jvp x: sum(mul(t, v1), [0,1])
        vjp x: mul(unsqueeze(unsqueeze(ct, 0), 1), v1)
      logsumexp
          v1 = div(exp(sub(x, detach(amax(x, [0,1], true)))), sum(exp(sub(x, detach(amax(x, [0,1], \
      true)))), [0,1], true))
        jvp x: sum(mul(t, v1), [0,1])
        vjp x: mul(unsqueeze(unsqueeze(ct, 0), 1), v1)
      argmax
        none, the result is an index
      )");
}
TEST(Formulas, AlongDim) {
  EXPECT_INLINE(formulas_of({ShapeClass::AlongDim}), R"(
      cumsum (linear)
        jvp x: cumsum(t, dim, dtype)
        vjp x: flip(cumsum(flip(ct, [0]), dim), [0])
      cumprod
          v1 = cat([ones_like(slice(result, dim, 0, 1)), slice(result, dim, 0, 1)], dim)
          v2 = add(slice(mul(v1, t), dim, 1, 2), mul(slice(x, dim, 1), slice(mul(v1, t), dim, 0, 1)))
        jvp x: cat([slice(mul(v1, t), dim, 0, 1), v2], dim)
          v3 = mul(flip(slice(conj(x), dim, 1), [0]), slice(flip(ct, [0]), dim, 0, 1))
          v4 = cat([slice(flip(ct, [0]), dim, 0, 1), add(slice(flip(ct, [0]), dim, 1, 2), v3)], dim)
          v5 = cat([ones_like(slice(conj(result), dim, 0, 1)), slice(conj(result), dim, 0, 1)], dim)
        vjp x: mul(v5, flip(v4, [0]))
      cummax, sort (has kinks)
        jvp x: gather(t, dim, result1)
        vjp x: scatter_add(zeros_like(ct), dim, result1, ct)
      softmax
        jvp x: sub(mul(t, result), mul(result, sum(mul(t, result), [-2], true)))
        vjp x: sub(mul(ct, result), mul(result, sum(mul(ct, result), [-2], true)))
      log_softmax
        jvp x: sub(t, sum(mul(exp(result), t), [-2], true))
        vjp x: sub(ct, mul(exp(result), sum(ct, [-2], true)))
      flip (linear)
        jvp x: flip(t, dims)
        vjp x: flip(ct, dims)
      select_scatter (linear)
        jvp x: select_scatter(t, new_zeros(t, src.sizes), dim, index)
        jvp src: select_scatter(new_zeros(t, x.sizes), t, dim, index)
        vjp x: select_scatter(ct, new_zeros(ct, src.sizes), dim, index)
        vjp src: select(ct, dim, index)
      slice_scatter (linear)
        jvp x: slice_scatter(t, new_zeros(t, x.sizes), dim, step=step)
        jvp src: slice_scatter(new_zeros(t, src.sizes), t, dim, step=step)
        vjp x: slice_scatter(ct, new_zeros(ct, x.sizes), dim, step=step)
        vjp src: slice(ct, dim, step=step)
      diagonal_scatter (linear)
        jvp x: diagonal_scatter(t, new_zeros(t, src.sizes), offset, dim1, dim2)
        jvp src: diagonal_scatter(new_zeros(t, x.sizes), t, offset, dim1, dim2)
        vjp x: diagonal_scatter(ct, new_zeros(ct, src.sizes), offset, dim1, dim2)
        vjp src: diagonal(ct, offset, dim1, dim2)
      )");
}
TEST(Formulas, Contract) {
  EXPECT_INLINE(formulas_of({ShapeClass::Contract}), R"(
    mm
      jvp a: mm(t, b)
      jvp b: mm(a, t)
      vjp a: mm(ct, conj(transpose(b, -2, -1)))
      vjp b: mm(conj(transpose(a, -2, -1)), ct)
    bmm
      jvp a: bmm(t, b)
      jvp b: bmm(a, t)
      vjp a: bmm(ct, conj(transpose(b, -2, -1)))
      vjp b: bmm(conj(transpose(a, -2, -1)), ct)
    mv
      jvp a: mv(t, v)
      jvp v: mv(a, t)
      vjp a: mul(unsqueeze(ct, 1), unsqueeze(conj(v), 0))
      vjp v: mv(conj(transpose(a, -2, -1)), ct)
    )");
}
TEST(Formulas, View) {
  EXPECT_INLINE(formulas_of({ShapeClass::View}), R"(
    real_part (linear)
      jvp x: real_part(t)
      vjp x: complex(ct, zeros_like(ct))
    imag (linear)
      jvp x: imag(t)
      vjp x: complex(zeros_like(ct), ct)
    view (linear)
      jvp x: reshape(t, size)
      vjp x: reshape(ct, x.sizes)
    expand (linear)
      jvp x: expand(t, size)
      vjp x: sum_to_size(ct, x.sizes)
    squeeze (linear)
      jvp x: squeeze(t)
      vjp x: reshape(ct, x.sizes)
    unsqueeze (linear)
      jvp x: unsqueeze(t, dim)
      vjp x: squeeze(ct, [2])
    permute (linear)
      jvp x: permute(t, dims)
      vjp x: permute(ct, dims)
    transpose (linear)
      jvp x: transpose(t, dim0, dim1)
      vjp x: transpose(ct, dim0, dim1)
    select (linear)
      jvp x: select(t, dim, index)
      vjp x: select_scatter(new_zeros(ct, x.sizes), ct, dim, index)
    slice (linear)
      jvp x: slice(t, dim, end=end, step=step)
      vjp x: slice_scatter(new_zeros(ct, x.sizes), ct, dim, end=end, step=step)
    diagonal (linear)
      jvp x: diagonal(t, offset, dim1, dim2)
      vjp x: diagonal_scatter(new_zeros(ct, x.sizes), ct, offset, dim1, dim2)
    detach
      none, it cuts derivatives off
    )");
}
TEST(Formulas, Index) {
  EXPECT_INLINE(formulas_of({ShapeClass::Index}), R"(
      gather (linear)
        jvp x: gather(t, dim, index)
        vjp x: scatter_add(new_zeros(ct, x.sizes), dim, index, ct)
      scatter_add (linear)
        jvp x: t
        jvp src: scatter_add(new_zeros(t, x.sizes), dim, index, t)
        vjp x: ct
        vjp src: slice_scatter(new_zeros(gather(ct, dim, index), src.sizes), gather(ct, dim, index), 1, \
      0, 1)
      index_select (linear)
        jvp x: index_select(t, dim, index)
        vjp x: index_add(new_zeros(ct, x.sizes), dim, index, ct)
      index_add (linear)
        jvp x: t
        jvp src: index_add(new_zeros(t, x.sizes), dim, index, t, alpha)
        vjp x: ct
        vjp src: reshape(mul(index_select(ct, dim, index), 2.5-1j), src.sizes)
      )");
}
TEST(Formulas, Linalg) {
  EXPECT_INLINE(formulas_of({ShapeClass::Linalg}), R"(
      tril (linear)
        jvp x: tril(t, diagonal)
        vjp x: tril(ct, diagonal)
      triu (linear)
        jvp x: triu(t, diagonal)
        vjp x: triu(ct, diagonal)
      linalg_cholesky
          v1 = linalg_solve_triangular(conj(transpose(result, -2, -1)), linalg_solve_triangular(result, \
      t, false), true, false)
          v2 = add(tril(add(v1, conj(transpose(v1, -2, -1)))), tril(add(v1, conj(transpose(v1, -2, \
      -1))), -1))
        jvp x: matmul(result, mul(0.25, v2))
          v3 = add(tril(matmul(conj(transpose(result, -2, -1)), ct)), \
      tril(matmul(conj(transpose(result, -2, -1)), ct), -1))
          v4 = linalg_solve_triangular(conj(transpose(result, -2, -1)), mul(0.25, add(v3, \
      conj(transpose(v3, -2, -1)))), true)
        vjp x: linalg_solve_triangular(result, v4, false, false)
      cholesky
        by composition
      linalg_solve_triangular
        jvp A: neg(linalg_solve_triangular(A, matmul(tril(t), result), false))
        jvp B: linalg_solve_triangular(A, t, false)
          v1 = linalg_solve_triangular(conj(transpose(A, -2, -1)), ct, true)
        vjp A: sum_to_size(tril(neg(matmul(v1, conj(transpose(result, -2, -1))))), A.sizes)
        vjp B: sum_to_size(v1, B.sizes)
      )");
}
TEST(Formulas, Composite) {
  EXPECT_INLINE(formulas_of({ShapeClass::Composite}), R"(
      conj, real, matmul, outer, dot, reshape, stack, split, split_with_sizes, contiguous, layer_norm, \
      native_layer_norm, var, addcmul, lerp, softplus
        by composition
      mean, sum_to_size, roll (linear)
        by composition
      split_key
        none, keys are integers
      )");
}
TEST(Formulas, Other) {
  EXPECT_INLINE(
      formulas_of({ShapeClass::Other, ShapeClass::Factory, ShapeClass::Random, ShapeClass::Dynamic}),
      R"(
      cat (linear)
        jvp tensors: cat([t], dim)
        vjp tensors: slice(ct, dim, 0, 2)
      nonzero
        none, indices are piecewise constant
      zeros, ones, full, arange, eye, new_zeros, new_full
        none, the result does not depend on any element
      empty
        by composition
      rand, randn
        none, random numbers do not depend on differentiable inputs
      )");
}
}  // namespace
