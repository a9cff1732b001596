// Base autograd: gradients of gradients.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

const double kPoints[] = {0.5, -1.25, 2};

/// First, second and third derivatives of sum(f) at kPoints by backward of backward.
std::array<std::vector<double>, 3> derivatives(const UnaryFunction& f) {
  const Tensor x = requires_grad(tensor_of(Dims{3}, kPoints, DType::F64));
  std::array<std::vector<double>, 3> out;
  Tensor y = sum(f(x));
  for (int order = 0; order < 3; ++order) {
    backward(y, {}, {.create_graph = order < 2});
    const Tensor g = grad_of(x);
    clear_grad(x);
    out[size_t(order)] = g.to_vector();
    if (order < 2) y = sum(g);
  }
  return out;
}

void expect_near(const std::vector<double>& got, double (*wanted)(double), int order) {
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(got[i], wanted(kPoints[i]), 1e-13 * (1 + std::fabs(wanted(kPoints[i])))) << order << " " << i;
}

/// Of lists of integers, few lie in a node, more in a block of a pool, many on the heap.
TEST(Backward, NodesKeepListsOfAnyLength) {
  const auto program = [] {
    for (const int rank : {1, 3, 4, 8, 9, 20}) {
      Dims sizes(rank, 1), back(rank);
      sizes[0] = 2;
      for (int d = 0; d < rank; ++d) back[d] = rank - 1 - d;
      const Tensor w = requires_grad(ones(sizes));
      const Tensor y = permute(select(w, 0, 1), Dims(Ints(back).subspan(1)));
      backward(sum(y * 3));
      EXPECT_EQ(Dims(grad_of(w).sizes()), sizes);
      EXPECT_EQ(grad_of(w).to_vector(), (std::vector<double>{0, 3}));
    }
  };
  program();
  const MemoryStats before = memory_stats();
  program();
  EXPECT_EQ(memory_stats().blocks, before.blocks);
  EXPECT_EQ(memory_stats().bytes, before.bytes);
}

TEST(Backward, OfTheGradientGivesHigherDerivatives) {
  const auto cubes = derivatives([](const Tensor& t) { return t * t * t; });
  expect_near(
      cubes[0], [](double v) { return 3 * v * v; }, 1);
  expect_near(
      cubes[1], [](double v) { return 6 * v; }, 2);
  expect_near(
      cubes[2], [](double) { return 6.0; }, 3);
  // Formulas that keep their own result: its history must come back.
  const auto exps = derivatives([](const Tensor& t) { return exp(t); });
  for (int order = 0; order < 3; ++order)
    expect_near(
        exps[size_t(order)], [](double v) { return std::exp(v); }, order + 1);
  const auto tanhs = derivatives([](const Tensor& t) { return tanh(t); });
  const auto slope = [](double v) { return 1 - std::tanh(v) * std::tanh(v); };
  expect_near(tanhs[0], slope, 1);
  expect_near(
      tanhs[1], [](double v) { return -2 * std::tanh(v) * (1 - std::tanh(v) * std::tanh(v)); }, 2);
}

TEST(Backward, OfAnOperatorWithSeveralResults) {
  const Tensor x = requires_grad(tensor_of(Dims{1, 3}, kPoints, DType::F64));
  const Tensor w = requires_grad(ones({3}, DType::F64));
  const auto f = [&](const Tensor& t) {
    const Tensor y = layer_norm(t, {3}, w, Tensor(), 1e-5);
    return sum(y * y * y);
  };
  backward(f(x), {}, {.create_graph = true});
  const Tensor g = grad_of(x);
  clear_grad(x), clear_grad(w);
  backward(sum(g * g));
  const UnaryFunction plain = [&](const Tensor& t) {
    const Tensor y = layer_norm(t, {3}, detach(w), Tensor(), 1e-5);
    return sum(y * y * y);
  };
  const UnaryFunction squares = [&](const Tensor& t) {
    const Tensor slope = grad(plain)(t);
    return sum(slope * slope);
  };
  const std::vector<double> got = grad_of(x).to_vector(), wanted = grad(squares)(detach(x)).to_vector();
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12 * (1 + std::fabs(wanted[i])));
}

