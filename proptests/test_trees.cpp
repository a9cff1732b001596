// Trees: taken apart and put together, and transforms of functions of trees against those of lists.
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/verify/case/lanes.h"

namespace test_trees {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using verify::Agreement;
using verify::disagrees;

struct Layer {
  Tensor weight, bias;
  int kept = 0;  // no tensor: carried along
  LAMELLA_FIELDS(weight, bias, kept)
};
/// Members without names, by one `fields()` that is const.
struct Pairs {
  std::array<Tensor, 2> two;
  std::pair<Tensor, std::optional<Tensor>> rest;
  auto fields() const { return std::tie(two, rest); }
};
struct Net {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> named;
  std::tuple<Tensor, Pairs> more;
  auto fields() { return std::tie(layers, named, more); }
  static constexpr std::string_view field_names() { return "layers, named, more"; }
};

Tensor of(IntArg sizes, double first) {
  return reshape(arange(checked_numel(sizes, "of"), {}, {}, DType::F64) + first, sizes);
}
Net net() {
  const Pairs pairs{{of({2}, 5), of({3}, 6)}, {of({}, 7), of({1}, 8)}};
  return {{{of({2, 3}, 1), of({3}, 2), 11}, {of({3, 2}, 3), Tensor(), 12}},
          {{"b", of({2}, 10)}, {"a", of({4}, 9)}},
          {of({2, 2}, 4), pairs}};
}

TEST(Trees, LeavesInTheOrderTheyAreWritten) {
  EXPECT_EQ(tree_str(net(), "net"),
            "net.layers[0].weight: f64[2,3]\nnet.layers[0].bias: f64[3]\nnet.layers[1].weight: f64[3,2]\n"
            "net.layers[1].bias: undefined\nnet.named[\"a\"]: f64[4]\nnet.named[\"b\"]: f64[2]\n"
            "net.more[0]: f64[2,2]\nnet.more[1].fields[0][0]: f64[2]\nnet.more[1].fields[0][1]: f64[3]\n"
            "net.more[1].fields[1][0]: f64[]\nnet.more[1].fields[1][1]: f64[1]\n");
  EXPECT_EQ(tree_leaves(net()).size(), 11U);
  EXPECT_EQ(tree_leaves(std::vector<std::tuple<>>(3)).size(), 0U);
}

TEST(Trees, ComeBackFromTheirLeaves) {
  const Net from = net();
  Tensors leaves;
  for (const Tensor& t : tree_leaves(from)) leaves.push_back(t.defined() ? t * 2.0 : t);
  const Net to = tree_unflatten(leaves, from);
  const Net mapped = tree_map([](const Tensor& t) { return t * 2.0; }, from);
  for (const Net& n : {to, mapped}) {
    const Tensors got = tree_leaves(n);
    ASSERT_EQ(got.size(), leaves.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].defined(), leaves[i].defined());
      if (got[i].defined()) { EXPECT_EQ(disagrees(got[i], leaves[i], Agreement::Bitwise), ""); }
    }
    EXPECT_EQ(n.layers[1].kept, 12);
  }
  EXPECT_FALSE(tree_leaves(from)[0].is_same(leaves[0]));
}

