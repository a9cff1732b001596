// Derivatives beside singular elements that a choice leaves out: finite in every mode and order.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/verify/case/compare.h"

namespace {
using namespace lamella;
using verify::differs;

const double kBeyond = 1000;  ///< e^1000 is infinite

Tensor safe_root(const Tensor& x) { return where(gt(x, 0), sqrt(x), zeros_like(x)); }
Tensor total_root(const Tensor& x) { return sum(safe_root(x)); }

TEST(Hidden, RootBesideZeroInEveryMode) {
  const Tensor x = tensor_of({3}, {0, 4, -1}, DType::F64);
  const Tensor want = tensor_of({3}, {0, 0.25, 0}, DType::F64);
  EXPECT_EQ(differs(grad(total_root)(x), want), "");
  EXPECT_EQ(differs(vmap(grad(total_root))(x), want), "");
  EXPECT_EQ(
      differs(
          jvp([](const Tensors& xs) { return Tensors{safe_root(xs[0])}; }, {x}, {ones_like(x)}).tangents[0],
          want),
      "");
  const Tensor leaf = requires_grad(x);
  backward(total_root(leaf));
  EXPECT_EQ(differs(grad_of(leaf), want), "");
}

TEST(Hidden, SecondDerivatives) {
  const Tensor x = tensor_of({3}, {0, 4, -1}, DType::F64);
  const auto slopes = [](const Tensor& at) { return sum(grad(total_root)(at)); };
  EXPECT_EQ(differs(grad(slopes)(x), tensor_of({3}, {0, -0.03125, 0}, DType::F64)), "");
}

TEST(Hidden, InfiniteFactorsAndBounds) {
  const Tensor x = tensor_of({2}, {kBeyond, 0}, DType::F64);
  const auto capped = [](const Tensor& at) { return sum(minimum(exp(at), full({}, 10, DType::F64))); };
  EXPECT_EQ(differs(grad(capped)(x), tensor_of({2}, {0, 1}, DType::F64)), "");
  const auto bounded = [](const Tensor& at) { return sum(clamp(log(at), full({}, -5, DType::F64))); };
  EXPECT_EQ(differs(grad(bounded)(tensor_of({2}, {0, 1}, DType::F64)), tensor_of({2}, {0, 1}, DType::F64)),
            "");
}

TEST(Hidden, ThroughSeveralPointwiseOperators) {
  const auto f = [](const Tensor& x) {
    const Tensor inside = 1 - x * x;
    return sum(where(gt(inside, 0), sqrt(inside) * log(inside) / (x - 1), x));
  };
  const Tensor g = grad(f)(tensor_of({3}, {1, 0.5, -3}, DType::F64));
  for (const int64_t i : {0, 2}) EXPECT_EQ(select(g, 0, i).item<double>(), 1);
  EXPECT_TRUE(std::isfinite(select(g, 0, 1).item<double>()));
}

/// A zero that merely happens is multiplied as ever: its derivative is not 0.
TEST(Hidden, ZerosThatHappenKeepTheirDerivatives) {
  const auto inner = [](const Tensor& y) {
    return [y](const Tensor& x) { return sum(where(ge(x, 0), x * y * y, x)); };
  };
  const Tensor x = ones({2}, DType::F64);
  const auto slope = [&](const Tensor& y) {
    return sum(grad(inner(y))(x) * tensor_of({2}, {1, 2}, DType::F64));
  };
  const Tensor y = tensor_of({2}, {0, 3}, DType::F64);
  EXPECT_EQ(differs(grad(slope)(y), tensor_of({2}, {0, 12}, DType::F64)), "");
  EXPECT_EQ(differs(grad([&](const Tensor& at) { return sum(grad(slope)(at)); })(y),
                    tensor_of({2}, {2, 4}, DType::F64)),
            "");
}

/// A node that is reached by a path without the choice is not hidden.
TEST(Hidden, OtherPathsCount) {
  const auto f = [](const Tensor& x) {
    const Tensor root = sqrt(x);
    return sum(where(gt(x, 1), root, zeros_like(x))) + sum(root);
  };
  const Tensor g = grad(f)(tensor_of({2}, {0, 4}, DType::F64));
  EXPECT_EQ(differs(g, tensor_of({2}, {HUGE_VAL, 0.5}, DType::F64)), "");
}
}  // namespace
