// Thresholds: the list, cases near them, and bugs that show only beyond one.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/ops/thresholds_of.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/law.h"
#include "lamella/verify/case/near_threshold.h"
#include "lamella/verify/run/runner.h"
#include "lamella/verify/run/worker.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op& op(std::string_view name) { return *OpTable::current().find(name); }

TEST(Thresholds, AreLoweredOrNamedAsObjects) {
  std::set<std::string_view> names;
  for (const Threshold& t : all_thresholds()) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_LE(t.lowered, t.usual) << t.name;
    EXPECT_FALSE(readers_of(t).empty() || t.what.empty()) << t.name;
  }
  EXPECT_FALSE(kUsualThresholds.lowered);
  EXPECT_EQ(kLoweredThresholds.tile, 16);
}

/// A row whose kernels are misspelt would be one that no case is drawn for.
TEST(Thresholds, AreOfKernelsThatThereAre) {
  std::set<std::string_view> kernels = {"pointwise", "all", "count_nonzero", "var",
                                        "layer_norm"};  // called by name
  std::set<size_t> had;
  for (const Op* o : all_operators()) {
    kernels.insert(o->kernel.name);
    for (const size_t k : thresholds_of(*o)) had.insert(k);
  }
  for (size_t k = 0; k < all_thresholds().size(); ++k) {
    const Threshold& t = all_thresholds()[k];
    EXPECT_EQ(had.contains(k), t.is_drawn()) << t.name << ": which operators have it";
    std::istringstream words{std::string(readers_of(t))};
    for (std::string word; words >> word;) {
      if (word.back() == '~') word.pop_back();
      EXPECT_TRUE(kernels.contains(word)) << t.name << ": " << word;
    }
  }
}

TEST(Thresholds, AreOfAScope) {
  const bool before = thresholds().lowered;
  {
    const ScopedThresholds lowered(kLoweredThresholds);
    EXPECT_TRUE(thresholds().lowered);
    const ScopedThresholds usual(kUsualThresholds);
    EXPECT_EQ(thresholds().radix, kUsualThresholds.radix);
  }
  EXPECT_EQ(thresholds().lowered, before);
}

/// See NOTE: [named sizes].
TEST(Thresholds, WordsNameSizes) {
  const Choices words = {0, 1, named_size(1023), 0, 0};
  const auto sizes = [&](int64_t max_numel, int64_t largest) {
    const DrawOptions options{.max_numel = max_numel, .largest = largest};
    const Case c(op("neg"), words, options);
    return Dims(c.at(c.tensors()[0]).sizes());
  };
  EXPECT_EQ(sizes(32, 0), Dims{1023});
  EXPECT_LT(sizes(32, -1)[0], 100);
  EXPECT_LT(sizes(6, 0)[0], 100);
  EXPECT_LT(sizes(6, 96)[0], 100);
}

/// `cases` near thresholds of each operator, looked at as a run does.
std::map<std::string, Coverage> near_coverage(const Law& law, const std::vector<const Op*>& ops, int cases) {
  std::map<std::string, Coverage> out;
  for (const Op* o : ops) {
    if (!law.applies(*o)) continue;
    for (int i = 0; i < cases; ++i) {
      Choices choices = choices_of(1, law, *o, uint64_t(i));
      const uint64_t bits = scrambled(scrambled(uint64_t(i) + 1) + o->id);
      const NamedSizes named = name_sizes(law, *o, Sized::NearThreshold, bits, choices);
      if (named.threshold < 0) continue;
      Observation seen;
      seen.sides = sides_of(Case(*o, choices, law.options));
      out[o->name].add_sides(seen, named.threshold);
    }
  }
  return out;
}

/// Rows that operators of the law answer for: no law of values takes random ones.
size_t rows_of(const Law& law, const std::vector<const Op*>& ops) {
  std::set<size_t> rows;
  for (const Op* o : ops) {
    if (!law.applies(*o)) continue;
    for (const size_t k : thresholds_of(*o)) {
      const CountedIn in = all_thresholds()[k].in;
      if (all_thresholds()[k].is_drawn() && (in != CountedIn::Size || !o->kernel.name.empty()))
        rows.insert(k);
    }
  }
  return rows.size();
}

