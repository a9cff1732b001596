// custom_vjp and custom_jvp: the user's rule is the derivative, at every level, and errors say what is wrong.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/verify.h"

#include "support.h"

namespace test_custom {  // files of this room are compiled several at a time
namespace {
using namespace lamella;
using namespace lamella::tests;
using namespace lamella::verify;

const Tensor& point() {
  static const Tensor x = f64({3}, {0.5, -1.25, 2});
  return x;
}
void expect_equal(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(type_str(got), type_str(want));
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13 * (1 + std::abs(b[i]))) << i;
}
Tensor diag(const Tensor& v) { return eye(v.size(0), {}, v.dtype()) * v; }

/// sin, three ways: `scale` times its derivative, so that which rule ran shows.
Function sin_keeping_argument(double scale = 1) {
  return custom_vjp(
      [](const Tensors& xs) { return std::pair(Tensors{sin(xs[0])}, Tensors{xs[0]}); },
      [scale](const Tensors& kept, const Tensors& u) { return Tensors{u[0] * cos(kept[0]) * scale}; });
}
Function sin_keeping_slope(double scale = 1) {
  return custom_vjp(
      [](const Tensors& xs) { return std::pair(Tensors{sin(xs[0])}, Tensors{cos(xs[0])}); },
      [scale](const Tensors& kept, const Tensors& u) { return Tensors{u[0] * kept[0] * scale}; });
}
Function sin_forward(double scale = 1) {
  return custom_jvp([](const Tensors& xs) { return Tensors{sin(xs[0])}; },
                    [scale](const Tensors& xs, const Tensors&, const Tensors& t) {
                      return Tensors{t[0] * cos(xs[0]) * scale};
                    });
}
std::vector<Function> all_sines(double scale = 1) {
  return {sin_keeping_argument(scale), sin_keeping_slope(scale), sin_forward(scale)};
}
UnaryFunction one(const Function& f) {
  return [f](const Tensor& x) { return f({x})[0]; };
}
UnaryFunction total(const Function& f) {
  return [f](const Tensor& x) { return sum(f({x})[0]); };
}

TEST(CustomRule, IsTheDerivativeAtEveryLevel) {
  const Tensor& x = point();
  const Tensor t = f64({3}, {1, 2, 3}), first = cos(x) * 3, second = -sin(x) * 3;
  for (const Function& f : all_sines(3)) {
    expect_equal(f({x})[0], sin(x));
    expect_equal(grad(total(f))(x), first);
    expect_equal(vmap(grad(one(f)))(x), first);
    expect_equal(grad([&](const Tensor& y) { return sum(vmap(one(f))(y)); })(x), first);
    expect_equal(jvp(f, {x}, {t}).tangents[0], t * first);
    expect_equal(vmap([&](const Tensors& a) { return jvp(f, {a[0]}, {a[1]}).tangents; })({x, t})[0],
                 t * first);
    expect_equal(jvp([&](const Tensors& y) { return vmap(f)(y); }, {x}, {t}).tangents[0], t * first);
    // Twice: the rule's own code is differentiated.
    expect_equal(grad([&](const Tensor& y) { return sum(grad(total(f))(y)); })(x), second);
    expect_equal(grad([&](const Tensor& y) { return sum(vmap(grad(one(f)))(y)); })(x), second);
    expect_equal(jvp([&](const Tensors& y) { return Tensors{grad(total(f))(y[0])}; }, {x}, {t}).tangents[0],
                 t * second);
    expect_equal(grad([&](const Tensor& y) { return sum(jvp(f, {y}, {t}).tangents[0]); })(x), t * second);
    expect_equal(hessian(total(f))(x), diag(second));
    expect_equal(jacfwd(jacfwd(total(f)))(x), diag(second));
    // Values under derivatives have the rule's derivative, too: the sum of f and of its gradient.
    expect_equal(grad([&](const Tensor& y) {
                   const Tensors both = value_and_grad([&](const Tensors& a) { return total(f)(a[0]); })({y});
                   return both[0] + sum(both[1]);
                 })(x),
                 first + second);
  }
}

TEST(CustomRule, IsTheDerivativeInBaseAutograd) {
  for (const Function& f : all_sines(3)) {
    const Tensor x = requires_grad(point());
    backward(sum(f({x})[0]), {}, {.create_graph = true});
    const Tensor g = grad_of(x);
    clear_grad(x);
    expect_equal(detach(g), cos(point()) * 3);
    backward(sum(g));
    expect_equal(grad_of(x), -sin(point()) * 3);
    clear_grad(x);
    backward(sum(vmap(one(f))(x)));
    expect_equal(grad_of(x), cos(point()) * 3);
    clear_grad(x);
    // Of a gradient by a level.
    backward(sum(grad(total(f))(x)));
    expect_equal(grad_of(x), -sin(point()) * 3);
  }
}

TEST(CustomRule, HoldsWhatDerivativesHold) {
  for (const Function& f : all_sines()) {
    const CustomRuleReport r = check_custom_rule(f, {point()});
    EXPECT_TRUE(r) << r.text();
  }
  // Several arguments and values, one of them an integer, residuals of all three kinds.
  const Function f = custom_vjp(
      [](const Tensors& a) {
        const Tensor y = a[0] * a[1], z = exp(a[0]);
        return std::pair(Tensors{y, z, argmax(a[0])}, Tensors{a[1], z, exp(a[0]) - exp(-a[0])});
      },
      [](const Tensors& kept, const Tensors& u) {
        return Tensors{u[0] * kept[0] + u[1] * kept[1],
                       sum_to_size(u[0] * (lamella::log(kept[2] * 0.5 + sqrt(kept[2] * kept[2] * 0.25 + 1))),
                                   kept[0].sizes())};
      });
  const CustomRuleReport r = check_custom_rule(f, {f64({2, 2}, {0.5, -0.25, 1, 0.75}), f64({2}, {3, -2})});
  EXPECT_TRUE(r) << r.text();
}

TEST(CustomRule, OfComplexFunctionsFollowsTheConvention) {
  const auto scalar = [](double re, double im) {
    return tensor_of({1}, {re}, DType::F64) + Scalar(c128(0, im));
  };
  const Tensor x = scalar(0.5, -1), w = scalar(2, 0.25);
  const Function reverse = custom_vjp(
      [](const Tensors& a) {
        return std::pair(Tensors{a[0] * a[1]}, Tensors{a[0], a[1]});
      },
      [](const Tensors& kept, const Tensors& u) {
        return Tensors{u[0] * conj(kept[1]), u[0] * conj(kept[0])};
      });
  const Function forward = custom_jvp(
      [](const Tensors& a) { return Tensors{a[0] * a[1]}; },
      [](const Tensors& a, const Tensors&, const Tensors& t) { return Tensors{t[0] * a[1] + a[0] * t[1]}; });
  for (const Function& f : {reverse, forward}) {
    const CustomRuleReport r = check_custom_rule(f, {x, w});
    EXPECT_TRUE(r) << r.text();
  }
}

TEST(CustomRule, ThatIsWrongIsFound) {
  for (const Function& f : all_sines(3)) EXPECT_FALSE(check_custom_rule(f, {point()}));
  for (const Function& f : all_sines(3)) EXPECT_TRUE(check_custom_rule(f, {point()}, {.differences = false}));
  const Function clipped =
      custom_vjp([](const Tensors& xs) { return std::pair(Tensors{xs[0] * 2}, Tensors{}); },
                 [](const Tensors&, const Tensors& u) {
                   return Tensors{clamp(u[0], f64({}, {-0.125}), f64({}, {0.125}))};
                 });
  EXPECT_FALSE(check_custom_rule(clipped, {point()}, {.differences = false}));
  const CustomRuleReport r =
      check_custom_rule(clipped, {point()}, {.differences = false, .transposition = false});
  EXPECT_TRUE(r) << r.text();
  // One that looks at the batch: mean over all elements, which under vmap are those of a lane.
  EXPECT_TRUE(check_custom_rule(
      custom_vjp([](const Tensors& xs) { return std::pair(Tensors{xs[0] * 2}, Tensors{}); },
                 [](const Tensors&, const Tensors& u) { return Tensors{u[0] - mean(u[0])}; }),
      {point()}, {.differences = false}));
}

/// x * c for a captured c, whose rule captures it as well.
Function times(const Tensor& c) {
  return custom_vjp([c](const Tensors& xs) { return std::pair(Tensors{xs[0] * c}, Tensors{}); },
                    [c](const Tensors&, const Tensors& u) { return Tensors{u[0] * c}; });
}
Function times_forward(const Tensor& c) {
  return custom_jvp([c](const Tensors& xs) { return Tensors{xs[0] * c}; },
                    [c](const Tensors&, const Tensors&, const Tensors& t) { return Tensors{t[0] * c}; });
}

TEST(CustomRule, DrawsAgainWhatItDrew) {
  const Function square = custom_vjp(
      [](const Tensors& x) {
        const Tensor mask = rand({3}, {}, DType::F64);
        return std::pair(Tensors{x[0] * x[0] * mask}, Tensors{x[0] * mask});
      },
      [](const Tensors& saved, const Tensors& u) { return Tensors{u[0] * saved[0] * 2}; });
  const UnaryFunction loss = [&](const Tensor& x) { return sum(square({x})[0]); };
  const UnaryFunction slope = [&](const Tensor& x) { return sum(grad(loss)(x)); };
  manual_seed(3);
  const Tensor mask = rand({3}, {}, DType::F64), next = rand({});
  manual_seed(3);
  EXPECT_EQ(grad(slope)(tensor_of({3}, {1, 2, 3}, DType::F64)).to_vector(), (mask * 2).to_vector());
  EXPECT_EQ(rand({}).to_vector(), next.to_vector());
}

TEST(CustomRule, MayCaptureLanes) {
  const Tensor &x = point(), w = f64({3}, {3, 4, 5});
  for (const auto& make : {times, times_forward}) {
    const Function mapped = vmap([&](const Tensors& a) { return make(a[1])({a[0]}); });
    expect_equal(mapped({x, w})[0], x * w);
    expect_equal(vmap([&](const Tensors& a) {
                   return Tensors{grad([&](const Tensor& y) { return make(a[1])({y})[0]; })(a[0])};
                 })({x, w})[0],
                 w);
    // vmap has ended when backward calls the rule: it is opened again.
    expect_equal(grad([&](const Tensor& y) { return sum(mapped({y, w})[0]); })(x), w);
    expect_equal(jvp([&](const Tensors& y) { return mapped({y[0], w}); }, {x}, {x}).tangents[0], x * w);
    // Two of them, one captured value from each.
    const Function grid = vmap([&](const Tensors& a) {
      return vmap([&](const Tensors& b) { return make(a[1] * b[0])({a[0]}); })({w});
    });
    expect_equal(grad([&](const Tensor& y) { return sum(grid({y, w})[0]); })(x), w * sum(w));
    const Tensor leaf = requires_grad(x);
    backward(sum(mapped({leaf, w})[0]));
    expect_equal(grad_of(leaf), w);
  }
}

TEST(CustomRule, RefusesDerivativesOfWhatItCaptures) {
  const Tensor& x = point();
  for (const auto& make : {times, times_forward}) {
    const UnaryFunction f = [&](const Tensor& y) { return sum(make(y * 1)({x})[0]); };
    EXPECT_REFUSED(grad(f)(x), "its result 0 depends on a value of grad#1 that the function captures");
    EXPECT_REFUSED(jvp([&](const Tensors& y) { return Tensors{f(y[0])}; }, {x}, {x}), "a value of jvp#1");
    EXPECT_REFUSED(vmap(grad(f))(stack({x, x}, 0)), "a value of grad#2");
    EXPECT_REFUSED(grad([&](const Tensor& y) {
                     return sum(vmap([&](const Tensor& c) { return make(c)({c * 0})[0]; })(y));
                   })(x),
                   "a value of grad#1");
    const Tensor leaf = requires_grad(x);
    EXPECT_REFUSED(f(leaf), "a tensor that requires grad, which the function captures");
    const NoGrad off;
    expect_equal(f(leaf), sum(x * x));
  }
  // What only the rule captures is a constant to it.
  expect_equal(
      grad([&](const Tensor& y) {
        const Tensor c = y * 1;
        return sum(custom_vjp([](const Tensors& a) { return std::pair(Tensors{a[0] * 2}, Tensors{}); },
                              [c](const Tensors&, const Tensors& u) { return Tensors{u[0] * c}; })({y})[0]);
      })(x),
      x);
}

TEST(CustomRule, SaysWhatIsWrongWithIt) {
  const Tensor& x = point();
  const auto with = [](BackwardRule rule) {
    return custom_vjp([](const Tensors& a) { return std::pair(Tensors{a[0] * 2}, Tensors{}); },
                      std::move(rule));
  };
  const auto gradient = [&](const Function& f) { return grad(total(f))(x); };
  EXPECT_REFUSED(gradient(with([](const Tensors&, const Tensors&) { return Tensors{}; })),
                 "custom_vjp: the rule gave 0 cotangents, expected 1, one for each argument");
  EXPECT_REFUSED(gradient(with([](const Tensors&, const Tensors& u) { return Tensors{sum(u[0])}; })),
                 "custom_vjp: cotangent 0 of the rule is f64[], expected the sizes of argument 0, f64[3]");
  EXPECT_REFUSED(
      gradient(with([](const Tensors&, const Tensors& u) { return Tensors{to(u[0], DType::F32)}; })),
      "custom_vjp: cotangent 0 of the rule is f32[3], expected the dtype of argument 0, f64[3]");
  EXPECT_REFUSED(gradient(with([](const Tensors&, const Tensors& u) {
                   return Tensors{to_device(u[0], Device::Reference)};
                 })),
                 "custom_vjp: cotangent 0 of the rule is on reference, expected cpu as argument 0");
  EXPECT_REFUSED(
      gradient(custom_jvp([](const Tensors& a) { return a; },
                          [](const Tensors&, const Tensors&, const Tensors&) { return Tensors{}; })),
      "custom_jvp: the rule gave 0 tangents, expected 1, one for each value");
  EXPECT_REFUSED(with({})({Tensor()}), "custom_vjp: argument 0 is an undefined tensor");
  EXPECT_REFUSED(custom_jvp([](const Tensors&) { return Tensors{Tensor()}; }, {})({x}),
                 "custom_jvp: value 0 of the function is an undefined tensor");
  const Function writes = custom_jvp(
      [](const Tensors& a) {
        Tensor y = a[0];
        mul_(y, f64({}, {2}));
        return Tensors{y};
      },
      {});
  EXPECT_REFUSED(writes({clone(x)}), "custom_jvp: the function wrote to its argument 0");
  EXPECT_REFUSED(grad(total(writes))(clone(x)), "custom_jvp: the function wrote to its argument 0");
  EXPECT_REFUSED(vmap(writes)({clone(x)}), "custom_jvp: the function wrote to its argument 0");
  // An absent cotangent is zero.
  expect_equal(gradient(with([](const Tensors&, const Tensors&) { return Tensors{Tensor()}; })), x * 0);
}

TEST(CustomRule, WritesToNothingItIsGiven) {
  const Tensor& x = point();
  const Tensor u = ones_like(x);
  const auto twice = [](const Tensor& t) { mul_(t, f64({}, {2})); };
  const auto with = [](auto rule) {
    return custom_vjp([](const Tensors& a) { return std::pair(Tensors{a[0] * a[0]}, Tensors{a[0]}); }, rule);
  };
  const Function to_residual = with([&](const Tensors& r, const Tensors& c) {
    twice(r[0]);
    return Tensors{r[0] * c[0]};
  });
  const Function to_cotangent = with([&](const Tensors& r, const Tensors& c) {
    twice(c[0]);
    return Tensors{r[0] * c[0]};
  });
  EXPECT_REFUSED(vjp(to_residual, {clone(x)}).pullback({u}), "custom_vjp: the rule wrote to its residual 0");
  EXPECT_REFUSED(vjp(to_cotangent, {x}).pullback({clone(u)}),
                 "custom_vjp: the rule wrote to its cotangent 0");
  const auto lanes = [&](const Function& f) {  // one lane, so that memory is that of the lane alone
    const Function g = [&](const Tensors& a) { return vjp(f, {a[0] * 1}).pullback({a[1] * 1}); };
    return vmap(g)({unsqueeze(x, 0), unsqueeze(u, 0)});
  };
  EXPECT_REFUSED(lanes(to_residual), "custom_vjp: the rule wrote to its residual 0");
  EXPECT_REFUSED(lanes(to_cotangent), "custom_vjp: the rule wrote to its cotangent 0");
  const Function square = [](const Tensors& a) { return Tensors{a[0] * a[0]}; };
  const auto forward = [&](int which) {
    const ForwardRule rule = [=](const Tensors& xs, const Tensors& ys, const Tensors& ts) {
      twice((which == 0 ? xs : which == 1 ? ys : ts)[0]);
      return Tensors{xs[0] * ts[0] * 2};
    };
    return custom_jvp(square, rule);
  };
  EXPECT_REFUSED(jvp(forward(0), {clone(x)}, {u}), "custom_jvp: the rule wrote to its primal 0");
  EXPECT_REFUSED(jvp(forward(1), {x}, {u}), "custom_jvp: the rule wrote to its value 0");
  EXPECT_REFUSED(jvp(forward(2), {x}, {clone(u)}), "custom_jvp: the rule wrote to its tangent 0");
}

TEST(CustomRule, ThatThrowsLeavesNoTrace) {
  struct Mine {};
  const Tensor& x = point();
  bool throws = true;
  const Function f = custom_vjp([](const Tensors& a) { return std::pair(Tensors{a[0] * 2}, Tensors{a[0]}); },
                                [&](const Tensors&, const Tensors& u) {
                                  if (throws) throw Mine{};
                                  return Tensors{u[0] * 2};
                                });
  const DispatchState before = dispatch_state();
  const auto whole = [&] {
    const DispatchState& now = dispatch_state();
    EXPECT_EQ(now.depth, before.depth);
    EXPECT_EQ(now.exclude, before.exclude);
    EXPECT_EQ(now.ambient, before.ambient);
  };
  const VjpResult r = vjp([&](const Tensors& a) { return vmap(f)(a); }, {x});
  EXPECT_THROW(r.pullback({x}), Mine);
  whole();
  EXPECT_THROW(vmap(grad(one(f)))(x), Mine);
  whole();
  EXPECT_THROW(jvp(f, {x}, {x}), Mine);
  whole();
  const Tensor leaf = requires_grad(x), y = sum(f({leaf})[0]);
  EXPECT_THROW(backward(y), Mine);
  whole();
  EXPECT_FALSE(grad_of(leaf).defined());
  throws = false;
  backward(y);
  expect_equal(grad_of(leaf), x * 0 + 2);
  expect_equal(r.pullback({x})[0], x * 2);
}

TEST(CustomRule, RunsInPullbacksUnderOtherLevels) {
  const Tensor &x = point(), w = f64({3}, {3, 4, 5});
  for (const Function& f : all_sines()) {
    const VjpResult r = vjp([&](const Tensors& a) { return vmap(f)(a); }, {x});
    // The new vmap has the place that grad had.
    const Tensor rows = vmap([&](const Tensors& u) { return r.pullback(u); })({eye(3, {}, DType::F64)})[0];
    expect_equal(rows, diag(cos(x)));
    Tensor elsewhere;
    std::thread([&] { elsewhere = r.pullback({w})[0]; }).join();
    expect_equal(elsewhere, w * cos(x));
    expect_equal(jacrev(one(f))(x), diag(cos(x)));
  }
}

/// A mode without a word about functions sees the operators that they call.
class Counter final : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "counter"; }
  void call(Frame& frame, int key) override {
    const Below below(key);
    sines += frame.op->name == "sin";
    lamella::call(frame);
  }
  int sines = 0;
};

