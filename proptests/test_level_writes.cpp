// Views and writes under vmap, grad and jvp: what the same program gives without levels, and derivatives by
// hand.
#include <gtest/gtest.h>
#include <numeric>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

Tensor d(std::initializer_list<int64_t> sizes, std::initializer_list<double> values) {
  return tensor_of(sizes, values, DType::F64);
}
Tensor number(double v) { return scalar_tensor(v, DType::F64); }
using V = std::vector<double>;

V gradient(const UnaryFunction& f, const Tensor& x) { return grad(f)(x).to_vector(); }
/// Value of f at x, and its derivative along x itself, under jvp.
std::pair<V, V> pushed(const UnaryFunction& f, const Tensor& x) {
  const JvpResult r = jvp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}, {x});
  return {r.values[0].to_vector(), r.tangents[0].to_vector()};
}
V under_grad(const UnaryFunction& f, const Tensor& x) {
  return vjp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}).values[0].to_vector();
}
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return std::string(name(e.code())) + ": " + e.what(); }
  return "accepted";
}

const Tensor kX = d({2}, {3, 5});
Tensor fresh() { return d({2}, {2, 7}); }

// ---- promotion of fresh storage
// -----------------------------------------------------------------------------

TEST(Promotion, TheTapeKeepsWhatItSaved) {
  const auto product = [](const Tensor& x) { return sum(fresh().mul_(x)); };
  EXPECT_EQ(gradient(product, kX), (V{2, 7}));
  const auto saved_before = [](const Tensor& x) {
    const Tensor z = fresh(), q = x * z;  // q z' = x z (z + x)
    z.add_(x);
    return sum(q * z);
  };
  EXPECT_EQ(gradient(saved_before, kX), (V{2 * (2 + 6), 7 * (7 + 10)}));
  const auto written_before = [](const Tensor& x) {
    const Tensor z = fresh();
    z.fill_(4);
    const Tensor q = x * z;
    z.add_(x);
    return sum(q * z);
  };
  EXPECT_EQ(gradient(written_before, kX), (V{4 * (4 + 6), 4 * (4 + 10)}));
  EXPECT_EQ(gradient([](const Tensor& x) { return sum(fresh().maximum_(x)); }, kX), (V{1, 0}));
  const V power = gradient([](const Tensor& x) { return sum(fresh().pow_(x)); }, kX);
  EXPECT_NEAR(power[0], 8 * std::log(2.0), 1e-12);
  EXPECT_NEAR(power[1], 16807 * std::log(7.0), 1e-8);
}

TEST(Promotion, OfLargeTensors) {
  const auto f = [](const Tensor& x) {
    const Tensor z = full({1000}, 3.0, DType::F64), q = x * z;
    z.mul_(x);
    return sum(q + z);
  };
  EXPECT_EQ(gradient(f, ones({1000}, DType::F64)), V(1000, 6));
}

TEST(Promotion, UnderNestedLevels) {
  const auto both = [](const Tensor& y) {
    const Tensor z = fresh(), q = y * z;
    z.mul_(y);
    return q + z;  // 2 z y
  };
  const Tensor rows = stack({kX, kX * 2});
  const UnaryFunction each = grad([&](const Tensor& y) { return sum(both(y)); });
  EXPECT_EQ(vmap(each)(rows).to_vector(), (V{4, 14, 4, 14}));
  const auto outer = [&](const Tensor& x) { return sum(vmap(UnaryFunction(both))(stack({x, x * 2}))); };
  EXPECT_EQ(gradient(outer, kX), (V{12, 42}));
  const auto captured = [](const Tensor& x) {  // the outer tape saves z, the inner level promotes it
    const UnaryFunction lane = [x](const Tensor& y) {
      const Tensor z = fresh(), q = x * z;
      z.mul_(y);
      return q + z;
    };
    return sum(vmap(lane)(stack({x, x * 2})));
  };
  EXPECT_EQ(gradient(captured, kX), (V{10, 35}));
}

TEST(Promotion, IsAWriteForWhatAnInnerTapeSaved) {
  const auto program = [](bool promoted) {
    return [promoted](const Tensor& x) {
      const Tensor z = promoted ? fresh() : x * 2;
      const VjpResult r = vjp([&](const Tensors& w) { return Tensors{w[0] * z}; }, {d({2}, {1, 1})});
      z.mul_(x);
      return sum(r.pullback({ones_like(r.values[0])})[0]);
    };
  };
  for (const bool promoted : {true, false})
    EXPECT_TRUE(refusal([&] {
                  grad(UnaryFunction(program(promoted)))(kX);
                }).starts_with("value: backward: a value that mul saved was written in place later"));
}