/// Of every row, by operators whose own kernels it names.
TEST(Thresholds, CasesLieOnBothSides) {
  const std::vector<const Op*> ops = all_operators();
  const auto drawn = size_t(std::ranges::count_if(all_thresholds(), &Threshold::is_drawn));
  for (const char* id : {"equals_where_exact", "vmap_equals_loop"}) {
    const auto coverage = near_coverage(*find_law(id), ops, 200);
    const std::vector<Shortfall> sides = threshold_requirements(coverage, ops);
    EXPECT_EQ(sides.size(), 2 * rows_of(*find_law(id), ops)) << id;
    EXPECT_GE(sides.size(), 2 * drawn - 2) << id << ": all but random_block";
    for (const Shortfall& s : sides) {
      EXPECT_GE(s.of(), 10u) << id << ": " << s.what;
      EXPECT_GT(s.hits, 0u) << id << ": " << s.what;
      EXPECT_FALSE(falls_short(s)) << id << ": " << s.what << " " << s.hits << " of " << s.cases;
    }
  }
}

TEST(Thresholds, CasesOfRandomOperatorsLieOnBothSides) {
  const std::vector<const Op*> ops = {&op("rand"), &op("randn")};
  const auto coverage = near_coverage(*find_law("thresholds_are_invisible"), ops, 400);
  int seen = 0;
  for (const Shortfall& s : threshold_requirements(coverage, ops)) {
    if (!s.what.ends_with("random_block")) continue;
    ++seen;
    EXPECT_GT(s.hits, 0u) << s.what;
    EXPECT_FALSE(falls_short(s)) << s.what << " " << s.hits << " of " << s.cases;
  }
  EXPECT_EQ(seen, 2);
}

/// A composite is drawn near the sizes of all kernels, and calls few of them.
TEST(Thresholds, CompositesAnswerForNoKernel) {
  const std::vector<const Op*> ops = {&op("stack")};
  const auto coverage = near_coverage(*find_law("equals_where_exact"), ops, 400);
  for (const Shortfall& s : threshold_requirements(coverage, ops))
    for (const Threshold& t : all_thresholds())
      if (s.what.ends_with(format(" {}", t.name))) { EXPECT_NE(t.in, CountedIn::Size) << s.what; }
}

TEST(Thresholds, ARowThatNobodyAimsAtFallsShort) {
  const std::vector<const Op*> ops = {&op("sort")};
  auto coverage = near_coverage(*find_law("equals_where_exact"), ops, 4000);
  size_t radix = 0;
  while (all_thresholds()[radix].name != "radix") ++radix;
  const auto short_of = [&] {
    std::vector<std::string> out;
    for (const Shortfall& s : threshold_requirements(coverage, ops))
      if (falls_short(s)) out.push_back(s.what);
    return out;
  };
  EXPECT_EQ(short_of(), std::vector<std::string>());
  coverage["sort"].near[radix] = {};
  EXPECT_EQ(short_of(), (std::vector<std::string>{"below threshold radix", "above threshold radix"}));
}

/// What has none: laws that the oracle answers, and those whose sizes mean something else (docs/laws.md).
TEST(Thresholds, LawsThatCanAffordOneLieNearThem) {
  int small_ones = 0;
  for (const Law& law : laws()) {
    if (!law.options.one_large || law.oracle) continue;
    EXPECT_TRUE(draws_near(law)) << law.id;
    for (const Op* o : all_operators()) {
      if (!law.applies(*o) || thresholds_of(*o).empty()) continue;
      bool near = false;
      for (uint64_t i = 0; i < 4000 && !near; ++i) {
        NamedSizes named;
        choices_of(1, law, *o, i, &named);
        near = named.how == Sized::NearThreshold && named.threshold >= 0;
      }
      EXPECT_TRUE(near) << law.id << " " << o->name;
      ++small_ones;
      break;
    }
  }
  EXPECT_GT(small_ones, 20);
}

int64_t most_elements(const Case& c) {
  int64_t most = 0;
  for (const Case::Slot& s : c.tensors()) most = std::max(most, c.at(s).numel());
  return most;
}

