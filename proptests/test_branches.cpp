// Branches that a run counts: what makes one, and that runs count them.
#include <csignal>
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/verify/run/branches.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct Counted {
  Branches taken;

  /// Branches that none of the calls before has taken.
  template <class F> size_t operator()(F&& f) {
    const CountBranches counting(taken);
    try {
      f();
    } catch (const Error&) {}
    return counting.fresh();
  }
};

TEST(Branches, AreTakenOnce) {
  Counted fresh;
  const auto plain = [] { ones({3}, DType::F32) + 1; };
  EXPECT_GT(fresh(plain), 0u);
  EXPECT_EQ(fresh(plain), 0u);
  EXPECT_EQ(Branches::parse(fresh.taken.bytes()).count(), fresh.taken.count());
}

TEST(Branches, TellAlternativesOfKernelsApart) {
  Counted fresh;
  const Tensor x = ones({3, 2}, DType::F32), d = ones({3, 2}, DType::F64);
  const Tensor wide = ones({3, 64}, DType::F32), none = ones({0, 2}, DType::F32);
  const Tensor t = transpose(x, 0, 1), far = slice(wide, 1, 0, 2), further = slice(wide, 1, 0, 63);
  const Tensor alike = slice(wide, 1, 0, 62);
  EXPECT_GT(fresh([&] { neg(x); }), 0u);
  EXPECT_GT(fresh([&] { neg(d); }), 0u) << "another dtype";
  EXPECT_GT(fresh([&] { neg(t); }), 0u) << "another layout";
  EXPECT_GT(fresh([&] { neg(none); }), 0u) << "no elements";
  EXPECT_GT(fresh([&] { neg(far); }), 0u) << "another plan";
  EXPECT_GT(fresh([&] { neg(further); }), 0u) << "a run on the other side of thresholds";
  EXPECT_EQ(fresh([&] { neg(alike); }), 0u) << "another size on the same sides";
}

TEST(Branches, TellRulesAndTransformsApart) {
  Counted fresh;
  const Tensor x = ones({3}, DType::F64);
  const Function f = [](const Tensors& xs) { return Tensors{xs[0] * xs[0]}; };
  EXPECT_GT(fresh([&] { f({x}); }), 0u);
  EXPECT_GT(fresh([&] { jvp(f, {x}, {x}); }), 0u);
  EXPECT_EQ(fresh([&] { jvp(f, {x}, {x}); }), 0u);
  EXPECT_GT(fresh([&] { vmap(f)({x}); }), 0u);
  EXPECT_GT(fresh([&] { vjp(f, {x}).pullback({x}); }), 0u);
}

TEST(Branches, TellRefusalsApartByTheirWords) {
  Counted fresh;
  const Tensor x = ones({3});
  EXPECT_GT(fresh([&] { sum(x, Dims{1}); }), 0u);
  EXPECT_EQ(fresh([&] { sum(x, Dims{2}); }), 0u) << "the same refusal of another dim";
  EXPECT_GT(fresh([&] { sum(x, Dims{0, 0}); }), 0u);
}

TEST(Branches, DoNotCountTheOracle) {
  Counted fresh;
  const Tensor x = to_device(ones({3}, DType::F64), Device::Reference);
  fresh([&] { neg(x); });
  EXPECT_EQ(fresh([&] { neg(neg(x)); }), 0u);
}

bool every(const Op&) { return true; }
Verdict stays(Case&) { return Verdict::pass(); }
/// Calls of any operator, with arguments as drawn.
Verdict wanders(Case& c) {
  const std::vector<const Op*>& rows = OpTable::current().rows();
  const Op& op = *rows[c.draw.below(uint32_t(rows.size()))];
  if (!op.base->samples || op.base != &op || (op.properties & (kRandom | kAmbient))) return Verdict::pass();
  Choices words(32);
  for (uint32_t& w : words) w = c.draw.word();
  const Case other(op, words, {});
  try {
    call_boxed(op, other.args);
  } catch (const Error&) {}
  return Verdict::pass();
}

TEST(Branches, AreCountedByRuns) {
  static const volatile std::sig_atomic_t never = 0;
  const Law moving{0, "wanders", "test", "Is known.", {}, false, every, wanders};
  const Law still{0, "stays", "test", "Is known.", {}, false, every, stays};
  const Op& op = *OpTable::current().find("add");
  const Report r = run({{&op}, {&moving, &still}, 0.5, 1, 2}, never);
  ASSERT_TRUE(r.failures.empty()) << r.failures[0].message;
  EXPECT_GT(r.branches.count(), 100u);
}
}  // namespace