// ---- views of written views
// ---------------------------------------------------------------------------------

const Tensor kM = d({2, 2}, {1, 2, 3, 4});

/// Programs of views and writes, with what they give for kM.
struct Program {
  UnaryFunction f;
  V value, tangent;  ///< the tangent along kM
};
std::vector<Program> programs() {
  const auto copied = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    v.mul_(number(2));
    contiguous(unsqueeze(v, 0)).fill_(0);  // a copy: v is not contiguous
    return y;
  };
  const auto through = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    v.mul_(number(2));
    contiguous(transpose(v, 0, 1)).mul_(y0);  // y itself
    return y;
  };
  const auto reshaped = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    v.mul_(number(2));
    reshape(v, {4}).fill_(0);                                // a copy
    reshape(transpose(v, 1, 0), {4}).mul_(y0.reshape({4}));  // a view
    return y + v;
  };
  const auto lost = [](const Tensor& y0) {  // no derivative is left when the view is made
    const Tensor y = y0 * 1;
    y.copy_(d({2, 2}, {5, 6, 7, 8}));
    const Tensor v = select(y, 0, 1);
    y.mul_(y0);
    return v;
  };
  const auto lost_in_bool = [](const Tensor& y0) {
    const Tensor y = y0 * 1;
    y.copy_(ge(y0, 3));
    const Tensor v = select(y, 0, 1);
    y.mul_(y0);
    return v;
  };
  return {{copied, {2, 4, 6, 8}, {2, 4, 6, 8}},
          {through, {2, 8, 18, 32}, {4, 16, 36, 64}},
          {reshaped, {4, 26, 26, 64}, {8, 52, 52, 128}},
          {lost, {21, 32}, {21, 32}},
          {lost_in_bool, {3, 4}, {3, 4}}};
}

TEST(ViewsOfWrittenViews, AreWhereTheProgramSeesThem) {
  for (const Program& p : programs()) {
    EXPECT_EQ(p.f(kM).to_vector(), p.value);
    EXPECT_EQ(under_grad(p.f, kM), p.value);
    EXPECT_EQ(pushed(p.f, kM), std::pair(p.value, p.tangent));
    const Tensor g = grad([&](const Tensor& x) { return sum(p.f(x)); })(kM);  // along kM, as the tangent
    EXPECT_EQ(sum(g * kM).item<double>(), std::accumulate(p.tangent.begin(), p.tangent.end(), 0.0));
    const UnaryFunction batched = vmap([&](const Tensor& x) { return p.f(x); });
    EXPECT_EQ(select(batched(stack({kM, kM})), 0, 1).to_vector(), p.value);
    EXPECT_EQ(jacfwd(p.f)(kM).to_vector(), jacrev(p.f)(kM).to_vector());
  }
}

TEST(ViewsOfWrittenViews, AreLegalWhereTheyAreOutside) {
  const auto illegal = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    v.mul_(number(2));
    return view(unsqueeze(v, 0), {4});
  };
  const std::string outside = refusal([&] { illegal(kM); });
  EXPECT_TRUE(outside.starts_with("shape: view: size = [4] for x: f64[1,2,2] with strides [2,1,2]"));
  for (const std::string& inside :
       {refusal([&] { under_grad(illegal, kM); }), refusal([&] { pushed(illegal, kM); })})
    EXPECT_EQ(inside.substr(0, outside.size()), outside);
  const auto legal = [](const Tensor& y0) {
    const Tensor y = y0 * 1, v = transpose(y, 0, 1);
    v.mul_(number(2));
    return view(transpose(v, 0, 1), {4});
  };
  EXPECT_EQ(under_grad(legal, kM), (V{2, 4, 6, 8}));
  EXPECT_EQ(pushed(legal, kM).second, (V{2, 4, 6, 8}));
}

/// A chain of n views costs n: views that copied the steps before them would copy 5 * 10^9 here.
TEST(ViewsOfWrittenViews, InALongChain) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 1;
    Tensor v = y;
    for (int i = 0; i < 100'000; ++i) v = transpose(v, 0, 1);
    v.mul_(number(2));
    y.mul_(x);          // 2 x^2
    return sum(v * v);  // 4 x^4
  };
  EXPECT_EQ(gradient(f, kM), (V{16, 128, 432, 1024}));
  EXPECT_EQ(pushed(f, kM).second, (V{16 + 256 + 1296 + 4096}));
}
}  // namespace
