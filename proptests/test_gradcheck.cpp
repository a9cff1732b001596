// gradcheck: right functions pass, wrong derivatives are found and the entry is named, kinks are told apart.
#include <cmath>
#include <gtest/gtest.h>

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

const Tensor& point23() {
  static const Tensor x = f64({2, 3}, {0.5, -1.25, 2, 0.75, -3, 1});
  return x;
}
constexpr GradcheckOptions kAll{.second_order = true, .batched = true};

/// x * x / 2, in any floating dtype.
void half_square_kernel(const KernelCall& call) {
  const IterPlan plan = make_plan(call.outs, call.ins);
  visit_dtype(call.compute, [&]<class T>(type_tag<T>) {
    if constexpr (is_floating_type<T>)
      for_each_outer(plan, 0, [](char* const* at) {
        const T x = *reinterpret_cast<const T*>(at[1]);
        *reinterpret_cast<T*>(at[0]) = T(x * x / 2);
      });
  });
}

/// What the outer levels of jvp and vjp know is gone.
Tensor detached(const Tensor& t) {
  if (!t.impl()->wrap || !(t.keys() >> kFirstLevelKey)) return t;
  return detached(static_cast<const Wrapper*>(t.impl()->wrap)->value);
}
/// 1 + size at the element of flat index 4, 1 elsewhere.
Tensor one_off(const Tensor& like, double size) {
  const Tensor flat = reshape(arange(like.numel()), IntArg(like.sizes()));
  return add(where(eq(flat, 4), ones_like(like) * size, zeros_like(like)), 1);
}

using Formulas = std::pair<Rules, Rules>;
template <class J, class V> Formulas rules(J j, V v) {
  return {Rules{wrt("x", saves("x"), j)}, Rules{wrt("x", saves("x"), v)}};
}
Tensor right(Tensor t, Tensor x) { return t * x; }

/// Half squares whose derivatives differ.
void define_half_squares() {
  static const bool once = [] {
    const auto define = [](const std::string& name, Formulas f, KernelFn reference) {
      static std::vector<std::string> schemas;
      schemas.reserve(64);
      schemas.push_back("gradcheck_" + name + "(Tensor x) -> Tensor");
      OpTable::add({.schema = std::string_view(schemas.back()),
                    .shape = ShapeClass::Broadcast,
                    .infer = ops::infer_same,
                    .kernel = {.cpu = half_square_kernel, .reference = reference},
                    .jvp = f.first,
                    .vjp = f.second,
                    .properties = kNoOut | kNoInPlace | kTestOnly,
                    .samples = [](Draw& d) -> Values { return {d.tensor(d.shape(), d.dtype(kFloating))}; },
                    .doc = "x * x / 2"});
    };
    const auto both = [&](const std::string& name, Formulas f) {
      define(name, f, half_square_kernel);
      define(name + "_cpu", std::move(f), nullptr);
    };
    both("right", rules([](Tensor t, Tensor x) { return right(t, x); },
                        [](Tensor u, Tensor x) { return right(u, x); }));
    both("factor", rules([](Tensor t, Tensor x) { return right(t, x) * 1.0001; },
                         [](Tensor u, Tensor x) { return right(u, x); }));
    both("sign", rules([](Tensor t, Tensor x) { return right(t, x); },
                       [](Tensor u, Tensor x) { return neg(right(u, x)); }));
    both("entry", rules([](Tensor t, Tensor x) { return right(t, x) * one_off(x, 1e-6); },
                        [](Tensor u, Tensor x) { return right(u, x) * one_off(x, 1e-6); }));
    both("depth2", rules([](Tensor t, Tensor x) { return right(t, x); },
                         [](Tensor u, Tensor x) { return right(u, detached(x)); }));
    both("bent",
         rules([](Tensor t, Tensor x) { return t * t * x; }, [](Tensor u, Tensor x) { return right(u, x); }));
    define("tiny",
           rules([](Tensor t, Tensor x) { return right(t, x) * (1 + 1e-13); },
                 [](Tensor u, Tensor x) { return right(u, x) * (1 + 1e-13); }),
           half_square_kernel);
    return true;
  }();
  (void)once;
}

