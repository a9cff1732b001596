// gradcheck and check_operator answer rightly where a wrong derivative hides well, or raises.
#include <cmath>
#include <gtest/gtest.h>
#include <stdexcept>

#include "lamella/core/plan.h"
#include "lamella/dispatch/table.h"
#include "lamella/draw/draw.h"
#include "lamella/ops/infer.h"
#include "lamella/verify.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;
using namespace lamella::verify;

using Change = std::function<Tensor(const Tensor& direction, const Tensor& x)>;
/// What the derivatives of `faulty_identity` make of a direction; the function itself is x.
Change jvp_change, vjp_change;

void identity_kernel(const KernelCall& call) {
  const IterPlan plan = make_plan(call.outs, call.ins);
  visit_dtype(call.compute, [&]<class T>(type_tag<T>) {
    if constexpr (is_floating_type<T>)
      for_each_outer(plan, 0, [](char* const* at) {
        *reinterpret_cast<T*>(at[0]) = *reinterpret_cast<const T*>(at[1]);
      });
  });
}

/// x, with derivatives changed so.
Tensor faulty(const Tensor& x, Change jvp, Change vjp) {
  static const bool once = [] {
    OpTable::add({.schema = "faulty_identity(Tensor x) -> Tensor",
                  .shape = ShapeClass::Broadcast,
                  .infer = ops::infer_same,
                  .kernel = {.cpu = identity_kernel, .reference = identity_kernel},
                  .jvp = Rules{wrt("x", saves("x"),
                                   [](Tensor t, Tensor x) { return jvp_change ? jvp_change(t, x) : t; })},
                  .vjp = Rules{wrt("x", saves("x"),
                                   [](Tensor u, Tensor x) { return vjp_change ? vjp_change(u, x) : u; })},
                  .properties = kNoOut | kNoInPlace | kTestOnly,
                  .samples = [](Draw& d) -> Values { return {d.tensor(d.shape(), d.dtype(kFloating))}; },
                  .doc = "x"});
    return true;
  }();
  (void)once;
  jvp_change = std::move(jvp), vjp_change = std::move(vjp);
  return call("faulty_identity", {x})[0];
}
Tensor faulty(const Tensor& x, const Change& both) { return faulty(x, both, both); }

/// What the levels of jvp and vjp know is gone.
Tensor frozen(const Tensor& t) {
  if (!t.impl()->wrap || !(t.keys() >> kFirstLevelKey)) return t;
  return frozen(static_cast<const Wrapper*>(t.impl()->wrap)->value);
}
Change times(const Tensor& w) {
  return [w](const Tensor& d, const Tensor&) { return d * to(w, d.dtype()); };
}
constexpr OracleKind kBoth[] = {OracleKind::Reference, OracleKind::Differences};

// --- conditions that are not numbers ---

TEST(GradcheckVerdicts, AConditionMeasuredOutsideTheDomainAcceptsNothing) {
  const auto f = [](bool right) {
    return [right](const Tensor& x) { return x - log(right ? x : frozen(x)) * 1e-6; };
  };
  for (const double at : {5e-5, 1e-9, 1e-300}) {
    EXPECT_FALSE(gradcheck(f(false), f64({at}))) << at;
    const GradcheckReport r = gradcheck(f(true), f64({at}));
    EXPECT_TRUE(r) << r.text();
  }
}

TEST(GradcheckVerdicts, AConditionThatOverflowsAcceptsNothing) {
  const Change wrong = times(f64({1.02}));
  for (const OracleKind kind : kBoth)
    for (const double at : {709.76, 709.7826}) {
      const GradcheckReport r =
          gradcheck([&](const Tensor& x) { return exp(faulty(x, wrong)); }, f64({at}), {.oracle = kind});
      EXPECT_FALSE(r) << at;
      const GradcheckReport right =
          gradcheck([](const Tensor& x) { return exp(x); }, f64({at}), {.oracle = kind});
      EXPECT_TRUE(right) << right.text();
    }
}

