// The harness is proved on planted bugs: nearly all of a sample are noticed, and nothing is noticed where
// nothing is wrong.
#include <gtest/gtest.h>
#include <set>

#include "lamella/mutate/calibration.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/mutate/mutant_table.h"
#include "lamella/verify/run/context.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

TEST(Mutants, HarnessIsCalibrated) {
  for (const Calibration& c : calibrations()) EXPECT_EQ(c.check(), "") << c.statement;
}

TEST(Mutants, EveryFaultOfTheHarnessIsNoticed) {
  std::vector<Planted> harness = all_planted({"mul"});
  const size_t others = harness.size();
  for (const FaultInfo& f : faults())
    harness.push_back({std::string(f.id), "harness", std::string(f.what), nullptr, OpForm::Functional,
                       [fault = f.fault](Op&) { change_context([=](RunContext& c) { c.fault = fault; }); }});
  harness.erase(harness.begin(), harness.begin() + long(others));
  for (const MutantResult& r : run_mutants(harness, {})) EXPECT_TRUE(r.killed()) << r.id << ": " << r.what;
}

/// The level by itself changes nothing: a perturbation that makes the right call survives all laws.
TEST(Mutants, TheLevelAloneIsNotNoticed) {
  static const Perturbation none{"none", "Nothing is wrong.", nullptr,
                                 [](const Op& op, const Values& args) { return call_boxed(op, args); }};
  std::vector<Planted> planted;
  int seen = 0;  // every fourth: a minute of processor time otherwise
  for (const Planted& p : all_planted({"mul", "softmax", "cumprod", "cat", "layer_norm", "reshape"})) {
    if (p.id.find('/') == p.id.npos || !p.id.ends_with(":negated") || seen++ % 4) continue;
    Planted same = p;
    same.plant = [plant = p.plant](Op& row) {
      plant(row);
      live_bug.perturbation = &none;
    };
    planted.push_back(same);
  }
  ASSERT_GE(planted.size(), 10u);
  MutantOptions options;
  options.cpu_ms = 100;
  options.equivalence_cases = 100;
  for (const MutantResult& r : run_mutants(planted, options)) {
    EXPECT_FALSE(r.killed()) << r.id << ": " << (r.killed() ? r.kills[0].law + " " + r.kills[0].message : "");
    EXPECT_NE(r.reason.find("equal bits in 100 cases"), std::string::npos) << r.id << ": " << r.reason;
  }
}

TEST(Mutants, NamesAreDifferent) {
  std::set<std::string> ids;
  for (const Planted& p : all_planted({"sum", "mul", "cat", "sort"}))
    EXPECT_TRUE(ids.insert(p.id).second) << p.id;
}

TEST(Mutants, ChecksToKillAreThoseOfWhatWasNoticed) {
  std::vector<MutantResult> results;
  for (int n = 1; n <= 100; ++n) {
    MutantResult r;
    r.group = n <= 50 ? "rule" : "kernel", r.checks = n, r.kills = {{"stacks", 1, "", ""}};
    results.push_back(r);
  }
  results.emplace_back().checks = 100000;  // nobody noticed
  const ChecksToKill all = checks_to_kill(results), rules = checks_to_kill(results, "rule");
  EXPECT_EQ(all.mutants, 100u);
  EXPECT_EQ(all.half, 51);
  EXPECT_EQ(all.most, 96);
  EXPECT_EQ(rules.half, 26);
  EXPECT_EQ(rules.most, 48);
  EXPECT_EQ(checks_to_kill(results, "batch").mutants, 0u);
}

TEST(Mutants, TheColumnOfTheTableIsReadBack) {
  const std::string before =
      "text\n| law | id | statement | by |\n| --- | --- | --- | --- |\n"
      "| 3 | `a` | A. | |\n| 4 | `b`, `c` | B | `x` |\nmore\n";
  const auto column = read_column(with_column(before, {{"a", {"m:1", "m:2"}}, {"c", {"n/o#0:p"}}}));
  EXPECT_EQ(column.at("a"), (std::vector<std::string>{"m:1", "m:2"}));
  EXPECT_EQ(column.at("b"), column.at("c"));
  EXPECT_EQ(column.at("c"), (std::vector<std::string>{"n/o#0:p"}));
}
}  // namespace
