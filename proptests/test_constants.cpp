// stop_gradient and NoGrad under levels; linearize, linear_transpose, hvp and vhp.
#include <gtest/gtest.h>

#include "lamella/lamella.h"

namespace test_constants {  // files of this room are compiled several at a time
namespace {
using namespace lamella;

Tensor one_two() { return tensor_of({2}, {1, 2}, DType::F64); }
Tensor rows() { return reshape(arange(6, {}, {}, DType::F64), {3, 2}); }
std::string text(const Tensors& ts) {
  std::string out;
  for (const Tensor& t : ts) out += (out.empty() ? "" : " ") + str(t);
  return out;
}

/// The derivative of a function of x = [1, 2] to scalars: by grad, by jacfwd, by backward, and in lanes.
void expect_slope(const UnaryFunction& f, const std::string& want) {
  const Tensor x = one_two(), leaf = requires_grad(one_two());
  EXPECT_EQ(str(grad(f)(x)), want) << "grad";
  EXPECT_EQ(str(jacfwd(f)(x)), want) << "jacfwd";
  backward(f(leaf));
  EXPECT_EQ(str(grad_of(leaf)), want) << "backward";
  EXPECT_EQ(str(select(vmap(grad(f))(stack(Tensors{x * 2, x}, 0)), 0, 1)), want) << "vmap of grad";
  const UnaryFunction in_lanes = [&](const Tensor& t) { return sum(vmap(f)(unsqueeze(t, 0))); };
  EXPECT_EQ(str(grad(in_lanes)(x)), want) << "grad of vmap";
  EXPECT_EQ(str(x), "f64[2] [1, 2]");
}

TEST(StopGradient, IsAConstantAtEveryLevel) {
  expect_slope([](const Tensor& t) { return sum(stop_gradient(t) * t * t); }, "f64[2] [2, 8]");
  const UnaryFunction f = [](const Tensor& t) { return sum(stop_gradient(t) * t * t); };
  EXPECT_EQ(str(hessian(f)(one_two())), "f64[2,2] [[2, 0], [0, 4]]");
  EXPECT_EQ(str(grad(UnaryFunction([&](const Tensor& t) { return sum(grad(f)(t)); }))(one_two())),
            "f64[2] [2, 4]");
}

TEST(StopGradient, SeesWritesToItsBase) {
  expect_slope(
      [](const Tensor& t) {
        const Tensor y = t * 1, d = stop_gradient(y);
        mul_(y, stop_gradient(t));
        return sum(d * t);
      },
      "f64[2] [1, 4]");
}

TEST(NoGradLevels, RefuseOverlapsAsThePlainCallDoes) {
  const UnaryFunction f = [](const Tensor& t) {
    const Tensor y = t * 2;
    const NoGrad off;
    div_(y, select(y, 0, 0));
    return sum(y);
  };
  for (const bool under : {false, true}) try {
      (void)(under ? grad(f)(one_two()) : f(one_two()));
      ADD_FAILURE() << "accepted, under grad: " << under;
    } catch (const Error& e) { EXPECT_EQ(e.code(), ErrorCode::Overlap); }
}

TEST(NoGradLevels, WhatTheyMakeHasViewsThatAreNoConstantsForEver) {
  const UnaryFunction f = [](const Tensor& t) {
    Tensor c;
    {
      const NoGrad off;
      c = t * t;
    }
    const Tensor v = select(c, 0, 0);
    add_(c, t);
    return v;
  };
  const Tensor leaf = requires_grad(one_two());
  backward(f(leaf));
  EXPECT_EQ(str(grad_of(leaf)), "f64[2] [1, 0]");
  try {  // levels refuse it: what they do not know of has views
    EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [1, 0]");
  } catch (const Error& e) { EXPECT_EQ(e.code(), ErrorCode::Level); }
}

TEST(StopGradient, TakesWritesOfValuesAlone) {
  for (const bool forward : {false, true}) {
    const UnaryFunction f = [](const Tensor& t) {
      const Tensor y = t * t, v = select(y, 0, 0);
      fill_(select(stop_gradient(y), 0, 0), 7.0);
      return sum(y * t) + v;
    };
    EXPECT_EQ(f(one_two()).item<double>(), 7 + 8 + 7);
    // d(y t) = y + 2 t t, and d v = 2 t: the write changed y, not its derivative.
    EXPECT_EQ(str(forward ? jacfwd(f)(one_two()) : grad(f)(one_two())), "f64[2] [11, 12]");
  }
}

TEST(NoGrad, IsConstantForLevelsOpenBefore) {
  expect_slope(
      [](const Tensor& t) {
        Tensor c;
        {
          const NoGrad no;
          c = t * t;
        }
        return sum(c * t);
      },
      "f64[2] [1, 4]");
}

TEST(NoGrad, LetsLevelsInsideRecord) {
  const UnaryFunction cubes = [](const Tensor& t) { return sum(t * t * t); };
  {
    const NoGrad no;
    EXPECT_EQ(str(grad(cubes)(one_two())), "f64[2] [3, 12]");
    EXPECT_EQ(str(jacfwd(cubes)(one_two())), "f64[2] [3, 12]");
  }
  const UnaryFunction f = [&](const Tensor& t) {
    Tensor slope;
    {
      const NoGrad no;
      slope = grad(cubes)(t);
    }
    return sum(slope * t);
  };
  EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [3, 12]");
}

TEST(NoGrad, WritesChangeValuesAndNotDerivatives) {
  expect_slope(
      [](const Tensor& t) {
        const Tensor y = t * 1;
        {
          const NoGrad no;
          mul_(y, t);
          fill_(select(y, 0, 0), 7.0);
          add_(y, y);
        }
        return sum(y * stop_gradient(t)) + sum(stop_gradient(y) * t);  // t + y
      },
      "f64[2] [15, 10]");
}

TEST(NoGrad, LeavesFreshTensorsPlain) {
  const UnaryFunction f = [](const Tensor& t) {
    const Tensor sums = zeros({2}, DType::F64);
    {
      const NoGrad no;
      add_(sums, t);
      mul_out(sums, sums, t);
    }
    return sum(sums * t);
  };
  EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [1, 4]");
  EXPECT_EQ(str(jacfwd(f)(one_two())), "f64[2] [1, 4]");
}

TEST(NoGrad, IsLiftedByEnableGrad) {
  expect_slope(
      [](const Tensor& t) {
        const NoGrad no;
        const EnableGrad yes;
        return sum(t * t);
      },
      "f64[2] [2, 4]");
  expect_slope(
      [](const Tensor& t) {
        Tensor c;
        {
          const NoGrad no;
          { const EnableGrad yes; }
          c = t * t;
        }
        return sum(c * t);
      },
      "f64[2] [1, 4]");
}

TEST(NoGrad, EndsWithAnException) {
  const UnaryFunction f = [](const Tensor& t) {
    try {
      const NoGrad no;
      (void)reshape(t, {7});
    } catch (const Error&) {}
    return sum(t * t);
  };
  EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [2, 4]");
  EXPECT_EQ(dispatch_state().depth, 0);
  EXPECT_EQ(dispatch_state().modes, 0u);
}

TEST(Linearize, IsJvpAndRunsTheFunctionOnce) {
  int calls = 0;
  const Function f = [&](const Tensors& v) {
    ++calls;
    return Tensors{v[0] * v[0] * v[1], argmax(v[0]), sum(v[1])};
  };
  const Tensor x = one_two();
  const Linearized l = linearize(f, {x, x * 3});
  EXPECT_EQ(text(l.values), "f64[2] [3, 24] i64[] 1 f64[] 9");
  EXPECT_EQ(text(l.map({x, x})), text(jvp(f, {x, x * 3}, {x, x}).tangents));
  EXPECT_EQ(text(l.map({Tensor(), x})), text(jvp(f, {x, x * 3}, {Tensor(), x}).tangents));
  EXPECT_EQ(calls, 3);
  const Function in_lanes = vmap(Function([&](const Tensors& t) {
    return Tensors{l.map({t[0], Tensor()})[0]};
  }));
  EXPECT_EQ(str(in_lanes({eye(2, {}, DType::F64)})[0]), "f64[2,2] [[6, 0], [0, 24]]");
}

TEST(Linearize, DifferentiatesInThePoint) {
  const UnaryFunction f = [](const Tensor& t) {
    const Linearized l = linearize([](const Tensors& v) { return Tensors{v[0] * v[0]}; }, {t});
    return sum(l.map({t})[0]);  // 2 t t
  };
  EXPECT_EQ(str(grad(f)(one_two())), "f64[2] [4, 8]");
  EXPECT_EQ(str(vmap(grad(f))(rows())), str(rows() * 4));
  EXPECT_EQ(str(jacfwd(f)(one_two())), "f64[2] [4, 8]");
}

TEST(Linearize, OutlivesItsLevels) {
  Function kept;
  const UnaryFunction f = [&](const Tensor& t) {
    kept = linearize([](const Tensors& v) { return Tensors{v[0] * v[0]}; }, {one_two()}).map;
    return sum(t);
  };
  (void)grad(f)(one_two());
  EXPECT_EQ(str(kept({one_two()})[0]), "f64[2] [2, 8]");
}

TEST(LinearTranspose, ConjugatesNothing) {
  const Tensor z = complex(one_two(), one_two() * 2);
  const Tensor a = complex(reshape(arange(4, {}, {}, DType::F64), {2, 2}), ones({2, 2}, DType::F64));
  const Function f = [&](const Tensors& v) { return Tensors{mv(a, v[0])}; };
  EXPECT_EQ(str(linear_transpose(f, {z})({z})[0]), str(mv(transpose(a, 0, 1), z)));
  EXPECT_EQ(str(linear_transpose(f, {z})({Tensor()})[0] + 0), "c128[2] [0+0j, 0+0j]");
}

TEST(HessianProducts, AreTheHessianTimesAVector) {
  const ScalarFunction f = [](const Tensors& v) { return sum(v[0] * v[0] * v[0] * v[1]); };
  const Tensor x = one_two(), v = tensor_of({2}, {1, -1}, DType::F64);
  const HessianProduct forward = hvp(f, {x, x * 2}, {v, x}), reverse = vhp(f, {x, x * 2}, {v, x});
  EXPECT_EQ(str(forward.value), "f64[] 34");
  EXPECT_EQ(text(forward.gradients), "f64[2] [6, 48] f64[2] [1, 8]");
  EXPECT_EQ(text(forward.products), "f64[2] [15, -24] f64[2] [3, -12]");
  EXPECT_EQ(text(reverse.gradients) + text(reverse.products),
            text(forward.gradients) + text(forward.products));
  EXPECT_EQ(str(hvp(f, {x, x}, {v, Tensor()}).products[1]), "f64[2] [3, -12]");
}
}  // namespace
}  // namespace test_constants