TEST(GradcheckVerdicts, AnInfiniteValueHasNoSlope) {
  for (const OracleKind kind : kBoth) {
    const GradcheckReport r =
        gradcheck([](const Tensor& x) { return exp(x * x); }, f64({1e5, 0.5}), {.oracle = kind});
    EXPECT_TRUE(r) << r.text();
    EXPECT_GE(r.not_smooth, 1u);
    EXPECT_EQ(r.kinks.at(0).kink, Kink::NotDifferentiable) << r.text();
  }
}

// --- small entries beside large ones ---

TEST(GradcheckVerdicts, AWrongRowOfThePullbackShowsBesideLargeOnes) {
  const Change wrong = times(f64({1, 2}));
  for (const double large : {50.0, 300.0, 700.0}) {
    const GradcheckReport r =
        gradcheck([&](const Tensor& x) { return faulty(exp(x), {}, wrong); }, f64({large, 0}));
    ASSERT_EQ(r.wrong, 1u) << large << r.text();
    EXPECT_EQ(r.findings[0].result.at, Dims{1});
    EXPECT_EQ(r.findings[0].got, 2 * r.findings[0].expected);
  }
}

TEST(GradcheckVerdicts, AWrongColumnShowsBesideALargeVariable) {
  const Change wrong = times(f64({2}));
  const auto check = [&](const Change& jvp, double large, double unit) {
    const GradcheckReport r =
        gradcheck([&](const Tensors& a) { return Tensors{a[0] / unit + faulty(a[1], jvp, wrong) / unit}; },
                  {f64({large}), f64({1})});
    EXPECT_EQ(r.wrong, 1u) << large << r.text();
  };
  for (const double large : {1e4, 1e16})
    for (const Change& jvp : {wrong, Change{}}) check(jvp, large, 1), check(jvp, large, large);
  check({}, 1e100, 1e100);  // differences of a sum of 1 and 1e-100 see nothing: the pullback alone
}

/// Entries i and k change places.
Change swapping(int64_t n, int64_t i, int64_t k) {
  const Tensor index = arange(n);
  int64_t* const order = static_cast<int64_t*>(index.raw_data());
  std::swap(order[i], order[k]);
  return [index](const Tensor& d, const Tensor&) { return index_select(d, 0, index); };
}

TEST(GradcheckVerdicts, SwappedPartialDerivativesShowAtEveryPair) {
  constexpr int64_t kN = 24;
  const Tensor w = to(arange(kN), DType::F64) + 1.0, x = w / 16.0 - 0.7;
  int hidden = 0;
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t k = 0; k < i; ++k)
      for (const bool in_jvp : {true, false}) {
        const Change swap = swapping(kN, i, k);
        hidden += bool(gradcheck(
            [&](const Tensor& v) { return sum(faulty(v, in_jvp ? swap : Change{}, swap) * w); }, x));
      }
  EXPECT_EQ(hidden, 0);
}

TEST(GradcheckVerdicts, AFlatKinkOnASteepSlopeIsListed) {
  for (const double slope : {4000.0, 1e6}) {
    const GradcheckReport r = gradcheck([&](const Tensor& x) { return x * slope + abs(x); }, f64({1, 0, -2}));
    EXPECT_TRUE(r) << r.text();
    EXPECT_EQ(r.not_smooth, 1u) << slope << r.text();
  }
}

// --- one roundoff for each entry ---

