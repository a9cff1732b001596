// Derivatives of reads and writes by subscripts: against central differences and by loops, at each level
// alone and nested.
#include <gtest/gtest.h>

#include "lamella/lamella.h"

#include "subscript_places.h"

namespace test_subscripts_derivatives {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;

void expect_near(const Tensor& got, const Doubles& want, double bound, const std::string& what) {
  const Doubles values = got.to_vector();
  ASSERT_EQ(values.size(), want.size()) << what;
  for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(values[k], want[k], bound) << what << ", entry " << k;
}

/// The derivative of a scalar function in each element of argument `of`, by central differences.
Doubles differences(const std::function<double(const std::vector<Doubles>&)>& f, std::vector<Doubles> at,
                    size_t of) {
  constexpr double kStep = 1e-4;
  Doubles out;
  for (double& entry : at[of]) {
    const double was = entry;
    entry = was + kStep;
    const double above = f(at);
    entry = was - kStep;
    out.push_back((above - f(at)) / (2 * kStep));
    entry = was;
  }
  return out;
}

/// A program of two inputs: y = x * x, y[list] op= value, then sum(weights * y * y) and what y[list] reads.
struct Program {
  Indices list;
  char op;
  Tensor x, value, weights;
  Place place = place_of(x.sizes(), list);