TEST(Backward, WithoutAGraphGivesPlainGradients) {
  const Tensor x = requires_grad(tensor_of(Dims{3}, kPoints, DType::F64));
  backward(sum(exp(x)));
  EXPECT_FALSE(is_grad_required(grad_of(x)));
  backward(sum(exp(x)), {}, {.create_graph = true});
  EXPECT_TRUE(is_grad_required(grad_of(x)));
  EXPECT_NEAR(grad_of(x).to_vector()[0], 2 * std::exp(0.5), 1e-14);
}

TEST(Backward, OfAGradientIsFreedOnceTheLeafIsCleared) {
  const MemoryStats before = memory_stats();
  {
    const Tensor x = requires_grad(tensor_of(Dims{3}, kPoints, DType::F64));
    backward(sum(exp(x) * x), {}, {.create_graph = true});
    clear_grad(x);  // the leaf holds its gradient, whose graph holds the leaf
  }
  EXPECT_EQ(memory_stats().bytes, before.bytes);
}

TEST(Backward, OfARetainedGradientIsFreedWithItsTensor) {
  const MemoryStats before = memory_stats();
  for (const bool written : {false, true}) {
    const Tensor x = requires_grad(tensor_of(Dims{3}, kPoints, DType::F64));
    const Tensor y = exp(x);
    retain_grad(y);
    backward(sum(y * y), {}, {.create_graph = true});  // the gradient's graph leads back to y's node
    EXPECT_TRUE(grad_of(y).defined());
    if (written) mul_(y, y);
    clear_grad(x);
  }
  EXPECT_EQ(memory_stats().bytes, before.bytes);
}

TEST(Backward, KeepsSizesAloneOfWhatIsJoined) {
  const auto live = [] { return memory_stats().bytes; };
  const UnaryFunction joined = [&](const Tensor& v) {
    const int64_t before = live();
    Tensors parts;
    for (int i = 0; i < 4; ++i) parts.push_back(v + double(i));
    const Tensor out = cat(parts);
    const int64_t with_parts = live();
    parts.clear();
    EXPECT_LE(live(), with_parts - 4 * 8 * 1000) << "of " << with_parts - before;
    return sum(stack({out, out * out}));
  };
  const Tensor x = arange(1000, {}, {}, DType::F64), leaf = requires_grad(x);
  const Tensor want = x * 8.0 + (4.0 + 12.0);
  EXPECT_EQ(grad(joined)(x).to_vector(), want.to_vector());
  backward(joined(leaf));
  EXPECT_EQ(grad_of(leaf).to_vector(), want.to_vector());
}

/// Bytes that are held when backward comes to the leaf, of ten layers that save 160,000 each.
int64_t held_at_the_leaf(bool given) {
  const Tensor x = requires_grad(zeros({10000}, DType::F64));
  int64_t held = 0;
  add_hook(x, [&](const Tensor&) {
    held = memory_stats().bytes;
    return Tensor();
  });
  const int64_t before = memory_stats().bytes;
  Tensor y = x;
  for (int k = 0; k < 10; ++k) y = sin(y) * y;
  y = sum(y);
  given ? backward(std::move(y)) : backward(y);
  EXPECT_EQ(y.defined(), !given);
  return held - before;
}

TEST(Backward, FreesOnTheWayWhatAGivenRootAloneHolds) {
  EXPECT_GT(held_at_the_leaf(false), 9 * 160000);
  EXPECT_LT(held_at_the_leaf(true), 4 * 80000);
}

TEST(Backward, WhatOthersHoldOfAGivenRootStays) {
  const Tensor x = requires_grad(tensor_of({2}, {0.5, -1}, DType::F64));
  const Tensor middle = sin(x) * x;
  Tensor y = sum(middle * middle);
  const Tensor same = y;
  backward(std::move(y));
  const std::vector<double> once = grad_of(x).to_vector();
  clear_grad(x), backward(same);
  EXPECT_EQ(grad_of(x).to_vector(), once);
  clear_grad(x), backward(sum(middle * middle));
  EXPECT_EQ(grad_of(x).to_vector(), once);
}