GradcheckReport check_half_square(const std::string& name, const GradcheckOptions& options = {}) {
  define_half_squares();
  return gradcheck([&](const Tensor& x) { return sin(call("gradcheck_" + name, {x})[0]); }, point23(),
                   options);
}

/// Both witnesses: with a kernel on the Reference column and without.
class Planted : public testing::TestWithParam<const char*> {
 protected:
  std::string named(const std::string& what) const { return what + GetParam(); }
};

TEST_P(Planted, RightPasses) {
  const GradcheckReport r = check_half_square(named("right"), kAll);
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.oracle == OracleKind::Reference, named("") == "") << r.text();
  EXPECT_EQ(r.why_not_reference.empty(), named("") == "") << r.text();
}
TEST_P(Planted, FactorInJvp) {
  const GradcheckReport r = check_half_square(named("factor"));
  ASSERT_FALSE(r);
  const GradcheckEntry& e = r.findings[0];
  EXPECT_EQ(e.check, "jvp") << r.text();
  EXPECT_EQ(e.input.at, e.result.at) << r.text();
  EXPECT_NEAR(e.got / e.expected, 1.0001, 1e-9) << r.text();
  EXPECT_GT(std::fabs(e.got - e.expected), e.bound);
  EXPECT_EQ(e.kink, Kink::Smooth);
}
TEST_P(Planted, SignInVjp) {
  const GradcheckReport r = check_half_square(named("sign"));
  ASSERT_EQ(r.wrong, 6u) << r.text();
  EXPECT_EQ(r.findings[0].check, "vjp");
  EXPECT_EQ(r.findings[0].got, -r.findings[0].expected);
}
TEST_P(Planted, OneEntry) {
  const GradcheckReport r = check_half_square(named("entry"));
  ASSERT_EQ(r.wrong, 1u) << r.text();
  EXPECT_EQ(r.findings[0].input.tensor, 0);
  EXPECT_EQ(r.findings[0].input.at, (Dims{1, 1})) << r.text();
  EXPECT_EQ(r.findings[0].result.at, (Dims{1, 1})) << r.text();
}
TEST_P(Planted, DepthTwoOnly) {
  EXPECT_TRUE(check_half_square(named("depth2")));
  const GradcheckReport r = check_half_square(named("depth2"), {.second_order = true});
  ASSERT_FALSE(r);
  EXPECT_NE(r.findings[0].check.find("second order, of the pullback"), std::string::npos) << r.text();
}
TEST_P(Planted, NotLinearInItsDirection) {
  const GradcheckReport r = check_half_square(named("bent"));
  ASSERT_FALSE(r);
  EXPECT_NE(r.findings[0].check.find("jvp"), std::string::npos) << r.text();
}
INSTANTIATE_TEST_SUITE_P(Oracles, Planted, testing::Values("", "_cpu"),
                         [](const auto& info) { return info.index ? "Differences" : "Reference"; });

TEST(Gradcheck, ATenTrillionthIsSeenByTheReferenceOracle) {
  const GradcheckReport r = check_half_square("tiny");
  ASSERT_FALSE(r);
  EXPECT_LT(r.findings[0].bound, 1e-13) << r.text();
}

TEST(Gradcheck, MissingTermAndDetachedInput) {
  const Tensor y = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  const GradcheckReport missing =
      gradcheck([](const Tensors& a) { return Tensors{a[0] * a[1] + sin(detached(a[1]))}; }, {point23(), y});
  ASSERT_EQ(missing.wrong, 6u) << missing.text();
  for (const GradcheckEntry& e : missing.findings) EXPECT_EQ(e.input.tensor, 1);
  const GradcheckReport detached_input =
      gradcheck([](const Tensor& x) { return x * detached(x); }, point23());
  ASSERT_EQ(detached_input.wrong, 6u) << detached_input.text();
  EXPECT_EQ(detached_input.findings[0].got, 0.5);
  EXPECT_EQ(detached_input.findings[0].expected, 1);
}