  Program(Dice& dice, Tensor of, Indices indices, char how)
      : list(std::move(indices)), op(how), x(std::move(of)), weights(dice.tensor(sizes_of(x))) {
    value = dice.tensor(dice.below(2) ? place.sizes : dice.broadcastable(place.sizes));
  }
  static std::vector<int64_t> sizes_of(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

  Tensor operator()(const Tensors& v) const {
    const Tensor y = v[0] * v[0];
    write(y, list, op, v[1]);
    const Tensor read = Subscript(y, list);
    return sum(weights * y * y) + sum(read * read * read);
  }
  /// The same by loops.
  double by_loops(const std::vector<Doubles>& v) const {
    Doubles y = v[0];
    for (double& e : y) e *= e;
    y = written(y, place, op, v[1], value.sizes());
    const Doubles w = weights.to_vector();
    double out = 0;
    for (size_t k = 0; k < y.size(); ++k) out += w[k] * y[k] * y[k];
    for (const int64_t k : place.at) out += y[size_t(k)] * y[size_t(k)] * y[size_t(k)];
    return out;
  }
  Doubles gradient(size_t of, const Tensors& at) const {
    return differences([&](const auto& v) { return by_loops(v); }, {at[0].to_vector(), at[1].to_vector()},
                       of);
  }
};

std::vector<Program> programs(uint32_t seed, int n) {
  Dice dice(seed);
  std::vector<Program> out;
  for (int k = 0; k < n; ++k) {
    const Tensor x = dice.tensor(dice.sizes(1 + dice.below(3)));
    out.emplace_back(dice, x, dice.indices(x.sizes()), "=+-*/"[k % 5]);
  }
  return out;
}

constexpr double kBound = 2e-4;  // values reach hundreds, their third derivatives 10^4

TEST(SubscriptDerivatives, OfReadsAndWrites) {
  for (const Program& p : programs(11, 100)) {
    const Tensors at{p.x, p.value}, along{p.x * 0.5, p.value + 1};
    const Tensors gradients = grad([&](const Tensors& v) { return p(v); }, {0, 1})(at);
    const Tensor pushed = jvp([&](const Tensors& v) { return Tensors{p(v)}; }, at, along).tangents[0];
    const Tensors leaves{requires_grad(clone(p.x)), requires_grad(clone(p.value))};
    backward(p(leaves));
    double sum_along = 0;
    for (size_t k = 0; k < 2; ++k) {
      const Doubles want = p.gradient(k, at), direction = along[k].to_vector();
      expect_near(gradients[k], want, kBound, "grad");
      const Tensor added = grad_of(leaves[k]);  // undefined where backward has not come by
      expect_near(added.defined() ? added : zeros_like(at[k]), want, kBound, "backward");
      for (size_t i = 0; i < want.size(); ++i) sum_along += want[i] * direction[i];
    }
    expect_near(pushed, {sum_along}, 20 * kBound, "jvp");
  }
}

TEST(SubscriptDerivatives, NestWithVmap) {
  for (const Program& p : programs(12, 60)) {
    const ScalarFunction f = [&](const Tensors& v) { return p(v); };
    const Tensors lanes{stack({p.x, p.x + 0.5, p.x * 0.5}), stack({p.value, p.value * 2, p.value + 1})};
    const Tensors each = vmap(grad(f, {0, 1}))(lanes);
    const Tensors all = grad(
        [&](const Tensors& v) {
          return sum(vmap([&](const Tensors& lane) { return Tensors{p(lane)}; })(v)[0]);
        },
        {0, 1})(lanes);
    const Tensors shared = vmap(grad(f, {0, 1}), InDims{0, kNone})({lanes[0], p.value});
    for (int lane = 0; lane < 3; ++lane) {
      const Tensors at{select(lanes[0], 0, lane), select(lanes[1], 0, lane)};
      for (size_t k = 0; k < 2; ++k) {
        const Doubles want = p.gradient(k, at);
        expect_near(select(each[k], 0, lane), want, kBound, "vmap of grad");
        expect_near(select(all[k], 0, lane), want, kBound, "grad of vmap");
        expect_near(select(shared[k], 0, lane), p.gradient(k, {at[0], p.value}), kBound, "shared value");
      }
    }
  }
}

TEST(SubscriptDerivatives, OfSecondOrder) {
  for (const Program& p : programs(13, 60)) {
    const ScalarFunction first = [&](const Tensors& v) {
      const Tensors g = grad([&](const Tensors& u) { return p(u); }, {0, 1})(v);
      return sum(g[0] * g[0]) * 0.01 + sum(g[1]);
    };
    const auto at_doubles = [&](const std::vector<Doubles>& v) {
      return first({tensor_of(p.x.sizes(), v[0], DType::F64), tensor_of(p.value.sizes(), v[1], DType::F64)})
          .item<double>();
    };
    const Tensors at{p.x, p.value}, second = grad(first, {0, 1})(at);
    const Tensors tangents = jvp([&](const Tensors& v) { return Tensors{first(v)}; }, at, at).tangents;
    const std::vector<Doubles> start{p.x.to_vector(), p.value.to_vector()};
    double along = 0;
    for (size_t k = 0; k < 2; ++k) {
      const Doubles want = differences(at_doubles, start, k);
      for (size_t i = 0; i < want.size(); ++i) along += want[i] * start[k][i];
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(second[k].to_vector()[i], want[i], 1e-4 * (1 + std::abs(want[i])));
    }
    EXPECT_NEAR(tangents[0].item<double>(), along, 1e-4 * (1 + std::abs(along)));
  }
}

/// A mask of each lane: gradients of lanes are those of the lane's own program.
TEST(SubscriptDerivatives, OfWritesThroughMasksOfLanes) {
  Dice dice(14);
  for (int k = 0; k < 60; ++k) {
    const Tensor x = dice.tensor({3, 2, 4}), masks = dice.mask({3, 2}), values = dice.tensor({3, 4});
    const char op = "=+-*/"[k % 5];
    const auto f = [&](const Tensors& v) {
      const Tensor y = v[0] * v[0];
      write(y, {v[2]}, op, v[1]);
      return sum(y * y * y);
    };
    const Tensors got = vmap(grad(f, {0, 1}))({x, values, masks});
    const Tensors summed = grad(
        [&](const Tensors& v) {
          return sum(vmap([&](const Tensors& lane) { return Tensors{f(lane)}; })({v[0], v[1], masks})[0]);
        },
        {0, 1})({x, values});
    for (int lane = 0; lane < 3; ++lane) {
      const Tensors at{select(x, 0, lane), select(values, 0, lane), select(masks, 0, lane)};
      const Place place = place_of({at[0].sizes()}, {at[2]});
      const auto by_loops = [&](const std::vector<Doubles>& v) {
        Doubles y = v[0];
        for (double& e : y) e *= e;
        double out = 0;
        for (const double e : written(y, place, op, v[1], at[1].sizes())) out += e * e * e;
        return out;
      };
      for (size_t i = 0; i < 2; ++i) {
        const Doubles want = differences(by_loops, {at[0].to_vector(), at[1].to_vector()}, i);
        expect_near(select(got[i], 0, lane), want, 1e-3, "vmap of grad");
        expect_near(select(summed[i], 0, lane), want, 1e-3, "grad of vmap");
      }
    }
  }
}

/// A mask that depends on the input, as in clipping.
TEST(SubscriptDerivatives, OfMasksMadeInside) {
  const auto clipped = [](const Tensor& x) {
    const Tensor y = x * 1;
    y[gt(y, 2)] = 2.0;
    y[lt(y, 0)] *= 0.5;
    return sum(y * y);
  };
  const Tensor x = f64({2, 3}, {-1, 1, 3, 0.5, 5, -4});
  const Doubles want{-0.5, 2, 0, 1, 0, -2};
  EXPECT_EQ(grad(UnaryFunction(clipped))(x).to_vector(), want);
  EXPECT_EQ(vmap(grad(UnaryFunction(clipped)))(x).to_vector(), want);
  EXPECT_EQ(grad(UnaryFunction([&](const Tensor& t) { return sum(vmap(UnaryFunction(clipped))(t)); }))(x)
                .to_vector(),
            want);
}

TEST(SubscriptDerivatives, OfWhatTheMaskLeavesOutAreNotNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = f64({2, 2}, {inf, 3, 0, 4}), value = f64({0, 2}), mask = gt(f64({2, 2}, {0, 1, 0, 1}), 0);
  const auto f = [&](const Tensors& v) {
    const Tensor y = v[0] * 1;
    y[mask] /= v[1][{None, 1}];
    y[{Slice{}, gt(v[1], 5)}] /= v[1][0];  // selects nothing
    return sum(y[{Ellipsis, 1}]);
  };
  const Tensors got = grad(f, {0, 1})({x, value});
  EXPECT_EQ(got[0].to_vector(), (Doubles{0, 0.5, 0, 0.5}));
  EXPECT_EQ(got[1].to_vector(), (Doubles{0, -7.0 / 4}));
}

TEST(SubscriptDerivatives, OfWritesIntoFreshMemory) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor y = zeros({2, 3}, DType::F64), row = y[0];
    y[{Ellipsis, Slice{0, 2}}] = x;
    y[{1, 2}] += x[0] * x[1];
    mul_(row, x[1]);
    return sum(y * y);
  };
  const UnaryFunction by_hand = [](const Tensor& x) {
    const Tensor a = select(x, 0, 0), b = select(x, 0, 1);
    return a * a * b * b + b * b * b * b + a * a + b * b + a * a * b * b;
  };
  const Tensor xs = f64({2, 2}, {2, 3, -1, 0.5});
  EXPECT_EQ(vmap(f)(xs).to_vector(), vmap(by_hand)(xs).to_vector());
  EXPECT_EQ(vmap(grad(f))(xs).to_vector(), vmap(grad(by_hand))(xs).to_vector());
  EXPECT_EQ(vmap(hessian(f))(xs).to_vector(), vmap(hessian(by_hand))(xs).to_vector());
}
}  // namespace
}  // namespace test_subscripts_derivatives
