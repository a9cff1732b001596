// Promotion: tensors made inside a level without its values, written with them.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/lamella.h"

#include "support.h"

namespace test_promotion {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;

using V = std::vector<double>;

V gradient(const UnaryFunction& f, const Tensor& x) { return grad(f)(x).to_vector(); }
/// Value of f at x, and its derivative along x itself, under jvp.
std::pair<V, V> pushed(const UnaryFunction& f, const Tensor& x) {
  const JvpResult r = jvp([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, {x}, {x});
  return {r.values[0].to_vector(), r.tangents[0].to_vector()};
}

const Tensor kX = f64({2}, {3, 5});
Tensor fresh() { return f64({2}, {2, 7}); }

TEST(Promotion, TheTapeKeepsWhatItSaved) {
  const auto product = [](const Tensor& x) { return sum(mul_(fresh(), x)); };
  EXPECT_EQ(gradient(product, kX), (V{2, 7}));
  const auto saved_before = [](const Tensor& x) {
    const Tensor z = fresh(), q = x * z;  // q z' = x z (z + x)
    add_(z, x);
    return sum(q * z);
  };
  EXPECT_EQ(gradient(saved_before, kX), (V{2 * (2 + 6), 7 * (7 + 10)}));
  const auto written_before = [](const Tensor& x) {
    const Tensor z = fresh();
    fill_(z, 4);
    const Tensor q = x * z;
    add_(z, x);
    return sum(q * z);
  };
  EXPECT_EQ(gradient(written_before, kX), (V{4 * (4 + 6), 4 * (4 + 10)}));
  EXPECT_EQ(gradient([](const Tensor& x) { return sum(maximum_(fresh(), x)); }, kX), (V{1, 0}));
  const V power = gradient([](const Tensor& x) { return sum(pow_(fresh(), x)); }, kX);
  EXPECT_NEAR(power[0], 8 * std::log(2.0), 1e-12);
  EXPECT_NEAR(power[1], 16807 * std::log(7.0), 1e-8);
}

TEST(Promotion, OfLargeTensors) {
  const auto f = [](const Tensor& x) {
    const Tensor z = full({1000}, 3.0, DType::F64), q = x * z;
    mul_(z, x);
    return sum(q + z);
  };
  EXPECT_EQ(gradient(f, ones({1000}, DType::F64)), V(1000, 6));
}

TEST(Promotion, UnderNestedLevels) {
  const auto both = [](const Tensor& y) {
    const Tensor z = fresh(), q = y * z;
    mul_(z, y);
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
      mul_(z, y);
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
      const VjpResult r = vjp([&](const Tensors& w) { return Tensors{w[0] * z}; }, {f64({2}, {1, 1})});
      mul_(z, x);
      return sum(r.pullback({ones_like(r.values[0])})[0]);
    };
  };
  for (const bool promoted : {true, false})
    EXPECT_TRUE(refusal([&] {
                  grad(UnaryFunction(program(promoted)))(kX);
                }).starts_with("value: backward: a value that mul saved was written in place later"));
}

/// Fresh tensors that levels further out wrap already: zeros_like of a lane, what a captured value makes.
TEST(Promotion, OfWhatOuterLevelsWrap) {
  const auto squares = [](const Tensor& x) {
    const Tensor z = zeros_like(x);
    add_(z, x);
    mul_(z, x);
    return sum(z);
  };
  const Tensor rows = stack({kX, kX * 2});
  EXPECT_EQ(vmap(grad(UnaryFunction(squares)))(rows).to_vector(), (V{6, 10, 12, 20}));
  const auto large = [&](const Tensor& x) { return squares(expand(unsqueeze(x, 1), {2, 50})); };
  EXPECT_EQ(vmap(grad(UnaryFunction(large)))(rows).to_vector(), (V{300, 500, 600, 1000}));
  const auto saved_before = [](const Tensor& x) {  // q z', the level's tape saved z = 4
    const Tensor z = ones_like(x) * 4, q = x * z;
    add_(z, x);
    return sum(q * z);
  };
  EXPECT_EQ(vmap(grad(UnaryFunction(saved_before)))(rows).to_vector(), (V{40, 56, 64, 96}));

  const auto product = [](const Tensor& w, const Tensor& x) {
    const Tensor z = w * 2;
    mul_(z, x);
    return z;
  };
  const auto slope_of = [&](const Tensor& w) {  // of sum(2 w x) along x
    return grad(UnaryFunction([&](const Tensor& x) { return sum(product(w, x)); }))(kX);
  };
  const auto pushed_of = [&](const Tensor& w) {
    return jvp([&](const Tensors& xs) { return Tensors{product(w, xs[0])}; }, {kX}, {ones_like(kX)})
        .tangents[0];
  };
  const auto lanes_of = [&](const Tensor& w) {
    return vmap(UnaryFunction([&](const Tensor& x) { return product(w, x); }))(rows);
  };
  for (const UnaryFunction& of_w : {UnaryFunction(slope_of), UnaryFunction(pushed_of)}) {
    EXPECT_EQ(vmap(of_w)(rows).to_vector(), (V{6, 10, 12, 20}));
    EXPECT_EQ(gradient([&](const Tensor& w) { return sum(of_w(w)); }, kX), (V{2, 2}));
    EXPECT_EQ(pushed(of_w, kX), std::pair(V({6, 10}), V({6, 10})));
    const Tensor leaf = requires_grad(kX);
    backward(sum(of_w(leaf)));
    EXPECT_EQ(grad_of(leaf).to_vector(), (V{2, 2}));
  }
  EXPECT_EQ(vmap(UnaryFunction(lanes_of))(rows).to_vector(), (V{18, 50, 36, 100, 36, 100, 72, 200}));
  EXPECT_EQ(gradient([&](const Tensor& w) { return sum(lanes_of(w)); }, kX), (V{18, 30}));
}

TEST(Promotion, OfWhatOuterLevelsWrapIsRefusedWhereOthersSeeIt) {
  const Tensor rows = stack({kX, kX * 2});
  const auto refused = [&](const std::function<void(const Tensor& w, const Tensor& x)>& f) {
    const UnaryFunction of_w = [&](const Tensor& w) {
      return grad(UnaryFunction([&](const Tensor& x) {
        f(w, x);
        return sum(x);
      }))(kX);
    };
    const std::string lane = refusal([&] { vmap(of_w)(rows); }),
                      outer = refusal([&] { gradient([&](const Tensor& w) { return sum(of_w(w)); }, kX); });
    EXPECT_EQ(lane.substr(0, lane.find('\n')), outer.substr(0, outer.find('\n')));
    return lane;
  };
  const auto viewed = [](const Tensor& w, const Tensor& x) {
    const Tensor z = w * 2, v = select(z, 0, 0);
    mul_(z, x);
  };
  EXPECT_NE(refused(viewed).find("and has views"), std::string::npos);
  const auto of_view = [](const Tensor& w, const Tensor& x) {
    const Tensor z = w * 2;
    mul_(select(z, 0, 0), sum(x));
  };
  EXPECT_NE(refused(of_view).find("and has views"), std::string::npos);
  EXPECT_NE(refused([](const Tensor& w, const Tensor& x) { mul_(w, x); }).find("made outside grad#2"),
            std::string::npos);
  const auto outside = [&](const Tensor& w) {  // made by the outer function, and written within the inner
    const Tensor z = w * 2;
    return grad(UnaryFunction([&](const Tensor& x) {
      fill_(z, 1);
      mul_(z, x);
      return sum(z);
    }))(kX);
  };
  for (const auto& run :
       {std::function<void()>([&] { vmap(UnaryFunction(outside))(rows); }),
        std::function<void()>([&] { gradient([&](const Tensor& w) { return sum(outside(w)); }, kX); })})
    EXPECT_NE(refusal(run).find("made outside grad#2"), std::string::npos);
}

TEST(Promotion, ByAnOuterLevelIsAWriteForInnerTapes) {
  const Tensor rows = stack({kX, kX * 2});
  const auto program = [](const Tensor& w, const Tensor& x) {  // the innermost tape saved z
    const Tensor z = w * 2;
    const VjpResult r = vjp([&](const Tensors& y) { return Tensors{y[0] * z}; }, {f64({2}, {1, 1})});
    mul_(z, x);
    return sum(r.pullback({ones_like(x)})[0]);
  };
  const auto run = [&](const Tensor& w) {
    return grad(UnaryFunction([&](const Tensor& x) { return program(w, x); }))(kX);
  };
  const auto lanes = [&](const Tensor& w) {
    return vmap(UnaryFunction([&](const Tensor& x) { return program(w, x); }))(rows);
  };
  for (const UnaryFunction& f : {UnaryFunction(run), UnaryFunction(lanes)}) {
    const std::string in_lanes = refusal([&] { vmap(f)(rows); }),
                      under_levels =
                          refusal([&] { gradient([&](const Tensor& w) { return sum(f(w)); }, kX); });
    EXPECT_TRUE(in_lanes.starts_with("value: backward: a value that mul saved was written")) << in_lanes;
    EXPECT_TRUE(under_levels.starts_with("value: backward: a value that mul saved was written"))
        << under_levels;
  }
}

TEST(Promotion, KeepsNothingAlive) {
  const Tensor rows = stack({kX, kX * 2});
  const auto saved_and_written = [](const Tensor& x) {  // the tape saved z before z became its result
    const Tensor z = ones_like(x) * 4, q = x * z;
    add_(z, x);
    return sum(q * z);
  };
  const auto run = [&] {
    vmap(grad(UnaryFunction(saved_and_written)))(rows);
    vmap(UnaryFunction([&](const Tensor& w) {
      return grad(UnaryFunction([&](const Tensor& x) { return saved_and_written(w * x); }))(kX);
    }))(rows);
  };
  run();
  const int64_t before = memory_stats().blocks;
  for (int i = 0; i < 10; ++i) run();
  EXPECT_EQ(memory_stats().blocks, before);
}

TEST(Promotion, KnowsWhoMadeTheMemory) {
  const auto written = [](const std::function<Tensor()>& make) {
    return [make](const Tensor& x) { return sum(add_(make(), x) * x); };  // (z + x) x
  };
  const auto elsewhere = [](const std::function<Tensor()>& make) {
    return [make] {
      Tensor z;
      std::thread([&] { z = make(); }).join();
      return z;
    };
  };
  const auto in_a_level = [] {  // opened later than grad, on a thread of its own
    Tensor z;
    vmap([&](const Tensor& row) {
      z = fresh();
      return row;
    })(f64({1}, {0}));
    return z;
  };
  EXPECT_EQ(gradient(written(in_a_level), kX), (V{8, 17}));
  EXPECT_NE(refusal([&] { gradient(written(elsewhere(in_a_level)), kX); }).find("made outside grad#1"),
            std::string::npos);
  const auto captured = [&](const Tensor& x) {
    const DispatchState::Captured state = DispatchState::capture();
    return sum(elsewhere([&] {
      const ScopedState acting(state);
      return add_(fresh(), x) * add_(in_a_level(), x);  // (z + x)^2
    })());
  };
  EXPECT_EQ(gradient(captured, kX), (V{10, 24}));
}

}  // namespace
}  // namespace test_promotion
