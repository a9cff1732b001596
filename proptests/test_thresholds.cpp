// Thresholds: the list, cases near them, and bugs that show only beyond one.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/verify/compare.h"
#include "lamella/verify/law.h"
#include "lamella/verify/near_threshold.h"
#include "lamella/verify/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

const Op& op(std::string_view name) { return *OpTable::current().find(name); }

TEST(Thresholds, AreLoweredOrNamedAsObjects) {
  std::set<std::string_view> names;
  for (const Threshold& t : all_thresholds()) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_LE(t.lowered, t.usual) << t.name;
    EXPECT_FALSE(t.kernels.empty() || t.what.empty()) << t.name;
  }
  EXPECT_FALSE(kUsualThresholds.lowered);
  EXPECT_EQ(kLoweredThresholds.tile, 16);
}

/// A row whose kernels are misspelt would be one that no case is drawn for.
TEST(Thresholds, AreOfKernelsThatThereAre) {
  std::set<std::string_view> kernels = {"pointwise", "all",
                                        "count_nonzero"};  // nonzero calls that one itself
  std::set<size_t> had;
  for (const Op* o : all_operators()) {
    kernels.insert(o->kernel.name);
    for (const size_t k : thresholds_of(*o)) had.insert(k);
  }
  for (size_t k = 0; k < all_thresholds().size(); ++k) {
    const Threshold& t = all_thresholds()[k];
    EXPECT_TRUE(had.contains(k)) << t.name << ": no operator has it";
    std::istringstream words{std::string(t.kernels)};
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
TEST(Thresholds, WordsNameSizesFromVersion8On) {
  const Choices words = {0, 1, named_size(1023), 0, 0};
  const auto sizes = [&](int version, int64_t max_numel, int64_t largest) {
    DrawOptions options{.max_numel = max_numel, .version = version};
    options.largest = largest;
    const Case c(op("neg"), words, options);
    return Dims(c.at(c.tensors()[0]).sizes());
  };
  EXPECT_EQ(sizes(8, 32, 0), Dims{1023});
  EXPECT_LT(sizes(7, 32, 0)[0], 100);
  EXPECT_LT(sizes(8, 32, -1)[0], 100);
  EXPECT_LT(sizes(8, 6, 0)[0], 100);
  EXPECT_LT(sizes(8, 6, 96)[0], 100);
}

TEST(Thresholds, CasesLieOnBothSides) {
  const Law& law = *find_law("equals_where_exact");
  RunOptions options{{}, {&law}, 1, 7, 1};
  for (const char* name : {"sort", "argmax", "cumsum", "sum", "mm", "add", "linalg_cholesky", "stack"})
    options.ops.push_back(&op(name));
  std::map<std::string, Coverage> coverage;
  for (const Op* o : options.ops) {
    Coverage& c = coverage[o->name];
    for (uint64_t i = 0; i < 60000; ++i) {
      NamedSizes named;
      const Choices choices = choices_of(1, law, *o, i, &named);
      if (named.threshold < 0) continue;
      Observation seen;
      seen.sides = sides_of(Case(*o, choices, law.options));
      c.add_sides(seen, named.threshold);
    }
  }
  for (const Shortfall& s : threshold_requirements(coverage, options.ops)) {
    EXPECT_GE(s.cases, 10u) << s.what;
    EXPECT_GT(s.hits, 0u) << s.what;
    EXPECT_FALSE(falls_short(s)) << s.what << " " << s.hits << " of " << s.cases;
  }
}

TEST(Thresholds, CasesStayBounded) {
  for (const Law& law : laws()) {
    if (largest_named(law.options) <= 0) continue;
    for (const Op* o : all_operators()) {
      if (!law.applies(*o)) continue;
      const Case c(*o, choices_of(3, law, *o, 1), law.options);
      for (const Case::Slot& s : c.tensors())
        EXPECT_LE(c.at(s).numel(), 2 * largest_named(law.options)) << law.id << " " << o->name;
    }
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
      const Case c(*o, choices_of(3, law, *o, kLargeOfSmall), law.options);
      for (const Case::Slot& s : c.tensors()) most = std::max(most, c.at(s).numel());
    }
    EXPECT_GE(most, 1900) << law.id;
    EXPECT_LE(most, 2 * kMostNamed) << law.id;
  }
  EXPECT_GT(laws_of_one, 10);
}

/// see NOTE: [decoder versions]
TEST(Thresholds, OlderCasesOfSmallLawsStaySmall) {
  const Law& law = *find_law("vjp_is_adjoint");
  DrawOptions old = law.options;
  old.version = 8;
  const Choices choices = choices_of(3, law, op("neg"), kLargeOfSmall);
  EXPECT_GE(Case(op("neg"), choices, law.options).at({0, 0}).numel(), 1900);
  EXPECT_LE(Case(op("neg"), choices, old).at({0, 0}).numel(), 96);
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
      for (uint64_t i = 0; i < 20000; ++i) {
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
