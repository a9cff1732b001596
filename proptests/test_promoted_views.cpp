// Promotion of tensors with views.
#include <gtest/gtest.h>

#include "lamella/lamella.h"

#include "support.h"

namespace test_promoted_views {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;
using V = std::vector<double>;

const Tensor kX = f64({2}, {3, 5});

/// f's value and the gradient of its sum by grad, jvp, vmap(grad), grad(vmap), vmap over a leaf, grad(grad).
void expect(const UnaryFunction& f, const Tensor& x, const V& value, const V& gradient) {
  EXPECT_EQ(f(x).to_vector(), value);
  const UnaryFunction total = [&](const Tensor& y) { return sum(f(y)); };
  const auto forward = [&](const Tensors& xs) { return Tensors{f(xs[0])}; };
  EXPECT_EQ(vjp(forward, {x}).values[0].to_vector(), value);
  EXPECT_EQ(grad(total)(x).to_vector(), gradient);
  EXPECT_EQ(jacfwd(total)(x).to_vector(), gradient);
  const Tensor two = stack({x * 2 + 1, x});
  EXPECT_EQ(select(vmap(f)(two), 0, 1).to_vector(), value);
  EXPECT_EQ(select(vmap(grad(total))(two), 0, 1).to_vector(), gradient);
  EXPECT_EQ(select(grad([&](const Tensor& all) { return sum(vmap(f)(all)); })(two), 0, 1).to_vector(),
            gradient);
  const Tensor leaf = requires_grad(two);
  backward(sum(vmap(f)(leaf)));
  EXPECT_EQ(select(grad_of(leaf), 0, 1).to_vector(), gradient);
  const JvpResult r = jvp([&](const Tensors& xs) { return Tensors{grad(total)(xs[0])}; }, {x}, {x});
  EXPECT_EQ(r.values[0].to_vector(), gradient);
}

TEST(PromotedViews, TheBaseIsFilledThroughAView) {
  for (const int64_t rest : {1, 128}) {  // in the header's own block, and not
    expect(
        [rest](const Tensor& x) {
          const Tensor z = zeros({2 + rest}, DType::F64);
          copy_(slice(z, 0, rest, 2 + rest), x * x);
          return sum(z * z);
        },
        kX, {81 + 625}, {4 * 27, 4 * 125});
    expect(
        [rest](const Tensor& x) {  // row by row
          const Tensor z = ones({2, rest}, DType::F64);
          for (int64_t i = 0; i < 2; ++i) mul_(select(z, 0, i), select(x, 0, i));
          return sum(z * z, IntArg{1}) / double(rest);
        },
        kX, {9, 25}, {6, 10});
  }
}

TEST(PromotedViews, AllOfThemFollow) {
  expect(
      [](const Tensor& x) {
        const Tensor z = f64({2, 2}, {1, 2, 3, 4}), row = select(z, 0, 1), turned = transpose(z, 0, 1),
                     corner = select(row, 0, 0);
        mul_(z, x);            // [[x0, 2 x1], [3 x0, 4 x1]]
        add_(row, x);          // [[x0, 2 x1], [4 x0, 5 x1]]
        mul_(corner, corner);  // 16 x0^2
        return cat({reshape(turned, {4}), row}, 0);
      },
      kX, {3, 144, 10, 25, 144, 25}, {1 + 2 * 32 * 3, 2 + 10});
  expect(
      [](const Tensor& x) {  // the base is gone
        const Tensor v = slice(zeros({4}, DType::F64), 0, 1, 3), w = slice(v, 0, 1, 2);
        add_(v, x);
        return w * w;
      },
      kX, {25}, {0, 10});
  expect(
      [](const Tensor& x) {  // views of what was promoted
        const Tensor z = zeros({2, 2}, DType::F64), row = select(z, 0, 0);
        copy_(row, x);
        const Tensor column = select(transpose(z, 0, 1), 0, 1);
        add_(column, x * 2);  // [[x0, x1 + 2 x0], [0, 2 x1]]
        return sum(z * z);
      },
      kX, {9 + 121 + 100}, {6 + 2 * 11 * 2, 2 * 11 + 8 * 5});
}

TEST(PromotedViews, AreWrittenByOut) {
  expect(
      [](const Tensor& x) {
        const Tensor z = full({3}, 7.0, DType::F64);
        mul_out(slice(z, 0, 0, 2), x, x);
        return z;
      },
      kX, {9, 25, 7}, {6, 10});
}

TEST(PromotedViews, KeepWhatWasSaved) {
  expect(
      [](const Tensor& x) {
        const Tensor z = f64({2}, {2, 7}), v = slice(z, 0, 0, 1), q = x * z;
        if (!is_grad_required(x)) add_(v, slice(x, 0, 0, 1));
        return q + z;
      },
      kX, {6 + 5, 35 + 7}, {3, 7});
}

TEST(PromotedViews, LeaveNothingAlive) {
  const auto run = [] {
    const UnaryFunction f = [](const Tensor& x) {
      const Tensor z = zeros({4}, DType::F64), v = slice(z, 0, 0, 2), q = sum(x * v);
      add_(v, x);
      return sum(z * z) + q;
    };
    grad(f)(kX);
    vmap(grad(f))(stack({kX, kX}));
    vmap(f)(stack({kX, kX}));
  };
  run();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 20; ++i) run();
  EXPECT_EQ(memory_stats().blocks, before.blocks);
  EXPECT_EQ(memory_stats().storages, before.storages);
}

/// A view made in a no-grad scope is not followed: its base is not promoted.
TEST(PromotedViews, OfNoGradScopesAreRefused) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor z = zeros({2}, DType::F64);
    Tensor v;
    {
      const NoGrad none;
      v = slice(z, 0, 0, 1);
    }
    add_(z, x);
    return sum(z) + sum(v);
  };
  try {
    grad(f)(kX);
    FAIL() << "accepted";
  } catch (const Error& e) { EXPECT_EQ(e.code(), ErrorCode::Level) << e.what(); }
}

TEST(PromotedViews, WithoutLanes) {
  const UnaryFunction f = [](const Tensor& x) {
    const Tensor z = zeros({4}, DType::F64);
    copy_(slice(z, 0, 2, 4), x);
    return z;
  };
  EXPECT_EQ(type_str(vmap(f)(zeros({0, 2}, DType::F64))), "f64[0,4]");
}

TEST(PromotedViews, OfOtherMemoryAreRefused) {
  const Tensor outside = zeros({4}, DType::F64);
  const auto add_into_it = [&](const Tensor& x) { return sum(add_(slice(outside, 0, 0, 2), x)); };
  EXPECT_REFUSED(grad(add_into_it)(kX), "made outside grad#1");
  EXPECT_EQ(outside.to_vector(), (V{0, 0, 0, 0}));
  // The parts of complex numbers are a view of another dtype.
  const auto add_to_real = [](const Tensor& x) {
    const Tensor z = zeros({2}, DType::C128);
    return sum(add_(real(z), x));
  };
  EXPECT_REFUSED(grad(add_to_real)(kX), "and has views");
}

}  // namespace
}  // namespace test_promoted_views
