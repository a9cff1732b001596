// What the tests of bad input rely on: a refusal that leaves a trace, or explains nothing, is seen.
#include <gtest/gtest-spi.h>

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

/// The failures that `f` would have caused, first lines only.
std::string failures_of(const std::function<void()>& f) {
  testing::TestPartResultArray seen;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &seen);
    f();
  }
  std::string out;
  for (int i = 0; i < seen.size(); ++i) out += std::string(seen.GetTestPartResult(i).message()) + "\n";
  return out;
}

[[noreturn]] void raise() { fail(ErrorCode::Value, "planted: x = 1, expected 2"); }

TEST(Refusals, AGoodOneIsSilent) {
  const Tensor x = of({2});
  EXPECT_EQ(failures_of([&] { refused(raise, {x}); }), "");
}

TEST(Refusals, AnAcceptedCallIsSeen) {
  EXPECT_NE(failures_of([] { refused([] {}); }).find("accepted"), std::string::npos);
  EXPECT_NE(failures_of([] { refused("neg", {of({2})}); }).find("accepted"), std::string::npos);
}

TEST(Refusals, EachTraceIsSeen) {
  const Tensor x = of({2}), outside_the_view = slice(x, 0, 0, 1);
  Tensors kept;
  const std::vector<std::pair<std::string, std::function<void()>>> planted = {
      {"tensor 0", [&] { fill_(x, 2); }},
      {"tensor 0", [&] { x.data<double>()[1] = 3; }},
      {"memory", [&] { kept.push_back(of({100})); }},
      {"masks", [] { dispatch_state().exclude |= 1; }},
      {"settings", [] { dispatch_state().default_dtype = DType::F64; }},
      {"settings", [] { dispatch_state().default_device = Device::Reference; }},
  };
  for (const auto& [trace, bug] : planted) {
    const DispatchState saved = dispatch_state();
    const auto call = [&bug = bug] {
      bug();
      raise();
    };
    const std::string text = failures_of([&] { refused(call, {outside_the_view}); });
    dispatch_state() = saved;
    EXPECT_NE(text.find("changed by the refusal"), std::string::npos) << trace;
    EXPECT_NE(text.find(trace), std::string::npos) << text;
  }
}

/// `neg` with a planted shape function that refuses in these words.
template <int N> void refuses_badly(const Frame&, Inferred&) {
  constexpr const char* kTexts[] = {"x is wrong; expected a right one", "neg: expected a right one",
                                    "neg: x is wrong"};
  fail(ErrorCode::Value, kTexts[N]);
}
TEST(Refusals, ATextThatExplainsNothingIsSeen) {
  const InferFn bugs[] = {refuses_badly<0>, refuses_badly<1>, refuses_badly<2>};
  const char* seen[] = {"does not begin with the operator", "names no argument",
                        "does not say what was expected"};
  for (int k = 0; k < 3; ++k) {
    Op row = *OpHandle("neg");
    row.infer = bugs[k];
    const ScopedTable scope(OpTable::current().with(row));
    const std::string text = failures_of([] { refused("neg", {of({2}, DType::Bool)}); });
    EXPECT_NE(text.find(seen[k]), std::string::npos) << text;
  }
}
}  // namespace