TEST(Pullbacks, OneGivenAwayLeavesItsCopies) {
  const Tensor x = tensor_of(Dims{3}, kPoints, DType::F64), u = ones({3}, DType::F64);
  VjpResult r = vjp([](const Tensors& a) { return Tensors{tanh(a[0]) * a[0]}; }, {x});
  const std::vector<double> want = r.pullback({u})[0].to_vector();
  {
    const Pullback copy = r.pullback;
    EXPECT_EQ(std::move(r.pullback)({u})[0].to_vector(), want);
    EXPECT_THROW(r.pullback({u}), Error);  // it was moved from
    EXPECT_EQ(copy({u})[0].to_vector(), want);
    r.pullback = copy;
  }
  EXPECT_EQ(std::move(r.pullback)({u})[0].to_vector(), want);
  EXPECT_THROW(r.pullback({u}), Error);  // that was the last time
}

TEST(GradOfSome, GetsWhatHooksOfTheTensorLeft) {
  const Tensor x = requires_grad(tensor_of({2}, {1, 2}, DType::F64)), y = x * x, root = sum(y * 3);
  int calls = 0;
  add_hook(y, [](const Tensor& ct) { return ct * 2; });
  add_node_hook(y, {.before = [&](const Tensors& cts) { return ++calls, Tensors{cts[0] * 10}; }});
  EXPECT_EQ(autograd::grad({root}, {y})[0].to_vector(), (std::vector<double>{6, 6}));
  EXPECT_EQ(calls, 0);  // the rule of mul does not run
  const Tensors both = autograd::grad({root}, {y, x});
  EXPECT_EQ(both[0].to_vector(), (std::vector<double>{6, 6}));
  EXPECT_EQ(both[1].to_vector(), (std::vector<double>{120, 240}));
  EXPECT_EQ(calls, 1);
}

TEST(GradOfSome, RunsWhatLeadsThereAlone) {
  const Tensor a = requires_grad(tensor_of({2}, {1, 2}, DType::F64)), b = requires_grad(a), c = b * 2;
  int calls = 0;
  add_hook(b, [&](const Tensor&) { return ++calls, Tensor(); });
  const Tensor d = a * 5, root = sum(d * c) + sum(sin(c));
  mul_(d, 3);  // mul saved it for c
  EXPECT_EQ(autograd::grad({root}, {a})[0].to_vector(), (std::vector<double>{10, 20}));
  EXPECT_EQ(calls, 0);
  EXPECT_THROW(autograd::grad({root}, {b}), Error);
  mul_(c, 1);  // and c for d
  EXPECT_THROW(autograd::grad({root}, {a}), Error);
  EXPECT_FALSE(autograd::grad({sum(a * a)}, {b}, {}, {.allow_unused = true})[0].defined());
}

TEST(CreateGraph, RecordsUnderNoGradAndInHooks) {
  const Tensor x = requires_grad(tensor_of({1}, {2}, DType::F64)), y = sum(x * x * x), other = x * 1;
  Tensor g;
  const auto take = [&] { g = autograd::grad({y}, {x}, {}, {.create_graph = true})[0]; };
  const auto second = [&] { return autograd::grad({sum(g)}, {x})[0].to_vector(); };
  {
    const NoGrad off;
    take();
    EXPECT_FALSE(is_grad_required(x * 1));  // as before
  }
  EXPECT_EQ(second(), (std::vector<double>{12}));
  add_hook(other, [&](const Tensor&) { return take(), Tensor(); });
  backward(sum(other));
  EXPECT_EQ(second(), (std::vector<double>{12}));
  const InferenceMode off;
  take();
  EXPECT_FALSE(is_grad_required(g));
}

}  // namespace
