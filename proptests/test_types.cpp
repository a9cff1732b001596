// Types of tensors that users bring: several in one call, under every level, under base autograd, beyond
// scopes.
#include <gtest/gtest.h>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/types.h"
#include "lamella/ops/layout.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;

std::string asked;  ///< types in the order in which they were

/// A number tensor under another key.
struct Boxed : TensorLayout {
  const Tensor number;
  Boxed(int key, Tensor n) : TensorLayout(key), number(std::move(n)) {}
};
Tensor box(int key, const Tensor& number) {
  return make_of_layout(number.sizes(), number.dtype(), number.device(),
                        Ref<TensorLayout>::adopt(new Boxed(key, number)));
}
Tensor number_of(const Tensor& t) {
  const TensorImpl* const impl = t.impl();
  return impl && impl->layout ? static_cast<const Boxed*>(impl->layout)->number : t;
}
/// Runs the operator on numbers and boxes what it gives.
void on_numbers(Frame& f, int key) {
  FrameCopy numbers(f);
  for_each_tensor(f, [&](const Tensor& t, int i, int k) { numbers.set(i, k, number_of(t)); });
  Frame lower = numbers.into(f.results, f.list);
  call(lower);
  if (f.op->form == OpForm::Functional)
    for (int k = 0; k < f.op->schema.n_results; ++k) f.results[k] = box(key, f.results[k]);
}

bool takes_all(Frame& f, int key) {
  asked += std::string(type_name(key)) + " ";
  on_numbers(f, key);
  return true;
}
/// Not sums.
bool takes_products(Frame& f, int key) {
  asked += std::string(type_name(key)) + " ";
  if (f.op->base->name != "mul") return false;
  on_numbers(f, key);
  return true;
}
bool takes_nothing(Frame&, int key) {
  asked += std::string(type_name(key)) + " ";
  return false;
}

/// Registered once, for good.
struct Types {
  int parent = add_tensor_type({.name = "parent", .handle = takes_all});
  int child = add_tensor_type({.name = "child", .handle = takes_products, .derives_from = parent});
  int other = add_tensor_type({.name = "other", .handle = takes_nothing});
  int third = add_tensor_type({.name = "third", .handle = takes_nothing});
  int scaled = add_tensor_type({.name = "scaled", .handle = takes_all});
};
const Types& types() {
  static const Types all;
  return all;
}

TEST(SeveralTypes, TheDerivedOneIsAskedFirstWhereverItStands) {
  const Tensor p = box(types().parent, f64({2, 3})), c = box(types().child, f64({5, 7}));
  for (const auto& [a, b] : {std::pair(p, c), std::pair(c, p)}) {
    asked.clear();
    const Tensor y = mul(a, b);
    EXPECT_EQ(asked, "child ");
    EXPECT_EQ(layout_of(y), "child");
    EXPECT_EQ(number_of(y).to_vector(), (std::vector<double>{10, 21}));
  }
}

TEST(SeveralTypes, NotMinePassesOn) {
  const Tensor p = box(types().parent, f64({2, 3})), c = box(types().child, f64({5, 7}));
  for (const auto& [a, b] : {std::pair(p, c), std::pair(c, p)}) {
    asked.clear();
    const Tensor y = add(a, b);
    EXPECT_EQ(asked, "child parent ");
    EXPECT_EQ(layout_of(y), "parent");
    EXPECT_EQ(number_of(y).to_vector(), (std::vector<double>{7, 10}));
  }
  asked.clear();
  const Tensor o = box(types().other, f64({1, 1}));
  EXPECT_EQ(number_of(cat({c, o, p})).to_vector(), (std::vector<double>{5, 7, 1, 1, 2, 3}));
  EXPECT_EQ(asked, "other child parent ");
}

TEST(SeveralTypes, WhenAllDeclineTheErrorNamesThem) {
  const Tensor c = box(types().child, f64({5, 7})), o = box(types().other, f64({1, 1})),
               t = box(types().third, f64({1, 1}));
  EXPECT_REFUSED(cat({c, t, o}),
                 "no_kernel: cat: no type of its arguments takes the call: third, other, child; expected");
  EXPECT_REFUSED(add(f64({1, 2}), o), "takes the call: other; expected");
  EXPECT_REFUSED(vmap([&](const Tensor& x) { return x + o; })(f64({2, 2}, {1, 2, 3, 4})), "other; expected");
}