/// One entry is wrong at the levels and in base autograd, whose rules are theirs; another one in base
/// autograd alone.
TEST(Gradcheck, LooksAtBaseAutogradBesideWhatTheLevelsGetWrong) {
  define_half_squares();
  const auto f = [](const Tensor& x) {
    const Tensor y = call("gradcheck_entry", {x})[0];
    if (!is_grad_required(x)) return y;
    const Tensor flat = reshape(arange(x.numel()), IntArg(x.sizes()));
    return y + where(eq(flat, 2), x - detach(x), zeros_like(x));
  };
  const GradcheckReport r = gradcheck(f, point23());
  ASSERT_EQ(r.wrong, 2u) << r.text();
  EXPECT_EQ(r.findings[0].input.at, (Dims{1, 1})) << r.text();
  EXPECT_EQ(r.findings[1].check, "backward") << r.text();
  EXPECT_EQ(r.findings[1].input.at, (Dims{0, 2})) << r.text();
  EXPECT_EQ(r.findings[1].got, r.findings[1].expected + 1) << r.text();
}

TEST(Gradcheck, SecondResultIsNamed) {
  const GradcheckReport r = gradcheck(
      [](const Tensors& a) {
        return Tensors{sin(a[0]), argmax(a[0]), a[0] * detached(a[1])};
      },
      {point23(), f64({1}, {2})});
  ASSERT_EQ(r.wrong, 6u) << r.text();
  EXPECT_EQ(r.findings[0].result.tensor, 1);  // among the results that carry derivatives
  EXPECT_EQ(r.findings[0].input.tensor, 1);
  EXPECT_NE(r.text().find("d(result 1 [0,0]) / d(input 1 [0])"), std::string::npos) << r.text();
}

Kink kink_of(const UnaryFunction& f, double at, size_t count = 1) {
  const GradcheckReport r = gradcheck(f, f64({3}, {1, at, -2}), {.batched = true});
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.not_smooth, count) << r.text();
  if (r.kinks.empty()) return Kink::Smooth;
  EXPECT_EQ(r.kinks[0].input.at, Dims{1});
  return r.kinks[0].kink;
}

TEST(Gradcheck, KinksAreToldApart) {
  EXPECT_EQ(kink_of([](const Tensor& x) { return abs(x); }, 0), Kink::OneSided);
  EXPECT_EQ(kink_of([](const Tensor& x) { return maximum(x, zeros_like(x)); }, 0), Kink::OneSided);
  EXPECT_EQ(kink_of([](const Tensor& x) { return sqrt(abs(x)) * abs(x); }, 1e-3, 0), Kink::Smooth);
  EXPECT_EQ(kink_of([](const Tensor& x) { return abs(x); }, 1e-7, 0), Kink::Smooth);
  EXPECT_EQ(kink_of([](const Tensor& x) { return x * x; }, 0, 0), Kink::Smooth);
  EXPECT_EQ(kink_of([](const Tensor& x) { return x * to(gt(x, 0), x.dtype()) + to(gt(x, 0), x.dtype()); }, 0),
            Kink::NotDifferentiable);
  const GradcheckReport root = gradcheck([](const Tensor& x) { return sqrt(x); }, f64({3}, {1, 0, 4}), kAll);
  EXPECT_TRUE(root) << root.text();
  ASSERT_FALSE(root.kinks.empty());
  EXPECT_EQ(root.kinks[0].kink, Kink::NotDifferentiable) << root.text();
  EXPECT_EQ(root.kinks[0].input.at, Dims{1});
}

TEST(Gradcheck, TiesOfMaximumAcceptAnySubgradientAndNothingElse) {
  const Tensors tied{f64({2}, {1, 2}), f64({2}, {1, 0})};
  const GradcheckReport r =
      gradcheck([](const Tensors& a) { return Tensors{maximum(a[0], a[1])}; }, tied, {.batched = true});
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.not_smooth, 2u) << r.text();
  const GradcheckReport twice =
      gradcheck([](const Tensors& a) { return Tensors{maximum(a[0], a[1]) + a[0] - detached(a[0])}; }, tied);
  EXPECT_FALSE(twice);  // 1.5 lies outside [0, 1]
}

