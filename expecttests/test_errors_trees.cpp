// Error texts of functions of trees: each names the place.
#include "refusal.h"

namespace test_errors_trees {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::expect;

struct Layer {
  Tensor weight, bias;
  LAMELLA_FIELDS(weight, bias)
};
struct Params {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> named;
  LAMELLA_FIELDS(layers, named)
};

Params params(DType dtype = DType::F64) {
  return {{{x23(), of({3})}, {x23(), zeros({3}, dtype)}}, {{"scale", of({2})}}};
}
Tensor loss(const Params& p, const Tensor& x) { return sum(p.layers[0].weight * x); }

TEST(TreeErrors, InDims) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { vmap(loss)(params(), x); }), R"(
      [mapped_size] vmap: args[0].layers[0].bias (f64[3]) has 3 lanes, args[0].layers[0].weight \
      (f64[2,3]) has 2; expected equal sizes)");
  EXPECT_INLINE(refused([&] {
                  vmap(loss, {1, 0})(params(), x);
                }),
                R"(
      [dim_out_of_range] vmap: in_dims = 1 is out of range for args[0].layers[0].bias (f64[3]); \
      expected -1 <= dim < 1)");
  EXPECT_INLINE(refused([&] {
                  vmap(loss, {{{kNone, {1, kNone}}, 0}, 0})(params(), x);
                }),
                R"(
      [mapped_size] vmap: args[0].named["scale"] (f64[2]) has 2 lanes, args[0].layers[1].weight \
      (f64[2,3]) has 3; expected equal sizes)");
  EXPECT_INLINE(refused([&] {
                  vmap(loss, {{0, 0, 0}, 0})(params(), x);
                }),
                R"(
      [mapped_size] vmap: in_dims for args[0] has size 3; expected 2, or one dim for all of it)");
  EXPECT_INLINE(refused([&] {
                  vmap(loss, {{{0}, 0}, 0})(params(), x);
                }),
                R"(
      [mapped_size] vmap: in_dims for args[0].layers has size 1; expected 2, or one dim for all of it)");
  EXPECT_INLINE(refused([&] {
                  vmap(loss, {kNone, {0, 1}})(params(), x);
                }),
                R"(
      [mapped_size] vmap: in_dims for args[1] (f64[2,3]) is a list; expected a dim or none)");
  EXPECT_INLINE(refused([&] { vmap(loss, kNone)(params(), x); }), R"(
      [mapped_size] vmap: no argument is mapped and no size is given; expected one of them)");
}

TEST(TreeErrors, OutDims) {
  const auto same = [](const Params& p, const Tensor&) { return p; };
  EXPECT_INLINE(refused(
                    [&] {
                      vmap(same, {kNone, 0}, {0, 0, 0})(params(), x23());
                    },
                    {x23()}),
                R"(
      [mapped_size] vmap: out_dims for result has size 3; expected 2, or one dim for all of it
        under: vmap#1 (size 2))");
  EXPECT_INLINE(refused(
                    [&] {
                      vmap(same, {kNone, 0}, {{0, {0, {0}}}, 0})(params(), x23());
                    },
                    {x23()}),
                R"(
      [mapped_size] vmap: out_dims for result.layers[1].bias (f64[3]) is a list; expected a dim or none
        under: vmap#1 (size 2))");
}

TEST(TreeErrors, WhatIsNotDifferentiable) {
  const Params p = params(DType::I64);
  EXPECT_INLINE(refused([&] { grad(loss)(p, x23()); }), R"(
      [dtype] grad: args[0].layers[1].bias is i64[3], expected floating point or complex)");
  EXPECT_INLINE(refused([&] {
                  grad<1>(loss)(p, ints({2}, {1, 2}));
                }),
                R"(
      [dtype] grad: args[1] is i64[2], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { vjp(loss, p, x23()); }), R"(
      [dtype] vjp: args[0].layers[1].bias is i64[3], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { jvp(loss, std::tuple(p, x23()), std::tuple(p, x23())); }), R"(
      [dtype] jvp: tangents[0].layers[1].bias is i64[3], expected floating point or complex)");
}

TEST(TreeErrors, TreesThatDoNotFit) {
  const auto same = [](const Params& p, const Tensor&) { return p; };
  const auto pullback = vjp(same, params(), x23()).pullback;
  Params u = params();
  u.layers[1].weight = of({2});
  EXPECT_INLINE(refused([&] { pullback(u); }), R"(
      [shape] pullback: cotangent.layers[1].weight is f64[2], expected f64[2,3])");
  u.layers.pop_back();
  EXPECT_INLINE(refused([&] { pullback(u); }), R"(
      [shape] tree: cotangent.layers has size 1, expected 2 as the tree beside it)");
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  EXPECT_INLINE(refused([&] { tree_map(add, params(), u); }), R"(
      [shape] tree: tree.layers has size 1, expected 2 as the tree beside it)");
  u = params();
  u.named["shift"] = of({2});
  EXPECT_INLINE(refused([&] { tree_map(add, params(), u); }), R"(
      [shape] tree: tree.named has the key "shift", which the tree beside it has not; expected its keys)");
  EXPECT_INLINE(refused([&] { tree_map(add, u, params()); }), R"(
      [shape] tree: tree.named has no key "shift"; expected the keys of the tree beside it)");
  EXPECT_INLINE(refused([&] { tree_map(add, std::optional(x23()), std::optional<Tensor>()); }), R"(
      [shape] tree: tree has size 0, expected 1 as the tree beside it)");
  EXPECT_INLINE(refused([&] { tree_unflatten({x23()}, params()); }), R"(
      [shape] tree_unflatten: got 1 leaves, expected 5)");
  EXPECT_INLINE(refused([&] { jvp(loss, std::tuple(params(), x23()), std::tuple(params(), of({3}))); }), R"(
      [shape] jvp: tangents[1] is f64[3], expected f64[2,3])");
}
}  // namespace
}  // namespace test_errors_trees