TEST(Trees, SeveralAreMappedTogether) {
  const Net a = net(), sums = tree_map([](const Tensor&x, const Tensor&y) { return x + y; }, a, a);
  EXPECT_EQ(disagrees(sums.layers[0].weight, a.layers[0].weight * 2.0, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(sums.named.at("b"), a.named.at("b") * 2.0, Agreement::Bitwise), "");
}

/// Of everything in the tree, and of x.
Tensor loss(const Net& n, const Tensor& x) {
  Tensor out = sum(tanh(matmul(x, n.layers[0].weight) + n.layers[0].bias));
  for (const Tensor& t : tree_leaves(n))
    if (t.defined()) out = out + sum(sin(t) * t);
  return out;
}
/// The same of a list: the defined leaves, and x at the end.
Tensor loss_of_list(const Tensors& all) {
  Net n = net();
  size_t i = 0;
  n = tree_map([&](const Tensor&) { return all[i++]; }, n);
  return loss(n, all.back());
}
Tensors list_of(const Net& n, const Tensor& x) {
  Tensors out;
  for (const Tensor& t : tree_leaves(n))
    if (t.defined()) out.push_back(t);
  if (x.defined()) out.push_back(x);
  return out;
}
constexpr int kLeaves = 10;
std::vector<int> first(int n) {
  std::vector<int> out;
  for (int i = 0; i < n; ++i) out.push_back(i);
  return out;
}

TEST(TreeGrad, EqualsThatOfLists) {
  const Net n = net();
  const Tensor x = of({2}, 0.5);
  const ScalarFunction list = loss_of_list;
  const Tensors all = list_of(n, x), want = grad(list, first(kLeaves + 1))(all);
  EXPECT_EQ(disagrees(list_of(grad(loss)(n, x), {}), grad(list, first(kLeaves))(all), Agreement::Bitwise),
            "");
  EXPECT_EQ(disagrees(grad<1>(loss)(n, x), grad(list, {kLeaves})(all)[0], Agreement::Bitwise), "");
  const auto [by_n, by_x] = grad<0, -1>(loss)(n, x);
  EXPECT_EQ(disagrees(list_of(by_n, by_x), want, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(std::get<0>(grad<-1, 0>(loss)(n, x)), grad<1>(loss)(n, x), Agreement::Bitwise), "");
  EXPECT_FALSE(by_n.layers[1].bias.defined());
  EXPECT_EQ(by_n.layers[1].kept, 12);
  const auto [value, slope] = value_and_grad(loss)(n, x);
  EXPECT_EQ(disagrees(value, loss(n, x), Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(list_of(slope, {}), list_of(grad(loss)(n, x), {}), Agreement::Bitwise), "");
}

TEST(TreeGrad, HandsAuxThrough) {
  const auto f = [](const Layer& l, const Tensor& x) {
    const Tensor y = x * l.weight + l.bias;
    return std::pair(sum(y * y), Layer{y, Tensor(), 3});
  };
  const Layer l{of({2}, 1), of({2}, 3), 0};
  const Tensor x = of({2}, -1);
  const auto [slope, aux] = grad_has_aux(f)(l, x);
  EXPECT_EQ(disagrees(slope.bias, (x * l.weight + l.bias) * 2.0, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(aux.weight, x * l.weight + l.bias, Agreement::Bitwise), "");
  EXPECT_EQ(aux.kept, 3);
  const auto [value, slopes, more] = value_and_grad_has_aux<0, 1>(f)(l, x);
  EXPECT_EQ(disagrees(value, f(l, x).first, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(std::get<0>(slopes).bias, slope.bias, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(std::get<1>(slopes), l.weight * slope.bias, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(more.weight, aux.weight, Agreement::Bitwise), "");
  EXPECT_EQ(more.kept, 3);
}

TEST(VmapOptions, AreNamedWithoutTheirType) {
  const Function twice = [](const Tensors& a) { return Tensors{a[0] * 2}; };
  const Tensor x = of({3, 2}, 1), want = x * 2;
  for (const Function& f : {vmap(twice, {.chunk = 2}), vmap(twice, {.size = 3}), vmap(twice, {}),
                            vmap(twice, {.in_dims = {1}, .out_dims = {1}}), vmap(twice, {0}, {0}),
                            vmap(twice, {1}, {1}), vmap(twice, InDims{0})})
    EXPECT_EQ(disagrees(f({x})[0], want, Agreement::Bitwise), "");
}

TEST(TreeVmap, EqualsThatOfLists) {
  const Net n = net();
  const Tensor xs = of({5, 2}, 0.25);
  InDims dims(kLeaves, kNone);
  dims.push_back(0);
  const Tensors want =
      vmap(grad(ScalarFunction(loss_of_list), first(kLeaves)), dims, InDims{-1})(list_of(n, xs));
  const Net got = vmap(grad(loss), {kNone, 0}, -1)(n, xs);
  EXPECT_EQ(disagrees(list_of(got, {}), want, Agreement::Bitwise), "");
}

TEST(TreeVmap, DimsArePrefixes) {
  const auto f = [](const Layer& l, const Tensor& x) { return std::tuple(l.weight * x, l, sum(x)); };
  const Layer l{of({3, 2}, 1), of({2, 3}, 2), 5};
  const Tensor x = of({2}, 7);
  const auto [product, same, total] = vmap(f, {{0, 1, 0}, kNone}, {1, {0, -1, 0}, kNone})(l, x);
  EXPECT_EQ(disagrees(product, transpose(l.weight * x, 0, 1), Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(Tensors{same.weight, same.bias, total}, {l.weight, l.bias, sum(x)}, Agreement::Bitwise),
            "");
  EXPECT_EQ(same.kept, 5);
  const auto sums = vmap([](const Tensor& a, const Tensor& b) { return a + b; })(of({4}, 0), of({4, 2}, 1));
  EXPECT_EQ(type_str(sums), "f64[4,2]");
}

TEST(TreeVjp, IsTheAdjointOfJvp) {
  const auto f = [](const Layer& l, const Tensor& x) {
    return std::map<std::string, Tensor>{{"y", tanh(x * l.weight)}, {"z", l.bias * l.bias + x}};
  };
  const Layer l{of({2}, 1), of({2}, 3), 4}, dl{of({2}, -2), of({2}, 1), 4};
  const Tensor x = of({2}, 0.5), dx = of({2}, 2);
  const auto forward = jvp(f, std::tuple(l, x), std::tuple(dl, dx));
  const auto [value, pullback] = vjp(f, l, x);
  EXPECT_EQ(disagrees(tree_leaves(value), tree_leaves(forward.value), Agreement::Bitwise), "");
  const std::map<std::string, Tensor> u{{"y", of({2}, 4)}, {"z", of({2}, -1)}};
  const auto dot = [](const auto& a, const auto& b) {
    double total = 0;
    const Tensors ys = tree_leaves(b);
    size_t i = 0;
    for (const Tensor& t : tree_leaves(a)) total += sum(t * ys[i++]).template item<double>();
    return total;
  };
  EXPECT_NEAR(dot(u, forward.tangent), dot(pullback(u), std::tuple(dl, dx)), 1e-12);
  const auto alone = pullback({{"y", of({2}, 4)}, {"z", Tensor()}});  // undefined: zero
  EXPECT_EQ(disagrees(std::get<0>(alone).bias, zeros({2}, DType::F64), Agreement::Bitwise), "");
  const auto cube = jvp([](const Layer& at) { return sum(at.weight * at.bias); }, l, Layer{dl.weight, {}, 0});
  EXPECT_EQ(cube.tangent.item<double>(), sum(dl.weight * l.bias).item<double>());
}

TEST(TreeJacobians, PutBlocksInThePlacesOfLeaves) {
  const auto f = [](const Layer& l, const Tensor& x) { return tanh(matmul(x, l.weight)) * l.bias; };
  const Layer l{of({2, 3}, -1) * 0.1, of({3}, 1), 7};
  const Tensor x = of({2}, 0.5);
  const Function list = [&](const Tensors& v) { return Tensors{f(Layer{v[0], v[1], 0}, v[2])}; };
  const Tensors all{l.weight, l.bias, x}, want = jacrev(list, {.argnums = {0, 1, 2}})(all);
  const auto [by_layer, by_x] = jacrev<0, 1>(f)(l, x);
  EXPECT_EQ(disagrees(Tensors{by_layer.weight, by_layer.bias, by_x}, want, Agreement::Bitwise), "");
  EXPECT_EQ(by_layer.kept, 7);
  EXPECT_EQ(type_str(jacfwd(f)(l, x).weight), "f64[3,2,3]");
  const auto parts = [](const Tensor& v) { return std::pair(v * v, sum(v)); };
  const auto blocks = jacrev<0>(parts)(x);
  EXPECT_EQ(type_str(blocks.first) + type_str(blocks.second), "f64[2,2]f64[2]");
  const auto both = jacrev([](const Layer& at) { return std::tuple(at.weight, at.bias * 2.0); })(l);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(type_str(both[1].weight) + type_str(both[1].bias), "f64[3,2,3]f64[3,3]");
  EXPECT_EQ(sum(both[1].bias).item<double>(), 6);
  const auto curved = [](const Layer& at) { return sum(at.bias * at.bias) * sum(at.weight); };
  const std::vector<Layer> second = hessian(curved)(l);
  EXPECT_EQ(type_str(second[0].bias), "f64[2,3,3]");
  EXPECT_EQ(disagrees(second[1].bias, mul(eye(3, {}, DType::F64), sum(l.weight)) * 2.0, Agreement::Rounding),
            "");
}

TEST(TreeJacobians, OfArgumentsWithoutLeaves) {
  using Few = std::vector<Tensor>;
  const auto twice = [](const Few&, const Tensor& x) { return x * 2; };
  const auto parts = [](const Tensor&, const Tensor& x) { return std::pair(x * 2, sum(x)); };
  const auto maybe = [](const Tensor& bias, const Tensor& x) { return bias.defined() ? x * bias : x; };
  const Tensor x = of({2}, 0.5), none;
  EXPECT_TRUE(jacrev(twice)(Few{}, x).empty());
  EXPECT_TRUE(jacfwd(twice)(Few{}, x).empty());
  EXPECT_TRUE(hessian(twice)(Few{}, x).empty());
  EXPECT_FALSE(jacrev(twice)(Few{none}, x)[0].defined());
  EXPECT_FALSE(jacfwd<0>(maybe)(none, x).defined());
  EXPECT_FALSE(hessian<0>(maybe)(none, x).defined());
  EXPECT_FALSE(jacrev<0>(parts)(none, x).first.defined());
  EXPECT_THROW(jacrev([](const Few&, const Tensor&) { return Tensor(); })(Few{x}, x), Error);
}

TEST(TreeVmap, InChunks) {
  const Net n = net();
  const Tensor xs = of({5, 2}, 0.25);
  const auto f = [](const Net& net, const Tensor& x) { return std::pair(loss(net, x), net.named); };
  const auto whole = vmap(f, {kNone, 0}, {0, kNone})(n, xs);
  const auto parts = vmap(f, {kNone, 0}, {0, kNone}, {.chunk = 2})(n, xs);
  EXPECT_EQ(disagrees(tree_leaves(parts), tree_leaves(whole), Agreement::Bitwise), "");
}

TEST(TreeTransforms, Nest) {
  const auto f = [](const Layer& l) { return sum(l.weight * l.weight * l.bias); };
  const auto of_slope = [&](const Layer& l) {
    const Layer g = grad(f)(l);
    return sum(g.weight * g.weight) + sum(g.bias);
  };
  const Layer l{of({3, 2}, 1), of({3, 2}, 2), 0};
  const Layer got = vmap(grad(of_slope))(l);  // of 4 w^2 b^2 + w^2
  EXPECT_EQ(disagrees(got.weight, l.weight * l.bias * l.bias * 8.0 + l.weight * 2.0, Agreement::Bitwise), "");
  EXPECT_EQ(disagrees(got.bias, l.weight * l.weight * l.bias * 8.0, Agreement::Bitwise), "");
}

TEST(TreeTransforms, LeaveNothingAlive) {
  const Net n = net();
  const Tensor xs = zeros({500, 2}, DType::F64);
  int64_t bytes[2];
  for (int64_t& after : bytes) {  // what xs learns of its views stays with it
    { const Net got = vmap(grad(loss), {kNone, 0})(n, xs); }
    after = memory_stats().bytes;
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}
}  // namespace
}  // namespace test_trees