TEST(Gradcheck, LayoutsDtypesAndIntegers) {
  const Tensor wide = f64({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto poly = [](const Tensors& a) { return Tensors{sum(sin(a[0]) * a[0], IntArg{0}), a[0] * 3.0}; };
  for (const Tensor& x :
       {transpose(wide, 0, 1), slice(wide, 1, 0, 4, 2), expand(f64({1, 3}, {1, 2, 3}), {4, 3})})
    for (const auto kind : {OracleKind::Reference, OracleKind::Differences}) {
      const GradcheckReport r = gradcheck(poly, {x}, {.second_order = true, .batched = true, .oracle = kind});
      EXPECT_TRUE(r) << r.text();
    }
  const Tensor index = tensor_of({2}, {2, 0}, DType::I64);
  const GradcheckReport r =
      gradcheck([](const Tensors& a) { return Tensors{index_select(a[0], 0, a[1]) * cos(a[2])}; },
                {wide, index, f64({1}, {0.5})}, kAll);
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.variables, 13u);
  EXPECT_EQ(index.to_vector(), (std::vector<double>{2, 0}));
  for (const DType d : {DType::F32, DType::F16, DType::BF16})
    for (const auto kind : {OracleKind::Reference, OracleKind::Differences}) {
      const GradcheckReport narrow = gradcheck([](const Tensor& x) { return tanh(x) * x; }, to(point23(), d),
                                               {.batched = true, .oracle = kind});
      EXPECT_TRUE(narrow) << narrow.text();
    }
}

TEST(Gradcheck, NarrowDtypesStillSeeWrongDerivatives) {
  for (const auto kind : {OracleKind::Reference, OracleKind::Differences}) {
    const GradcheckReport r = gradcheck([](const Tensor& x) { return x * detached(x); },
                                        to(point23(), DType::F32), {.oracle = kind});
    EXPECT_EQ(r.wrong, 6u) << r.text();
  }
}

TEST(Gradcheck, ComplexPartsAreNamed) {
  const Tensor z = complex(point23(), point23() * 2.0);
  EXPECT_TRUE(gradcheck([](const Tensor& x) { return x * conj(x) * x + exp(x); }, z, kAll));
  const GradcheckReport r = gradcheck([](const Tensor& x) { return x * conj(detached(x)); }, z);
  ASSERT_GT(r.wrong, 0u);
  EXPECT_NE(r.text().find("(imaginary part)"), std::string::npos) << r.text();
}

TEST(Gradcheck, CapturedTensorsRunOnTheReferenceColumn) {
  const Tensor w = f64({3, 2}, {1, -2, 3, 0.5, 0.25, -1});
  const GradcheckReport r =
      gradcheck([&](const Tensor& x) { return softmax(matmul(x, w) + full({2}, 0.5), 1); }, point23(), kAll);
  EXPECT_TRUE(r) << r.text();
  EXPECT_EQ(r.oracle, OracleKind::Reference) << r.text();
}

TEST(Gradcheck, UnusedInputsHaveZeroGradients) {
  const GradcheckReport r = gradcheck(
      [](const Tensors& a) {
        return Tensors{sin(a[0]), ones_like(a[1])};
      },
      {point23(), point23()}, kAll);
  EXPECT_TRUE(r) << r.text();
}

TEST(Gradcheck, RefusesWhatItCannotCheck) {
  const auto code = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) { return e.code(); }
    return ErrorCode::Internal;
  };
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(code([&] { gradcheck(same, tensor_of({1}, {1}, DType::I64)); }), ErrorCode::Usage);
  EXPECT_EQ(code([&] { gradcheck([](const Tensor& x) { return gt(x, 0); }, point23()); }), ErrorCode::Usage);
  EXPECT_EQ(code([&] { gradcheck([](const Tensor& x) { return x * rand({3}); }, point23()); }),
            ErrorCode::Usage);
  const Tensor x = clone(point23());
  EXPECT_EQ(code([&] { gradcheck([](const Tensor& t) { return mul_(t, t); }, x); }), ErrorCode::Usage);
  EXPECT_EQ(x.to_vector(), point23().to_vector());
}

TEST(Gradcheck, RefusesInputsThatALevelWraps) {
  const auto checked = [](const Tensor& x) {
    try {
      gradcheck([](const Tensor& t) { return sin(t); }, x);
    } catch (const Error& e) { return std::string(e.text()); }
    return std::string("nothing is refused");
  };
  std::string under_grad, under_vmap;
  grad([&](const Tensors& a) {
    under_grad = checked(a[0]);
    return sum(a[0]);
  })({point23()});
  vmap([&](const Tensor& a) {
    under_vmap = checked(a);
    return a;
  })(point23());
  EXPECT_EQ(under_grad, "input 0 is wrapped by grad#1; expected a plain tensor");
  EXPECT_EQ(under_vmap, "input 0 is wrapped by vmap#1; expected a plain tensor");
}

