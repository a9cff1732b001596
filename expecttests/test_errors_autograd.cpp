// Texts of what base autograd refuses: writes that cannot be followed, hooks, gradients of several roots; and
// the parts of tensors that its histories are made of.
#include <cmath>
#include <sstream>

#include "refusal.h"

namespace lamella::expect {
namespace test_errors_autograd {
namespace {

const DType kF64 = DType::F64;
Tensor leaf_of(const Tensor& x) { return requires_grad(clone(x)); }

TEST(AutogradErrors, WritesThatCannotBeFollowed) {
  const Tensor leaf = leaf_of(x23()), shown = select(leaf, 0, 0);
  EXPECT_INLINE(refused([&] { mul_(leaf, x23()); }, {leaf}), R"(
      [value] mul: a is f64[2,3], a leaf that requires grad; expected a result: write to a clone of it, \
      or under NoGrad)");
  EXPECT_INLINE(refused([&] { fill_(shown, 0); }, {leaf}), R"(
      [value] fill: x is f64[3], a view of a leaf that requires grad; expected a result: write to a \
      clone of the leaf, or under NoGrad)");
  const Tensor x = leaf_of(of({3, 2})), gaps = detach(transpose(clone(x23()), 0, 1));
  mul_(gaps, x);
  const Tensor row = select(gaps, 0, 0);
  EXPECT_INLINE(refused([&] { fill_(row, 0); }, {x}), R"(
      [value] fill: x is f64[2], a view of a tensor that carries derivatives and has gaps between its \
      elements; expected one without: write to a clone of it)");
  EXPECT_INLINE(refused([&] { make_view(x, IntArg{3}, IntArg{1}, 0); }, {x}), R"(
      [usage] view: f64[3,2] requires grad carries derivatives, which strides alone would lose; \
      expected a plain tensor: call a view operator, or detach it first)");
}

TEST(AutogradErrors, Leaves) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = leaf * leaf, part = select(x, 0, 0);
  EXPECT_INLINE(refused([] { requires_grad_(Tensor()); }), R"(
      [undefined] requires_grad_: x is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { requires_grad_(y); }, {leaf}), R"(
      [value] requires_grad_: x is f64[2,3] and carries derivatives of other tensors; expected a plain \
      tensor: detach it first)");
  EXPECT_INLINE(refused([&] { requires_grad_(part); }, {x}), R"(
      [value] requires_grad_: x is f64[3], a view, or has views, that would not follow; expected a tensor \
      without: call requires_grad before viewing)");
  EXPECT_INLINE(refused([] { version_of(Tensor()); }), R"(
      [level] version_of: x has no memory of its own; expected a plain tensor)");
  EXPECT_INLINE(refused([&] { grad_of(y); }, {leaf}), R"(
      [usage] grad_of: x is f64[2,3], which has no gradient of its own; expected a leaf that requires \
      grad, or a tensor given to retain_grad)");
}

TEST(AutogradErrors, Roots) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = sum(leaf);
  EXPECT_INLINE(refused(
                    [&] {
                      backward(Tensors{y, y}, {of({})});
                    },
                    {leaf}),
                R"(
      [shape] backward: got 1 cotangents for 2 roots; expected as many, or none)");
  EXPECT_INLINE(refused([&] { backward(Tensors{Tensor()}); }), R"(
      [undefined] backward: root is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { autograd::grad({y}, {x}); }, {x}), R"(
      [not_differentiable] autograd::grad: inputs is f64[2,3], which does not require grad; expected one \
      that does)");
  const Tensor other = leaf_of(x23());
  EXPECT_INLINE(refused([&] { autograd::grad({y}, {other}); }, {leaf}), R"(
      [not_differentiable] autograd::grad: no output depends on input 0: f64[2,3]; expected one that \
      does, or allow_unused)");
}

TEST(AutogradErrors, Hooks) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = leaf * leaf, z = sum(y);
  EXPECT_INLINE(refused([&] { add_hook(x, [](const Tensor& g) { return g; }); }, {x}), R"(
      [not_differentiable] add_hook: x is f64[2,3], which does not require grad; expected a tensor that \
      does)");
  EXPECT_INLINE(refused([&] { add_accumulated_hook(y, [](const Tensor&) {}); }, {leaf}), R"(
      [usage] add_accumulated_hook: leaf is f64[2,3], no leaf; expected one that requires grad)");
  EXPECT_INLINE(refused([&] { add_node_hook(leaf, {}); }, {leaf}), R"(
      [usage] add_node_hook: x is f64[2,3], a leaf; expected the result of an operator)");
  HookHandle writes = add_hook(y, [](const Tensor& g) { return mul_(g, 2); });
  EXPECT_INLINE(refused([&] { backward(sum(y * y)); }, {leaf}), R"(
      [value] backward: a hook of a tensor wrote to a cotangent, f64[2,3]; expected it to return a \
      clone)");
  writes.remove();
  Pullback pulled = vjp([](const Tensors& a) { return Tensors{a[0] * 2}; }, {of({2})}).pullback;
  const Pullback taken = std::move(pulled);
  EXPECT_INLINE(refused([&] { pulled({of({2})}); }), R"(
      [usage] pullback: it was moved from, or has run for the last time (std::move); expected a copy)");
  HookHandle shape = add_hook(y, [](const Tensor&) { return of({2}); });
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), R"(
      [shape] backward: a hook of a tensor returned f64[2], expected f64[2,3], or nothing)");
  shape.remove();
  HookHandle device = add_hook(y, [](const Tensor& g) { return to_device(g, Device::Reference); });
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), R"(
      [device] backward: a hook of a tensor returned a tensor on reference, expected cpu)");
  device.remove();
  HookHandle count = add_node_hook(y, {.before = [](const Tensors&) { return Tensors(3); }});
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), R"(
      [shape] backward: a hook before a node returned 3 tensors, expected 1, or none)");
  count.remove();
}