TEST(SeveralTypes, AnOperatorOfATypesOwnIsAskedBeforeItsHandle) {
  const OpTable* const before = &OpTable::current();
  OpTable::set("mul", types().parent, {"own", [](Frame& f, int) { f.results[0] = f64({9, 9}); }});
  OpTable::set("layer_norm", types().parent, {"own", [](Frame& f, int) { f.results[0] = f64({8, 8}); }});
  const Tensor p = box(types().parent, f64({2, 3}));
  asked.clear();
  EXPECT_EQ(mul(p, p).to_vector(), (std::vector<double>{9, 9}));
  EXPECT_EQ(call("layer_norm", {p, Dims{2}})[0].to_vector(), (std::vector<double>{8, 8}))
      << "composites, too";
  EXPECT_EQ(asked, "");
  EXPECT_EQ(number_of(neg(p)).to_vector(), (std::vector<double>{-2, -3}));
  EXPECT_EQ(asked, "parent ");
  OpTable::take_back(before);
}

Tensor cubes(const Tensor& x) { return sum(x * x * x); }
std::vector<double> boxed_values(const Tensor& t) {
  EXPECT_EQ(layout_of(t), "scaled");
  return number_of(t).to_vector();
}

/// d x^3 = 3 x^2 and 6 x, of 1, 2, 3, by hand.
TEST(UnderLevels, GradJvpAndVmapSeeOrdinaryOperators) {
  const int key = types().scaled;
  const Tensor x = box(key, f64({1, 2, 3})), ones_of = box(key, f64({1, 1, 1}));
  const std::vector<double> first{3, 12, 27}, second{6, 12, 18};
  const UnaryFunction slope = grad(cubes);
  EXPECT_EQ(boxed_values(slope(x)), first);
  const auto along = [&](const Function& f) { return jvp(f, {x}, {ones_of}).tangents[0]; };
  EXPECT_EQ(boxed_values(along([](const Tensors& v) { return Tensors{v[0] * v[0] * v[0]}; })), first);
  EXPECT_EQ(boxed_values(along([&](const Tensors& v) { return Tensors{slope(v[0])}; })), second);
  EXPECT_EQ(boxed_values(grad([&](const Tensor& v) { return sum(slope(v)); })(x)), second);
}

TEST(UnderLevels, LanesOfAType) {
  const int key = types().scaled;
  const Tensor lanes = box(key, f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  const std::vector<double> first{3, 12, 27, 48, 75, 108};
  EXPECT_EQ(boxed_values(vmap([](const Tensor& v) { return cubes(v); })(lanes)),
            (std::vector<double>{36, 405}));
  EXPECT_EQ(boxed_values(vmap(grad(cubes))(lanes)), first);
  EXPECT_EQ(boxed_values(grad([](const Tensor& v) { return sum(vmap(UnaryFunction(cubes))(v)); })(lanes)),
            first);
  EXPECT_EQ(boxed_values(vmap(vmap([](const Tensor& v) { return v * v; }))(lanes)),
            (std::vector<double>{1, 4, 9, 16, 25, 36}));
  const Tensor captured = box(key, f64({10, 20, 30}));
  const Tensor plain = f64({2, 3}, {1, 1, 1, 2, 2, 2});
  EXPECT_EQ(boxed_values(vmap([&](const Tensor& v) { return v * captured; })(plain)),
            (std::vector<double>{10, 20, 30, 20, 40, 60}));
}

TEST(UnderBaseAutograd, LeavesAndGradientsAreOfTheType) {
  const Tensor leaf = requires_grad(box(types().scaled, f64({1, 2, 3})));
  const Tensor y = cubes(leaf);
  EXPECT_TRUE(is_grad_required(y));
  backward(y);
  EXPECT_EQ(boxed_values(grad_of(leaf)), (std::vector<double>{3, 12, 27}));
  backward(cubes(leaf));
  EXPECT_EQ(boxed_values(grad_of(leaf)), (std::vector<double>{6, 24, 54}));
  const Tensor twice = autograd::grad({cubes(leaf)}, {leaf}, {}, {.create_graph = true})[0];
  EXPECT_EQ(boxed_values(autograd::grad({sum(twice)}, {leaf})[0]), (std::vector<double>{6, 12, 18}));
}

/// No transform lives where it is made, nor where it is used, and it does not mind those in between.
TEST(Scopes, ATypedTensorOutlivesThem) {
  Tensor kept;
  {
    const Tensor x = f64({1, 2});
    vmap([&](const Tensor& v) {
      kept = box(types().scaled, x);
      return v;
    })(f64({2, 1}, {1, 2}));
  }
  EXPECT_EQ(boxed_values(kept * kept), (std::vector<double>{1, 4}));
  Tensor from_grad;
  grad([&](const Tensor& v) {
    from_grad = kept * 3;
    return sum(v);
  })(f64({1}));
  EXPECT_EQ(boxed_values(from_grad), (std::vector<double>{3, 6}));
}
}  // namespace
