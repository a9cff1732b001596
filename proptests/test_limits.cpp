// Every limit of core/limits.h is a door: at it one passes, beyond it a typed error says so. Values of custom
// functions are refused in expecttests/test_errors_custom.cpp, ranks in files by
// tools/calibration_safetensors.cpp.
#include <gtest/gtest.h>

#include "lamella/core/parallel.h"
#include "lamella/core/plan.h"
#include "lamella/dispatch/table.h"
#include "lamella/dispatch/types.h"
#include "lamella/draw/draw.h"
#include "lamella/transforms/grad.h"

#include "support.h"

namespace {
using namespace lamella;
using tests::first_line;
using tests::refusal;

std::string word(int n, const char* text) {
  std::string out;
  for (int i = 0; i < n; ++i) out += format("{}{}{}", i ? ", " : "", text, i);
  return out;
}

/// What refuses an operator that does nothing; nothing is registered for good.
std::string registered(const std::string& schema, const Rules& vjp, uint32_t properties,
                       LaunchFn launch = nullptr) {
  const OpTable& before = OpTable::current();
  const std::string text = first_line(refusal([&] {
    OpTable::add({.schema = std::string_view(schema),
                  .shape = ShapeClass::Broadcast,
                  .infer = [](const Frame&, Inferred&) {},
                  .kernel = {.cpu = [](const KernelCall&) {}, .reference = [](const KernelCall&) {}},
                  .launch = launch,
                  .jvp = not_differentiable("a test's own operator"),
                  .vjp = vjp,
                  .properties = properties | kTestOnly | kNoInPlace,
                  .samples = [](Draw&) -> Values { return {}; },
                  .doc = "A test's."});
  }));
  OpTable::take_back(&before);
  return text;
}
Rules no_rule() { return not_differentiable("a test's own operator"); }
void no_launch(const Launch&) {}

TEST(Limits, Parameters) {
  const auto of = [](int n) { return "limited(Tensor x, " + word(n - 1, "int n") + ") -> Tensor"; };
  EXPECT_EQ(registered(of(kMaxArity), no_rule(), kNoOut), "");
  EXPECT_EQ(registered(of(kMaxArity + 1), no_rule(), kNoOut),
            "schema: limited: got 13 parameters, expected at most 12");
  EXPECT_EQ(registered(of(kMaxArity), no_rule(), 0),
            "schema: limited: got 13 parameters with out, expected at most 12: state kNoOut, or take fewer");
}

TEST(Limits, Results) {
  const auto of = [](int n) {
    std::string out = "limited(Tensor x) -> (Tensor";
    for (int i = 1; i < n; ++i) out += ", Tensor";
    return out + ")";
  };
  EXPECT_EQ(registered(of(kMaxResults), no_rule(), kNoOut, no_launch), "");
  EXPECT_EQ(registered(of(kMaxResults + 1), no_rule(), kNoOut, no_launch),
            "schema: limited: got 5 results, expected at most 4");
}

TEST(Limits, OperandsOfBroadcast) {
  const auto of = [](int n) { return "limited(" + word(n, "Tensor x") + ") -> Tensor"; };
  EXPECT_EQ(registered(of(kMaxBroadcast), no_rule(), kNoOut), "");
  EXPECT_EQ(registered(of(kMaxBroadcast + 1), no_rule(), kNoOut),
            "schema: limited: shape is broadcast of 5 tensors; expected at most 4, or a launch of its own");
  EXPECT_EQ(registered(of(9), no_rule(), kNoOut, no_launch), "");
}

TEST(Limits, OperandsOfALoop) {
  const Tensor x = ones({2, 3});
  const std::vector<View> most(kMaxPlanOperands, x.view_of()), more(kMaxPlanOperands + 1, x.view_of());
  EXPECT_EQ(make_plan(most, {}).operands, kMaxPlanOperands);
  EXPECT_EQ(first_line(refusal([&] { make_plan(more, {}); })),
            "usage: a loop through 6 tensors, expected at most 5");
  const std::vector<PlanOperand> operands(kMaxPlanOperands + 1);
  EXPECT_EQ(first_line(refusal([&] { make_plan(operands, 0, nullptr); })),
            "usage: a loop through 6 tensors, expected at most 5");
}

TEST(Limits, SavesOfAFormula) {
  const std::string schema = "limited(Tensor a, Tensor b, Tensor c) -> Tensor";
  using T = Tensor;
  EXPECT_EQ(registered(schema,
                       Rules(wrt("a", saves("a", "b", "c", "result", "a", "b"),
                                 [](T t, T, T, T, T, T, T) { return t; })),
                       kNoOut),
            "");
  EXPECT_EQ(registered(schema,
                       Rules(wrt("a", saves("a", "b", "c", "result", "a", "b", "c"),
                                 [](T t, T, T, T, T, T, T, T) { return t; })),
                       kNoOut),
            "schema: limited: the rule for \"a\" saves 7 values, expected at most 6");
  EXPECT_EQ(registered(schema,
                       Rules(wrt("a", saves("a.sizes", "b.sizes", "c.sizes"),
                                 [](T t, Ints, Ints, Ints) { return t; })),
                       kNoOut),
            "schema: limited: the rule for \"a\" saves 3 .sizes, expected at most 2");
}

TEST(Limits, SavesOfANode) {
  const std::string schema = "limited(Tensor a, Tensor b, Tensor c, Tensor d, int e=0, int f=0) -> Tensor";
  using T = Tensor;
  const auto four = [](const char* input, const char* s, const char* t, const char* u, const char* v) {
    return wrt(input, saves(s, t, u, v), [](T dy, T, Ints, DType, T) { return dy; });
  };
  std::vector<Formula> rules = {
      four("a", "a", "a.sizes", "a.dtype", "result"), four("b", "b", "b.sizes", "b.dtype", "result"),
      four("c", "c", "c.sizes", "c.dtype", "result"), four("d", "d", "d.sizes", "d.dtype", "result")};
  EXPECT_EQ(registered(schema, Rules(rules), kNoOut), "");  // 13
  const std::string more =
      "limited(Tensor a, Tensor b, Tensor c, Tensor d, Tensor g, int e=0, int f=0, int h=0, "
      "int i=0) -> Tensor";
  rules.push_back(
      wrt("g", saves("e", "f", "h", "i"), [](T dy, int64_t, int64_t, int64_t, int64_t) { return dy; }));
  EXPECT_EQ(registered(more, Rules(rules), kNoOut, no_launch),
            "schema: limited: vjp saves 17 different values, expected at most 16");
}

/// Sizes and dtypes of inputs that a cotangent is fitted to are saved besides.
TEST(Limits, SavesOfANodeWhoseInputsAllBroadcast) {
  const OpTable& before = OpTable::current();
  constexpr int kMany = 9;
  std::vector<Formula> rules;
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (int i = 0; i < kMany; ++i) names.push_back(format("x{}", i));
    return names;
  }();
  for (const std::string& x : kNames) rules.push_back(wrt(x, [](Tensor dy) { return dy; }));
  static const std::string kText = "limited(" + word(kMany, "Tensor x") + ") -> Tensor";
  OpTable::add({.schema = std::string_view(kText),
                .shape = ShapeClass::Broadcast,
                .launch = [](const Launch& l) { std::fill_n(l.outs[0].data<double>(), 2, 0.0); },
                .jvp = not_differentiable("a test's own operator"),
                .vjp = Rules(rules),
                .properties = kTestOnly | kNoInPlace | kNoOut,
                .samples = [](Draw&) -> Values { return {}; },
                .doc = "A test's."});
  Tensors xs(kMany, tensor_of({}, {1}, DType::F32));
  xs[0] = tensor_of({2}, {1, 1}, DType::F64);
  Values values(xs.begin(), xs.end());
  const Tensors got =
      vjp([&](const Tensors& given) { return call("limited", Values(given.begin(), given.end())); }, xs)
          .pullback({tensor_of({2}, {1, 2}, DType::F64)});
  EXPECT_EQ(got[0].to_vector(), (std::vector<double>{1, 2}));
  for (int i = 1; i < kMany; ++i) {
    EXPECT_EQ(got[size_t(i)].dtype(), DType::F32);
    EXPECT_EQ(got[size_t(i)].to_vector(), std::vector<double>{3});
  }
  OpTable::take_back(&before);
}