TEST(GradcheckVerdicts, ANarrowInputDoesNotLoosenWhatItDoesNotTouch) {
  const Change wrong = times(tensor_of({}, {1 + 1e-6}, DType::F64));
  for (const DType narrow : {DType::BF16, DType::F16, DType::F32})
    for (const OracleKind kind : kBoth) {
      const Tensors at{to(f64({0.5, -1.25}), narrow), f64({0.3, 0.7})};
      const auto f = [&](const Change& change) {
        return [change](const Tensors& a) { return Tensors{a[0] * a[1], sin(faulty(a[1], change)), a[0]}; };
      };
      const GradcheckReport r = gradcheck(f(wrong), at, {.oracle = kind});
      ASSERT_GE(r.wrong, 2u) << r.text();
      EXPECT_EQ(r.findings[0].result.tensor, 1) << r.text();
      EXPECT_EQ(r.findings[0].input.tensor, 1) << r.text();
      const GradcheckReport product = gradcheck(
          [&](const Tensors& a) { return Tensors{a[0] * faulty(a[1], wrong)}; }, at, {.oracle = kind});
      EXPECT_FALSE(product);
      const GradcheckReport right = gradcheck(f({}), at, {.batched = true, .oracle = kind});
      EXPECT_TRUE(right) << right.text();
      const GradcheckReport inside = gradcheck(
          [](const Tensors& a) {
            return Tensors{sin(a[0]) * a[1], exp(a[0]) / a[1]};
          },
          at, {.oracle = kind});
      EXPECT_TRUE(inside) << inside.text();
    }
}

// --- derivatives that raise ---

Change raising(std::function<bool(const Tensor& direction, const Tensor& x)> when, int how) {
  return [=](const Tensor& d, const Tensor& x) -> Tensor {
    if (when(d, x) && how == 0) throw std::runtime_error("no derivative here");
    if (when(d, x) && how == 1) throw Error(ErrorCode::Value, "no derivative here");
    if (when(d, x)) throw 7;
    return d;
  };
}
bool always(const Tensor&, const Tensor&) { return true; }
bool wrapped(const Tensor& t) { return t.impl()->wrap && (t.keys() >> kFirstLevelKey); }

TEST(GradcheckVerdicts, WhateverADerivativeRaisesIsAFinding) {
  const auto deeper = [](const Tensor& d, const Tensor& x) { return wrapped(d) || wrapped(x); };
  const auto unit = [](const Tensor& d, const Tensor&) { return !wrapped(d) && d.to_vector()[0] == 0; };
  for (const int how : {0, 1, 2}) {
    const auto report = [&](const Change& jvp, const Change& vjp, GradcheckOptions o) {
      const GradcheckReport r =
          gradcheck([&](const Tensor& x) { return sin(faulty(x, jvp, vjp)) * x; }, f64({0.5, 2}), o);
      EXPECT_FALSE(r);
      EXPECT_FALSE(r.findings.empty() || r.findings[0].raised.empty()) << r.text();
      EXPECT_EQ(r.wrong, r.findings.size()) << r.text();
      return r;
    };
    const GradcheckReport pulled = report({}, raising(always, how), {});
    EXPECT_EQ(pulled.findings[0].check, "vjp") << pulled.text();
    report({}, raising(always, how), {.jvp = false});
    report({}, raising(unit, how), {.every_entry = true});
    report(raising(unit, how), {}, {.every_entry = true});
    report({}, raising(deeper, how), {.second_order = true});
    report({}, raising(deeper, how), {.batched = true});
    report(raising(deeper, how), {}, {.second_order = true});
    const GradcheckReport pushed = report(raising(always, how), {}, {.second_order = true, .batched = true});
    EXPECT_EQ(pushed.wrong, 1u) << pushed.text();
  }
}

TEST(GradcheckVerdicts, WhatTheFunctionRaisesIsNoFinding) {
  EXPECT_THROW(gradcheck([](const Tensor&) -> Tensor { throw std::out_of_range("x"); }, f64({1})),
               std::out_of_range);
}

// --- inputs and limits ---

