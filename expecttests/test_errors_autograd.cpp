// Texts of what base autograd refuses: writes that cannot be followed, hooks, gradients of several roots; and the
// parts of tensors that its histories are made of.
#include "refusal.h"

namespace lamella::expect {
namespace test_errors_autograd {
namespace {

const DType kF64 = DType::F64;
Tensor leaf_of(const Tensor& x) { return requires_grad(clone(x)); }

TEST(AutogradErrors, WritesThatCannotBeFollowed) {
  const Tensor leaf = leaf_of(x23()), shown = select(leaf, 0, 0);
  EXPECT_INLINE(refused([&] { leaf.mul_(x23()); }, {leaf}), "");
  EXPECT_INLINE(refused([&] { shown.fill_(0); }, {leaf}), "");
  const Tensor x = leaf_of(of({3, 2})), gaps = detach(transpose(clone(x23()), 0, 1));
  gaps.mul_(x);
  const Tensor row = select(gaps, 0, 0);
  EXPECT_INLINE(refused([&] { row.fill_(0); }, {x}), "");
  EXPECT_INLINE(refused([&] { make_view(x, IntArg{3}, IntArg{1}, 0); }, {x}), "");
}

TEST(AutogradErrors, Leaves) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = leaf * leaf, part = select(x, 0, 0);
  EXPECT_INLINE(refused([] { requires_grad_(Tensor()); }), "");
  EXPECT_INLINE(refused([&] { requires_grad_(y); }, {leaf}), "");
  EXPECT_INLINE(refused([&] { requires_grad_(part); }, {x}), "");
  EXPECT_INLINE(refused([] { version_of(Tensor()); }), "");
  EXPECT_INLINE(refused([&] { grad_of(y); }, {leaf}), "");
}

TEST(AutogradErrors, Roots) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = sum(leaf);
  EXPECT_INLINE(refused([&] { backward(Tensors{y, y}, {of({})}); }, {leaf}), "");
  EXPECT_INLINE(refused([&] { backward(Tensors{Tensor()}); }), "");
  EXPECT_INLINE(refused([&] { autograd::grad({y}, {x}); }, {x}), "");
  const Tensor other = leaf_of(x23());
  EXPECT_INLINE(refused([&] { autograd::grad({y}, {other}); }, {leaf}), "");
}

TEST(AutogradErrors, Hooks) {
  const Tensor x = clone(x23()), leaf = leaf_of(x23()), y = leaf * leaf, z = sum(y);
  EXPECT_INLINE(refused([&] { add_hook(x, [](const Tensor& g) { return g; }); }, {x}), "");
  EXPECT_INLINE(refused([&] { add_accumulated_hook(y, [](const Tensor&) {}); }, {leaf}), "");
  EXPECT_INLINE(refused([&] { add_node_hook(leaf, {}); }, {leaf}), "");
  HookHandle shape = add_hook(y, [](const Tensor&) { return of({2}); });
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), "");
  shape.remove();
  HookHandle count = add_node_hook(y, {.before = [](const Tensors&) { return Tensors(3); }});
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), "");
  count.remove();
}

TEST(StridedErrors, Parts) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { strided_copy(x, {2}, {1, 1}, 0, DType::F64); }, {x}), "");
  EXPECT_INLINE(refused([&] { strided_copy(x, {2}, {-1}, 0, DType::F64); }, {x}), "");
  EXPECT_INLINE(refused([&] { strided_copy(x, {4}, {2}, 0, DType::F64); }, {x}), "");
  EXPECT_INLINE(refused([&] { strided_copy(x, {2}, {1}, 0, DType::I64); }, {x}), "");
}

}  // namespace
}  // namespace test_errors_autograd
}  // namespace lamella::expect