/// A program of a few smooth operators whose values stay of order one, drawn from a seed.
struct RandomProgram {
  uint64_t state;
  uint64_t next(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  }
  Tensor step(const Tensor& a, const Tensor& b) {
    switch (next(18)) {
      case 0: return sin(a * 2.0 + b);
      case 1: return tanh(a - b * 0.75);
      case 2: return exp(a * 0.25) * b;
      case 3: return a / (b * b + 1.0);
      case 4: return log(a * a + 1.5);
      case 5: return sqrt(b * b + 0.5) - a;
      case 6: return softmax(a, int64_t(next(2))) * b;
      case 7: return log_softmax(a + b, int64_t(next(2)));
      case 8: return matmul(a, transpose(b, 0, 1)).sum(IntArg{1}, true) + b;
      case 9: return cumsum(a, int64_t(next(2))) * 0.5;
      case 10: return layer_norm(a * b, IntArg{a.size(1)});
      case 11: return mean(a, IntArg{0}, true) - b;
      case 12: return pow(a * a + 1.0, b * 0.5);
      case 13: return reciprocal(cos(a) + 2.5);
      case 14: return transpose(reshape(cat({a, b}, 1), {a.size(0), 2, a.size(1)}), 1, 2).sum(IntArg{2});
      case 15: return prod(stack({a, b}, 0), IntArg{0}) + a;
      case 16: return matmul(matmul(a, transpose(a, 0, 1)), b) * 0.25;
      default: return flip(a, {int64_t(next(2))}) * sin(b);
    }
  }
  Tensor operator()(const Tensors& xs) const {
    RandomProgram p = *this;
    Tensor a = xs[0], b = xs[1];
    for (uint64_t n = 1 + p.next(4); n > 0; --n) {
      const Tensor c = p.step(a, b);
      (p.next(2) ? a : b) = c;
    }
    return p.next(2) ? a * b : a + b;
  }
};

void expect_no_false_alarms(uint64_t first, uint64_t count, const GradcheckOptions& options, DType dtype) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomProgram f{seed * 0x9E3779B97F4A7C15u};
    const Tensor key = tensor_of({}, {double(seed)}, DType::U64);
    const RandomStream first_one(1);  // the inputs that these programs always had
    const Tensor both = to(randn({2, 2, 3}, key, DType::F64), dtype);
    const GradcheckReport r = gradcheck([&](const Tensors& xs) { return Tensors{f(xs)}; },
                                        {clone(select(both, 0, 0)), clone(select(both, 0, 1))}, options);
    ASSERT_TRUE(r) << "seed " << seed << "\n" << r.text();
    ASSERT_EQ(r.not_smooth, 0u) << "seed " << seed << "\n" << r.text();
  }
}

TEST(GradcheckComposites, PassAgainstTheReferenceColumn) { expect_no_false_alarms(0, 8000, {}, DType::F64); }
TEST(GradcheckComposites, PassAgainstDifferences) {
  expect_no_false_alarms(8000, 1200, {.oracle = OracleKind::Differences}, DType::F64);
}
TEST(GradcheckComposites, PassInF32) {
  expect_no_false_alarms(9200, 600, {}, DType::F32);
  expect_no_false_alarms(9800, 200, {.oracle = OracleKind::Differences}, DType::F32);
}
TEST(GradcheckComposites, PassInSecondOrderAndMapped) {
  expect_no_false_alarms(10000, 60, {.second_order = true, .batched = true}, DType::F64);
}

TEST(CheckOperator, RunsTheLawsOfOneOperator) {
  const OperatorReport r = check_operator("tanh", {.cases = 5});
  EXPECT_TRUE(r) << r.text();
  EXPECT_GE(r.laws, 20u);
  EXPECT_GE(r.report.total().cases, 5 * r.laws / 2);
  define_half_squares();
  const OperatorReport wrong = check_operator("gradcheck_factor", {.cases = 5});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.text().find("jvp_equals_differences"), std::string::npos) << wrong.text();
  EXPECT_TRUE(check_operator("add", {.seconds = 2}));
}
}  // namespace
