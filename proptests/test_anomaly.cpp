// Anomaly mode: it names the call, input, level, lane and line of the first NaN and of saved values that were
// written; and changes nothing else. Compiled with lines (-g1).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"
#include "lamella/transforms/call_site.h"
#include "lamella/transforms/first_nan.h"
#include "lamella/verify/case/case.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/run/runner.h"

#include "support.h"

namespace test_anomaly {
namespace {
using namespace lamella;
using namespace lamella::tests;

constexpr double kInf = std::numeric_limits<double>::infinity();
const AnomalyOptions kBackwardOnly{.forward = false};

/// The first line of what f raises, and all of it through `whole`.
template <class F> std::string first_line(F&& f, std::string* whole = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    const std::string text = e.what();
    if (whole) *whole = text;
    return text.substr(0, text.find('\n'));
  }
  return "nothing raised";
}

void expect_line(const std::string& text, int line) {
  EXPECT_NE(text.find("test_anomaly.cpp:" + std::to_string(line)), std::string::npos) << line << " in:\n"
                                                                                      << text;
}

/// sqrt(x * x): its slope at 0 is inf, and 0 * inf is NaN.
int sqrt_line = 0;
[[gnu::noinline]] Tensor norm(const Tensor& x) {
  const Tensor squares = x * x;
  sqrt_line = __LINE__ + 1;
  return sqrt(squares);
}

TEST(Anomaly, NamesTheCallWhoseFormulaGaveNaN) {
  const Tensor w = requires_grad(f64({3, 0, 4}));
  const AnomalyMode on;
  const Tensor y = sum(norm(w));
  std::string text;
  EXPECT_EQ(first_line([&] { backward(y); }, &text),
            "backward: the formula of mul for a gave NaN at [1] of f64[3], from cotangents without; expected "
            "none");
  EXPECT_NE(text.find("mul was recorded by base autograd, called at"), std::string::npos) << text;
  expect_line(text, sqrt_line - 2);
  EXPECT_FALSE(grad_of(w).defined());
}

TEST(Anomaly, NamesLevelsAndLanes) {
  const Tensor x = tensor_of({2, 2}, {1, 2, 3, 0}, DType::F64);
  const UnaryFunction f = [](const Tensor& t) { return sum(norm(t)); };
  const AnomalyMode on;
  std::string text;
  EXPECT_EQ(first_line([&] { vmap(grad(f))(x); }, &text),
            "backward: the formula of mul for a gave NaN at [1] of f64[2], in lane 1 of vmap#1, from "
            "cotangents without; expected none");
  EXPECT_NE(text.find("mul was recorded by grad#2"), std::string::npos) << text;
  expect_line(text, sqrt_line - 2);
  // Under grad of vmap the tape sees all lanes at once.
  EXPECT_EQ(
      first_line([&] { grad(UnaryFunction([&](const Tensor& t) { return sum(vmap(f)(t)); }))(x); }, &text),
      "backward: the formula of mul for a gave NaN at [1, 1] of f64[2,2], in lane 1 of vmap#2, from "
      "cotangents without; expected none");
  EXPECT_NE(text.find("mul was recorded by grad#1"), std::string::npos) << text;
  expect_line(text, sqrt_line - 2);
  const Tensor w = requires_grad(x);
  EXPECT_EQ(first_line([&] { backward(sum(vmap(f)(w))); }, &text),
            "backward: the formula of mul for a gave NaN at [1, 1] of f64[2,2], in lane 1 of vmap#1, from "
            "cotangents without; expected none");
  const UnaryFunction columns = vmap(f, 1, 0);
  EXPECT_EQ(first_line([&] { grad(UnaryFunction([&](const Tensor& t) { return sum(columns(t)); }))(x); }),
            "backward: the formula of mul for a gave NaN at [1, 1] of f64[2,2], in lane 1 of vmap#2, from "
            "cotangents without; expected none");
}

TEST(Anomaly, NamesTheFirstForwardCall) {
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, -5, 6}, DType::F64);
  const AnomalyMode on;
  const auto f = [](const Tensor& t) { return exp(log(t) * 2.0); };
  const int line = __LINE__ - 1;
  std::string text;
  EXPECT_EQ(first_line([&] { f(x); }, &text),
            "log: gave NaN at [1, 1] of f64[2,3], from arguments without; expected none, called at");
  expect_line(text, line);
  EXPECT_EQ(first_line([&] { vmap(UnaryFunction(f))(x); }, &text),
            "log: gave NaN at [1] of f64[3], in lane 1 of vmap#1, from arguments without; expected none, "
            "called at");
  expect_line(text, line);
  EXPECT_EQ(first_line([&] { vmap(vmap(UnaryFunction(f)))(unsqueeze(x, 0)); }, &text),
            "log: gave NaN at [1] of f64[3], in lane 1 of vmap#2 of lane 0 of vmap#1, from arguments "
            "without; expected none, called at");
}

