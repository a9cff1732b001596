// What is drawn: every feature has its floor, no two seeds or processes draw the same, chains print shortly.
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "lamella/dispatch/table.h"
#include "lamella/mutate/calibration.h"
#include "lamella/mutate/mutants.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

size_t shared(const Census& a, const Census& b) {
  size_t n = 0;
  for (const uint64_t h : a.cases()) n += b.cases().count(h);
  return n;
}

TEST(Census, EveryFeatureHasItsFloor) {
  for (const uint64_t seed : {1, 2, 3})
    for (const std::string& missed : missed_floors(Census::usual(seed)))
      ADD_FAILURE() << seed << ": " << missed;
}

TEST(Census, EveryFloorIsOfSomethingThatIsCounted) {
  const Census c = Census::usual(1);
  for (const FeatureFloor& f : feature_floors()) EXPECT_GE(c.of(f.of), 1000u) << f.of;
}

/// Small cases are met again by chance, the simplest ones often: most differ.
TEST(Census, SeedsAndProcessesDrawOtherCases) {
  const Census one = Census::usual(1), two = Census::usual(2);
  EXPECT_GT(one.cases().size(), size_t(0.8 * double(one.of("cases"))));
  EXPECT_LT(shared(one, two), one.cases().size() / 5);
  const Census first = Census::usual(1, 0, 2), second = Census::usual(1, 1, 2);
  EXPECT_LT(shared(first, second), first.cases().size() / 5);
  size_t both = first.cases().size() + second.cases().size() - shared(first, second);
  EXPECT_EQ(both, one.cases().size()) << "two processes draw together what one draws";
}

TEST(Census, SeesWhatIsNotDrawn) {
  Census none;
  const Law& law = *find_law("matches_reference");
  for (const Op* o : all_operators())
    for (int k = 0; k < 60; ++k) {
      const Choices no_choices;
      Case c(*o, no_choices, law.options);
      none.add(c, no_choices);
    }
  const std::vector<std::string> missed = missed_floors(none);
  EXPECT_GT(missed.size(), feature_floors().size() / 2) << "the simplest case, again and again";
}

/// Floors that the usual census of one seed misses when `change` may alter each case that is decoded.
template <class Change> std::set<std::string> missed_where(Change change) {
  Census census;
  for (const Op* o : all_operators())
    for (const Law* law : Census::usual_laws()) {
      if (!law->applies(*o)) continue;
      for (uint64_t i = 0; i < Census::kUsual; ++i) {
        DrawOptions options = law->options;
        Choices choices = choices_of(1, *law, *o, change(i, options));
        Case c(*o, choices, options);
        census.add(c, choices);
      }
    }
  std::set<std::string> out;
  for (const std::string& m : missed_floors(census)) out.insert(m.substr(0, m.find(':')));
  return out;
}

/// Each of the floors that one change to the draws is to lower.
TEST(Census, MissesWhatADrawNoLongerGives) {
  const auto unnamed = missed_where([](uint64_t i, DrawOptions& o) {
    o.largest = -1, o.one_large = false;
    return i;
  });
  EXPECT_EQ(unnamed, (std::set<std::string>{"size beyond 128", "size to 64"}));
  const auto small = missed_where([](uint64_t i, DrawOptions& o) {
    o.largest = -1, o.one_large = false, o.max_numel = 2;
    return i;
  });
  for (const char* what : {"size to 64", "size to 128", "below a threshold", "above a threshold"})
    EXPECT_TRUE(small.contains(what)) << what;
  const auto unmixed = missed_where([](uint64_t i, DrawOptions& o) {
    o.mixed = false;
    return i;
  });
  for (const FeatureFloor& f : feature_floors())
    if (f.of == "pairs") { EXPECT_TRUE(unmixed.contains(f.what)) << f.what; }
  const auto again = missed_where([](uint64_t i, DrawOptions&) { return i / 2; });
  EXPECT_EQ(again, std::set<std::string>{"different cases"});
}

/// Guards of cases whose highest bits of the first word are what `change` makes of them.
template <class Change> std::set<std::string> missed_guards(Change change) {
  Census census;
  for (const Op* o : all_operators())
    for (const Law* law : Census::usual_laws())
      for (uint64_t i = 0; i < Census::kUsual && law->applies(*o); ++i) {
        Choices choices = choices_of(1, *law, *o, i);
        if (!choices.empty()) choices[0] = change(choices[0] >> 26) << 26 | (choices[0] & 0x3ffffff);
        Case c(*o, choices, law->options);
        census.add(c, choices);
      }
  std::set<std::string> out;
  for (const std::string& m : missed_floors(census))
    if (m.find("at a page") != m.npos) out.insert(m.substr(0, m.find(':')));
  return out;
}

/// Four cases in sixty-four end at a page, one begins at one, of one the blocks of pools end there.
TEST(Census, MissesGuardsThatAreNoLongerDrawn) {
  EXPECT_EQ(missed_guards([](uint32_t w) { return w; }), std::set<std::string>{});
  EXPECT_EQ(missed_guards([](uint32_t w) { return w == 5 ? 4u : w; }),
            std::set<std::string>{"memory begins at a page"});
  EXPECT_EQ(missed_guards([](uint32_t w) { return w == 6 ? 4u : w; }),
            std::set<std::string>{"blocks end at a page"});
  EXPECT_EQ(missed_guards([](uint32_t w) { return w < 3 ? 0u : w; }),
            std::set<std::string>{"memory ends at a page"});
}

/// Every operator that law 105 is about has something to ask of it in every case.
TEST(Census, NoAttributeIsDiscarded) {
  const Law& law = *find_law("attributes_are_judged");
  int n = 0;
  for (const Op* o : all_operators())
    for (uint64_t i = 0; i < 40 && law.applies(*o); ++i, ++n)
      EXPECT_EQ(run_check(law, *o, choices_of(1, law, *o, i)).kind, Verdict::Pass) << o->name << " " << i;
  EXPECT_GT(n, 1000);
}

TEST(Calibrations, Hold) {
  for (const Calibration& c : calibrations())
    if (!c.slow) { EXPECT_EQ(c.check(), "") << c.id; }
}

long lines_of(const std::string& program) { return std::count(program.begin(), program.end(), '\n'); }

/// What is printed for chains that planted bugs redden.
TEST(Chains, PrintShortlyWhenShrunk) {
  std::vector<long> lines;
  const std::vector<Planted> planted =
      sample_of(all_planted({"mul", "sum", "cumsum", "where", "permute"}), 90, 5);
  for (const Planted& p : planted) {
    if (!p.op || p.group == "dispatch") continue;  // those leave masks and results behind
    const OpTable* const table = plant(p);
    const ScopedTable pinned(table);
    for (const char* id : {"chains_under_vmap", "chains_are_adjoint", "chains_per_lane"}) {
      const Law& law = *find_law(id);
      const Op& row = table->row(p.op->id);
      if (!law.applies(row)) continue;
      for (uint64_t i = 1; i < 40; ++i) {
        const Choices choices = choices_of(5, law, row, i);
        if (run_check(law, row, choices).kind != Verdict::Fail) continue;
        const Shrunk s = shrink(law, row, choices);
        if (!s.flaky) lines.push_back(lines_of(s.verdict.program));
        break;
      }
    }
  }
  ASSERT_GE(lines.size(), 20u);
  std::sort(lines.begin(), lines.end());
  EXPECT_LE(lines[lines.size() / 2], 12) << "of " << lines.size() << " chains";
  RecordProperty("median", int(lines[lines.size() / 2]));
  RecordProperty("most", int(lines.back()));
}
}  // namespace