TEST(Limits, TypesOfAProgram) {
  const auto until_refused = [] {
    std::string text;
    int n = 0;
    for (int key = kFirstTypeKey; tensor_type(key); ++key) ++n;  // of other tests of this process
    for (; text.empty() && n <= kMaxTypes; n += text.empty())
      text = first_line(refusal([&] {
        add_tensor_type({.name = format("type{}", n), .handle = [](Frame&, int) { return false; }});
      }));
    std::fprintf(stderr, "%d of %d: %s", n, kMaxTypes, text.c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(until_refused(), testing::ExitedWithCode(0),
              "^9 of 9: schema: add_tensor_type: got \"type[0-9]\", expected at most 9 types");
}

TEST(Limits, TextsOfSchemas) {
  const std::string schema = "limited(Tensor x) -> Tensor";
  EXPECT_EQ(parse_schema(schema + std::string(kMaxSchema - schema.size(), ' ')).name, "limited");
  EXPECT_EQ(first_line(refusal([&] { parse_schema(schema + std::string(kMaxSchema, ' ')); })),
            "schema: schema: got 4123 characters, expected at most 4096");
}

TEST(Limits, DimsAndElements) {
  EXPECT_EQ(make_tensor(Dims(kMaxDims, 1), DType::F32).rank(), kMaxDims);
  EXPECT_EQ(first_line(refusal([] { make_tensor(Dims(kMaxDims + 1, 1), DType::F32); })),
            "shape: empty: size has 65 entries, expected at most 64 dims");
  const auto meta = [](int64_t n) { return make_tensor(Dims{n}, DType::U8, Device::Meta); };
  EXPECT_EQ(meta(kMaxNumel).numel(), kMaxNumel);
  EXPECT_EQ(
      first_line(refusal([&] { meta(kMaxNumel + 1); })),
      "overflow: empty: size = [288230376151711745] has more elements than memory can hold; expected at most "
      "2^58");
}

TEST(Limits, ArangeCountsExactly) {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;  // no double
  const auto upto = [](int64_t end) {
    return call("arange", Values{0, end, Value(), Value(), Device::Meta})[0].numel();
  };
  EXPECT_EQ(upto(kOdd), kOdd);
  EXPECT_EQ(upto(kMaxNumel), kMaxNumel);
}

TEST(Limits, LiveLevels) {
  std::function<Tensors(int, const Tensors&)> nested = [&](int n, const Tensors& xs) -> Tensors {
    if (n == 0) return {xs[0]};
    return vmap([&](const Tensors& ys) { return nested(n - 1, ys); },
                {.in_dims = {kNone}, .out_dims = {0}, .size = 1})(xs);
  };
  const auto at = [&](int n) { return refusal([&] { nested(n, {ones({})}); }); };
  EXPECT_EQ(at(kMaxLevels), "");
  EXPECT_EQ(first_line(at(kMaxLevels + 1)),
            "level_limit: vmap: got 49 nested transforms, expected at most 48");
}

TEST(Limits, Threads) {
  const int before = threads();
  { const ScopedThreads most(kMaxThreads); }
  EXPECT_EQ(first_line(refusal([] { set_threads(kMaxThreads + 1); })),
            "usage: set_threads: n = 257; expected 1 <= n <= 256");
  EXPECT_EQ(threads(), before);
}

TEST(Limits, ShortWays) {  // nothing is refused beyond them, and nothing is taken that does not fit
  const auto row = [](const std::string& schema) {
    const OpTable& before = OpTable::current();
    OpTable::add({.schema = std::string_view(schema),
                  .shape = ShapeClass::Broadcast,
                  .kernel = {.cpu = [](const KernelCall&) {}, .reference = [](const KernelCall&) {}},
                  .jvp = no_rule(),
                  .vjp = no_rule(),
                  .properties = kTestOnly | kNoInPlace | kNoOut,
                  .samples = [](Draw&) -> Values { return {}; },
                  .doc = "A test's."});
    const int straight = OpTable::current().find("limited")->straight;
    OpTable::take_back(&before);
    return straight;
  };
  EXPECT_EQ(row("limited(" + word(kMaxStraight, "Tensor x") + ") -> Tensor"), int(kMaxStraight));
  EXPECT_EQ(row("limited(" + word(kMaxStraight + 1, "Tensor x") + ") -> Tensor"), 0);
  EXPECT_EQ(row("limited(Tensor x, " + word(kMaxStraightArity - 1, "int n") + ") -> Tensor"), 1);
  EXPECT_EQ(row("limited(Tensor x, " + word(kMaxStraightArity, "int n") + ") -> Tensor"), 0);
}
}  // namespace