TEST(Anomaly, NamesLanesOfMappedDimsBehind) {
  const Tensor x = tensor_of({2, 3}, {1, 2, -3, 4, 5, 6}, DType::F64);
  const AnomalyMode on;
  EXPECT_EQ(first_line([&] { vmap(UnaryFunction([](const Tensor& t) { return log_(t); }), 1, 0)(x); }),
            "log_: gave NaN at [0] of f64[2], in lane 2 of vmap#1, from arguments without; expected none, "
            "called at");
}

TEST(Anomaly, LooksAtTangents) {
  const Tensor x = f64({1, 0});
  const AnomalyMode on;
  std::string text;
  EXPECT_EQ(first_line([&] { jvp([](const Tensors& xs) { return Tensors{norm(xs[0])}; }, {x}, {x}); }, &text),
            "sqrt: gave NaN in the tangent at jvp#1, at [1] of f64[2], by mul, from arguments without; "
            "expected none, called at");
  expect_line(text, sqrt_line);
}

TEST(Anomaly, NamesTheKernelInside) {
  const AnomalyMode on;
  EXPECT_EQ(first_line([&] { softmax(f64({-kInf, -kInf}), 0); }).substr(0, 15), "softmax: gave N");
}

TEST(Anomaly, LeavesNaNThatTheProgramPutIn) {
  const AnomalyMode on;
  const Tensor x = f64({std::nan(""), 1});
  (void)exp(x);
  (void)full({2}, std::nan(""), DType::F64);
  (void)(f64({1, 2}) * std::nan(""));
  (void)(to(f64({1, 2}), DType::C128) * c128(0, std::nan("")));
  (void)empty({100});
  EXPECT_EQ(first_line([&] { f64({0}) / f64({0}); }).substr(0, 13), "div: gave NaN");
}

TEST(Anomaly, LeavesHiddenElements) {
  const UnaryFunction f = [](const Tensor& t) { return sum(where(gt(t, 0), sqrt(t), zeros_like(t))); };
  const AnomalyMode on;
  EXPECT_EQ(str(grad(f)(f64({4, 0}))), "f64[2] [0.25, 0]");
  const AnomalyMode backward_only(kBackwardOnly);
  EXPECT_EQ(str(grad(f)(f64({4, -1}))), "f64[2] [0.25, 0]");
}

TEST(Anomaly, SaysWhereASavedValueWasWritten) {
  const Tensor w = requires_grad(f64({1, 2}));
  const AnomalyMode on;
  const Tensor y = w * 1.0;
  const Tensor z = y * y;
  const int saved = __LINE__ - 1, written = __LINE__ + 1;
  mul_(y, f64({2, 2}));
  add_(y, f64({1, 1}));
  std::string text;
  const std::string first = first_line([&] { backward(sum(z)); }, &text);
  EXPECT_EQ(
      first,
      "backward: a value that mul saved was written in place later: version 2, expected 0; clone it first; "
      "it was written by mul_, called at");
  EXPECT_LT(text.find("written by mul_"), text.find("mul was recorded by base autograd, called at")) << text;
  expect_line(text, saved);
  expect_line(text, written);
}