TEST(CustomRule, IsSeenByModes) {
  for (const Function& f : all_sines()) {
    Counter counter;
    const Level level(counter);
    f({point()});
    EXPECT_EQ(counter.sines, 1);
    vmap(one(f))(point());
    EXPECT_EQ(counter.sines, 2);
  }
}

TEST(CustomRule, IsConstantInNoGradScopes) {
  for (const Function& f : all_sines()) {
    const UnaryFunction g = [&](const Tensor& y) {
      const NoGrad off;
      return total(f)(y);
    };
    expect_equal(grad([&](const Tensor& y) { return g(y) + sum(y); })(point()), point() * 0 + 1);
    const Tensor x = requires_grad(point());
    EXPECT_FALSE(is_grad_required(g(x)));
  }
}

TEST(CustomRule, WhatNoRuleReadsMayBeWrittenLater) {
  const Function twice = custom_vjp(
      [](const Tensors& xs) {
        return std::pair(Tensors{xs[0] * 2.0, sin(xs[1])}, Tensors{xs[1]});
      },
      [](const Tensors& kept, const Tensors& u) {
        return Tensors{u[0] * 2.0, u[1] * cos(kept[0])};
      });
  const Tensor x = requires_grad(point()), a = x * 1.0, b = x * 1.0;
  const Tensors ys = twice({a, b});
  add_(ys[0], 1.0), mul_(ys[1], 3.0), mul_(a, 2.0);
  backward(sum(ys[0]) + sum(ys[1]));
  expect_equal(grad_of(x), cos(point()) * 3.0 + 2.0);
  mul_(b, 1.0);
  EXPECT_THROW(backward(sum(ys[1])), Error);  // the rule reads it
}

/// What else a tape needs of them is their type: for cotangents that none gave, in lanes and at any order.
TEST(CustomRule, NeedsNoValueForAbsentCotangents) {
  const Function f = custom_vjp(
      [](const Tensors& xs) {
        return std::pair(Tensors{xs[0] * 2.0, xs[0] * 3.0}, Tensors());
      },
      [](const Tensors&, const Tensors& u) { return Tensors{u[0] * 2.0 + u[1] * 3.0}; });
  const UnaryFunction second = [&](const Tensor& x) { return sum(f({x * x})[1]); };
  expect_equal(grad(second)(point()), point() * 6.0);
  expect_equal(vmap(grad(second))(stack({point(), point()})), stack({point(), point()}) * 6.0);
  expect_equal(hessian(second)(point()), diag(point() * 0.0 + 6.0));
  expect_equal(jacrev(jacrev(second))(point()), diag(point() * 0.0 + 6.0));
  const Tensor x = requires_grad(point());
  const Tensor g = autograd::grad({second(x)}, {x}, {}, {.create_graph = true})[0];
  expect_equal(autograd::grad({sum(g)}, {x})[0], point() * 0.0 + 6.0);
}

}  // namespace
}  // namespace test_custom