TEST(AutogradErrors, InferenceTensors) {
  const Tensor leaf = leaf_of(x23());
  Tensor c;
  {
    const InferenceMode on;
    c = clone(x23());
  }
  EXPECT_INLINE(refused([] { is_inference(Tensor()); }), R"(
      [undefined] is_inference: x is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { mul(leaf, c); }, {leaf, c}), R"(
      [value] mul: f64[2,3] was made in inference mode and would be saved for backward; expected a clone \
      of it made outside)");
  EXPECT_INLINE(refused([&] { add_(c, leaf); }, {leaf, c}), R"(
      [value] add: a is f64[2,3], made in inference mode, and would get derivatives; expected a clone of \
      it made outside)");
  EXPECT_INLINE(refused([&] { requires_grad(c); }, {c}), R"(
      [value] requires_grad: x is f64[2,3], made in inference mode; expected one that was not: clone it \
      outside)");
}

/// Without the lines of source, which say where this program was compiled.
std::string without_lines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  bool told = false;
  for (std::string line; std::getline(lines, line);) {
    const bool place = line.starts_with("    ");
    if (!place || !told) out += (out.empty() ? "" : "\n") + (place ? "    (lines)" : line);
    told = place;
  }
  return out;
}

TEST(AutogradErrors, AnomalyMode) {
  const Tensor x = clone(x23()), leaf = leaf_of(zeros({3}, DType::F64));
  const UnaryFunction norm = [](const Tensor& t) { return sum(sqrt(t * t)); };
  const UnaryFunction norms = [&](const Tensor& t) { return sum(vmap(norm)(t)); };
  const Function tuple = [&](const Tensors& xs) { return Tensors{norm(xs[0])}; };
  const Tensor zero = zeros({3}, DType::F64), rows = zeros({2, 3}, DType::F64);
  const AnomalyMode on;
  EXPECT_INLINE(without_lines(refused([&] { log(neg(x)); }, {x})), R"(
      [value] log: gave NaN at [0, 0] of f64[2,3], from arguments without; expected none, called at
          (lines))");
  EXPECT_INLINE(without_lines(refused([&] { backward(norm(leaf)); }, {leaf})), R"(
      [value] backward: the formula of mul for a gave NaN at [0] of f64[3], from cotangents without; \
      expected none
        mul was recorded by base autograd, called at
          (lines))");
  EXPECT_INLINE(without_lines(refused([&] { vmap(grad(norm))(rows); })), R"(
      [value] backward: the formula of mul for a gave NaN at [0] of f64[3], in lane 0 of vmap#1, from \
      cotangents without; expected none
        mul was recorded by grad#2, called at
          (lines)
        under: vmap#1 (size 2))");
  EXPECT_INLINE(without_lines(refused([&] { grad(norms)(rows); })), R"(
      [value] backward: the formula of mul for a gave NaN at [0, 0] of f64[2,3], in lane 0 of vmap#2, \
      from cotangents without; expected none
        mul was recorded by grad#1, called at
          (lines))");
  EXPECT_INLINE(without_lines(refused([&] { jvp(tuple, {zero}, {zero + 1.0}); })), R"(
      [value] sqrt: gave NaN in the tangent at jvp#1, at [0] of f64[3], by mul, from arguments without; \
      expected none, called at
          (lines)
        under: jvp#1)");
  EXPECT_INLINE(without_lines(refused([&] { backward(leaf, full({3}, std::nan(""), DType::F64)); }, {leaf})),
                R"(
      [value] backward: a cotangent of a leaf is NaN at [0] of f64[3], and no formula gave it; expected \
      none: it was passed in, or came from a hook, or from inf - inf where cotangents meet)");
  const Tensor y = leaf + 1.0, z = y * y;
  add_(y, ones({3}, DType::F64));
  EXPECT_INLINE(without_lines(refused([&] { backward(sum(z)); }, {leaf})), R"(
      [value] backward: a value that mul saved was written in place later: version 1, expected 0; clone \
      it first; it was written by add_, called at
          (lines)
        mul was recorded by base autograd, called at
          (lines))");
}

TEST(StridedErrors, Parts) {
  const Tensor x = x23();
  EXPECT_INLINE(refused(
                    [&] {
                      strided_copy(x, {2}, {1, 1}, 0, DType::F64);
                    },
                    {x}),
                R"(
      [shape] strided_copy: size has 1 entries and stride 2, expected as many of each)");
  EXPECT_INLINE(refused([&] { strided_copy(x, {2}, {-1}, 0, DType::F64); }, {x}), R"(
      [shape] strided_copy: size = [2], stride = [-1]; expected no negative)");
  EXPECT_INLINE(refused([&] { strided_copy(x, {4}, {2}, 0, DType::F64); }, {x}), R"(
      [storage] strided_copy: size = [4], stride = [2], offset = 0 for x: f64[2,3]; expected to stay \
      within its 6 elements)");
  EXPECT_INLINE(refused([&] { strided_copy(x, {2}, {1}, 0, DType::I64); }, {x}), R"(
      [dtype] strided_copy: dtype = i64 for a part of x: f64[2,3]; expected its dtype or a real one)");
}

}  // namespace
}  // namespace test_errors_autograd
}  // namespace lamella::expect