TEST(Anomaly, NamesSumsAndHooks) {
  const Tensor w = requires_grad(f64({1}));
  const AnomalyMode on(kBackwardOnly);
  const Tensor y = w * 1.0, z = sum(y * kInf) + sum(y * -kInf);
  EXPECT_EQ(
      first_line([&] { backward(z); }),
      "backward: a cotangent of mul is NaN at [0] of f64[1], and no formula gave it; expected none: it was "
      "passed in, or came from a hook, or from inf - inf where cotangents meet");
  const Tensor u = w * 2.0;
  const HookHandle hook = add_hook(u, [](const Tensor&) { return f64({std::nan("")}); });
  EXPECT_EQ(first_line([&] { backward(u); }).substr(0, 29), "backward: a cotangent of mul ");
}

TEST(Anomaly, KnowsNodesThatWereRecordedOutside) {
  const Tensor w = requires_grad(f64({0})), y = sum(norm(w));
  const AnomalyMode on;
  std::string text;
  first_line([&] { backward(y); }, &text);
  EXPECT_NE(text.find("mul was recorded outside of anomaly mode"), std::string::npos) << text;
}

/// Nodes that a formula records belong to the call that the formula is of.
TEST(Anomaly, NamesTheForwardCallAtHigherOrder) {
  const UnaryFunction f = [](const Tensor& t) { return sum(norm(t)); };
  const UnaryFunction slopes = [&](const Tensor& t) { return sum(grad(f)(t) * t); };
  const AnomalyMode on(kBackwardOnly);
  std::string text;
  first_line([&] { grad(slopes)(f64({0, 1})); }, &text);
  EXPECT_NE(text.find("gave NaN"), std::string::npos) << text;
  expect_line(text, sqrt_line - 2);
}

/// The slope of x^1.5 is finite at 0, that of the slope is not: the node is one that pow's formula recorded.
TEST(Anomaly, NamesTheForwardCallWhoseFormulaRecorded) {
  const UnaryFunction f = [](const Tensor& t) {
    const Tensor y = pow(t, scalar_tensor(1.5, DType::F64));
    return sum(y);
  };
  const int line = __LINE__ - 3;
  const UnaryFunction slopes = [&](const Tensor& t) { return sum(grad(f)(t) * t); };
  const AnomalyMode on;
  std::string text;
  first_line([&] { grad(slopes)(f64({0, 1})); }, &text);
  EXPECT_NE(text.find("gave NaN"), std::string::npos) << text;
  expect_line(text, line);
}

TEST(Anomaly, SeesInsideFunctionsOfOperators) {
  const AnomalyMode on;
  std::string text;
  const Function f = checkpoint([](const Tensors& xs) { return Tensors{log(xs[0])}; });
  const int line = __LINE__ - 1;
  EXPECT_EQ(first_line([&] { f({f64({-1})}); }, &text),
            "log: gave NaN at [0] of f64[1], from arguments without; expected none, called at");
  expect_line(text, line);
}

TEST(Anomaly, LetsOtherObserversSee) {
  std::string text;
  {
    Trace outer;
    const ScopedObserver scope(&outer);
    {
      const AnomalyMode on, again;
      (void)exp(f64({1}));
    }
    EXPECT_EQ(dispatch_state().observer, static_cast<Observer*>(&outer));
    EXPECT_EQ(outer.calls(), 1) << outer.text();
  }
  EXPECT_EQ(dispatch_state().observer, nullptr);
}