/// The second case of an operator, and those near thresholds.
TEST(Thresholds, CasesStayBounded) {
  for (const Law& law : laws())
    for (const Op* o : all_operators()) {
      if (!law.applies(*o)) continue;
      const int64_t named = largest_named(law.options);
      if (named > 0 && (draws_large(law) || !law.options.one_large)) {
        const Choices choices = choices_of(3, law, *o, 1);
        EXPECT_LE(most_elements({*o, choices, law.options}), 2 * named) << law.id << " " << o->name;
      }
      for (uint64_t i = 8; i < 11 && draws_near(law); ++i) {
        Choices choices = choices_of(3, law, *o, i);
        name_sizes(law, *o, Sized::NearThreshold, scrambled(i), choices);
        EXPECT_LE(most_elements({*o, choices, law.options}), 2 * kMostNamed) << law.id << " " << o->name;
      }
    }
}

/// Those of law 23 would be told as failures: they overflow.
TEST(Thresholds, SmallLawsMultiplyFewFactors) {
  const Law& law = *find_law("vjp_is_adjoint");
  for (const char* name : {"prod", "cumprod"})
    for (uint64_t i = 8; i < 400; ++i) {
      Choices choices = choices_of(3, law, op(name), i);
      const NamedSizes named = name_sizes(law, op(name), Sized::NearThreshold, scrambled(i), choices);
      if (named.threshold >= 0) { EXPECT_LE(all_thresholds()[size_t(named.threshold)].usual, 64); }
    }
}

/// Laws of small cases, that is: a bug beyond some hundreds of elements shows in derivatives, too.
TEST(Thresholds, SmallLawsHaveALargeCase) {
  int laws_of_one = 0;
  for (const Law& law : laws()) {
    if (!law.options.one_large) continue;
    ++laws_of_one;
    EXPECT_FALSE(draws_large(law)) << law.id << ": has one in any case";
    int64_t most = 0;
    for (const Op* o : all_operators()) {
      if (!law.applies(*o)) continue;
      const Choices choices = choices_of(3, law, *o, kLargeOfSmall);
      const Case c(*o, choices, law.options);
      for (const Case::Slot& s : c.tensors()) most = std::max(most, c.at(s).numel());
    }
    EXPECT_GE(most, 1900) << law.id;
    EXPECT_LE(most, 2 * kMostNamed) << law.id;
  }
  EXPECT_GT(laws_of_one, 10);
}

/// The operator with a kernel that is wrong for tensors of `at_least` elements.
template <int64_t kAtLeast> const OpTable* wrong_from(const char* name) {
  static KernelFn right;
  auto* row = new Op(op(name));
  right = row->kernel.cpu;
  row->kernel.lines = {};
  row->kernel.cpu = [](const KernelCall& c) {
    right(c);
    const View& out = c.outs[0];
    if (out.numel() >= kAtLeast && out.dtype == DType::F64) out.as<double>()[0] += 1;
  };
  return OpTable::current().with(*row);
}

TEST(Thresholds, BugsBeyondThemAreSeen) {
  const Law& law = *find_law("equals_where_exact");
  for (const OpTable* table :
       {wrong_from<1024>("cumsum"), wrong_from<256>("sort"), wrong_from<2000>("flip")}) {
    const ScopedTable pinned(table);
    int failures = 0;
    for (const char* name : {"cumsum", "sort", "flip"})
      for (uint64_t i = 0; i < 240000; ++i) {
        const Op& row = op(name);
        NamedSizes named;
        const Choices choices = choices_of(1, law, row, i, &named);
        if (named.how != Sized::No) failures += run_check(law, row, choices).kind == Verdict::Fail;
      }
    EXPECT_GT(failures, 0);
  }
}

/// The counterexample is of the first size that is wrong.
TEST(Thresholds, BugsBeyondThemShrinkToThem) {
  const Law& law = *find_law("equals_where_exact");
  const ScopedTable pinned(wrong_from<1000>("cumsum"));
  const Op& row = op("cumsum");
  for (uint64_t i = 1; i < 20000; ++i) {
    const Choices choices = choices_of(1, law, row, i);
    if (run_check(law, row, choices).kind != Verdict::Fail) continue;
    const Shrunk s = shrink(law, row, choices, {.milliseconds = 10000, .executions = 600});
    const Case c(row, s.choices, law.options);
    EXPECT_EQ(c.at(c.tensors()[0]).numel(), 1000);
    return;
  }
  FAIL() << "no case is so large";
}

}  // namespace