TEST(GradcheckVerdicts, AnUndefinedInputIsPassedOn) {
  const auto f = [](const Tensors& a) { return Tensors{a[1].defined() ? a[0] : sin(a[0]) * a[2]}; };
  const GradcheckReport r =
      gradcheck(f, {f64({0.5}), Tensor(), f64({2})}, {.second_order = true, .batched = true});
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.variables, 2u);
  const GradcheckReport wrong = gradcheck([&](const Tensors& a) { return Tensors{f(a)[0] + frozen(a[2])}; },
                                          {f64({0.5}), Tensor(), f64({2})});
  ASSERT_EQ(wrong.wrong, 1u) << wrong.text();
  EXPECT_EQ(wrong.findings[0].input.tensor, 2);
}

TEST(GradcheckVerdicts, RefusalsNameTheirReason) {
  const auto twice = [](const Tensor& x) { return x * 2.0; };
  EXPECT_NE(refusal([&] { gradcheck(twice, f64({})); }).find("no elements"), std::string::npos);
  EXPECT_NE(refusal([&] { gradcheck(twice, tensor_of({1}, {1}, DType::I64)); }).find("no input is floating"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              gradcheck([](const Tensor& x) { return slice(x, 0, 0, 0, 1); }, f64({1}));
            }).find("no elements"),
            std::string::npos);
  const UnaryFunction random = [](const Tensor& x) {
    return cat({x * rand({1}, {}, DType::F64), log(x)}, 0);
  };
  EXPECT_NE(refusal([&] { gradcheck(random, f64({-1})); }).find("two calls"), std::string::npos);
  const GradcheckReport r = gradcheck([](const Tensor& x) { return cat({x * x, log(x)}, 0); }, f64({-1}));
  EXPECT_TRUE(r) << r.text();
}

TEST(GradcheckVerdicts, MostFindingsHoldsForEveryCheck) {
  const auto mapped = [](const Tensor& d, const Tensor& x) { return wrapped(x) ? d * 2.0 : d; };
  const Tensor x = f64({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (const size_t most : {0u, 1u, 9u}) {
    const GradcheckReport r = gradcheck([&](const Tensor& v) { return sin(faulty(v, {}, mapped)); }, x,
                                        {.batched = true, .most_findings = most});
    EXPECT_GT(r.wrong, 12u) << r.text();
    EXPECT_EQ(r.findings.size(), most) << r.text();
  }
}

// --- check_operator ---

TEST(CheckOperatorVerdicts, FindingsOfDerivativesNameTheEntry) {
  const auto wrong = [](const Tensor& d, const Tensor&) { return d * 1.001; };
  for (const CheckOptions& o : {CheckOptions{.cases = 6}, CheckOptions{.seconds = 5}}) {
    faulty(f64({1}), wrong, {});
    const OperatorReport r = check_operator("faulty_identity", o);
    ASSERT_FALSE(r) << r.text();
    ASSERT_EQ(r.derivatives.size(), r.report.failures.size());
    size_t k = 0;
    while (k < r.derivatives.size() && r.report.failures[k].law != "jvp_equals_differences") ++k;
    ASSERT_LT(k, r.derivatives.size()) << r.text();
    const Failure& f = r.report.failures[k];
    EXPECT_FALSE(f.blob.empty() || f.free.empty()) << f.blob << f.free;
    EXPECT_EQ(str(f.kind), "value");
    ASSERT_TRUE(r.derivatives[k].has_value());
    ASSERT_FALSE(r.derivatives[k]->passed());
    EXPECT_NEAR(r.derivatives[k]->findings[0].got, 1.001, 1e-6);
    for (const char* part : {"d(result 0 [", "d(input 0 [", "expected 1, smooth, bound", "roundings of 2^"})
      EXPECT_NE(r.text().find(part), std::string::npos) << part << "\n" << r.text();
  }
}

TEST(CheckOperatorVerdicts, WithoutACaseNothingHasPassed) {
  const OperatorReport r = check_operator("tanh", {.seconds = 0});
  EXPECT_EQ(r.report.total().cases, 0u);
  EXPECT_FALSE(r) << r.text();
}

}  // namespace