/// The programs of a law, in anomaly mode and without: the same values, derivatives, and errors.
TEST(Anomaly, ChangesNothingElse) {
  const verify::Law& law = *verify::find_law("constants_stay");  // for what it draws
  int compared = 0;
  for (const Op* op : verify::all_operators()) {
    if (op->has(kRandom) || op->has(kUnspecified)) continue;
    for (uint64_t i = 0; i < 10; ++i) {
      const verify::Choices choices = verify::choices_of(11, law, *op, i);
      const verify::Case c(*op, choices, law.options);
      const auto slots = c.inexact();
      const Function f = c.smooth_function(slots);
      const auto run = [&]() -> Tensors {
        const Tensors xs = c.values(slots);
        const VjpResult r = vjp(f, xs);
        Tensors cts, leaves;
        for (const Tensor& y : r.values) cts.push_back(ones_like(y));
        Tensors out = r.pullback(cts);
        for (const Tensor& y : jvp(f, xs, xs).tangents) out.push_back(y);
        for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
        const Tensors ys = f(leaves);
        backward(ys, cts);
        for (const Tensor& leaf : leaves) out.push_back(grad_of(leaf).defined() ? grad_of(leaf) : leaf);
        return out;
      };
      if (slots.empty()) continue;
      Tensors plain, watched;
      try {
        plain = run();
      } catch (const Error&) { continue; }
      if (std::ranges::any_of(plain, [](const Tensor& t) { return first_nan(detach(t)).has_value(); }))
        continue;
      {
        const AnomalyMode on(kBackwardOnly);
        try {
          watched = run();
        } catch (const Error& e) {
          const std::string text = e.what();
          if (text.find("NaN") != std::string::npos) continue;  // it did not reach the gradients
          FAIL() << text;
        }
      }
      ASSERT_EQ(verify::differs(watched, plain), "") << op->name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(Anomaly, FreesWhatItNoted) {
  const auto run = [] {
    const AnomalyMode on;
    const Tensor w = requires_grad(f64({1, 2}));
    backward(sum(norm(w)));
  };
  run();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 10; ++i) run();
  EXPECT_EQ(memory_stats().blocks, before.blocks);
  EXPECT_EQ(memory_stats().bytes, before.bytes);
}

TEST(CallSite, ReadsWhatAddr2linePrints) {
  const auto frames = parse_frames(
      "0x0000000000001139\nf(int)\n/src/a.cpp:12 (discriminator 2)\nmain\n/src/a.cpp:20\n0x01\n??\n??:0\n"
      "0x02\ng\n??:?\n");
  ASSERT_EQ(frames.size(), 3u);
  ASSERT_EQ(frames[0].size(), 2u);
  EXPECT_EQ(frames[0][0].function + " " + frames[0][0].file, "f(int) /src/a.cpp");
  EXPECT_EQ(frames[0][0].line, 12);
  EXPECT_EQ(frames[0][1].line, 20);
  EXPECT_TRUE(frames[1].empty());
  ASSERT_EQ(frames[2].size(), 1u);
  EXPECT_EQ(frames[2][0].line, 0);
}

TEST(CallSite, LeavesOutTheLibrary) {
  EXPECT_TRUE(is_library_frame({"lamella::mul(lamella::Tensor const&)", "", 0}));
  EXPECT_TRUE(is_library_frame({"std::function<int ()>::operator()() const", "", 0}));
  EXPECT_TRUE(is_library_frame({"lamella::call(...)", "/usr/include/lamella/dispatch/call.h", 7}));
  EXPECT_FALSE(is_library_frame({"lamella::verify::check()", "/home/me/lamella_test.cpp", 7}));
  EXPECT_FALSE(is_library_frame({"train()", "", 0}));
}

[[gnu::noinline]] CallSite here() {
  CallSite site = call_site();
  EXPECT_FALSE(site.empty());
  return site;
}

TEST(CallSite, NamesFilesAndLines) {
  const std::string text = call_site_text(here());
  EXPECT_NE(text.find("here"), std::string::npos) << text;
  expect_line(text, __LINE__ - 2);
  EXPECT_EQ(call_site_text({}), "");
}

}  // namespace
}  // namespace test_anomaly
