// Counts: coverage, its requirements, and reports that are merged or sent to another process.
#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/programs/census.h"
#include "lamella/verify/run/check_operator.h"
#include "lamella/verify/run/wire.h"

namespace lamella::verify {

namespace {

constexpr std::sig_atomic_t kGoOn = 0;

Report run_alone(const Law& law, uint64_t cases) {
  RunOptions o{{smooth_ones().at(0)}, {&law}, 60, 1, 1};
  o.cases = cases;
  return run_here(o, kGoOn);
}

/// Every count another number.
Coverage full_coverage() {
  Coverage c;
  uint64_t n = 3;
  c.cases = n++, c.deep_cases = n++;
  for (uint64_t& k : c.features) k = n++;
  for (uint64_t& k : c.depths) k = n++;
  for (auto* const subsets : {&c.mapped, &c.traced})
    for (auto& row : *subsets)
      for (uint64_t& k : row) k = n++;
  for (Coverage::Near& k : c.near) k = {n, {n + 1, n + 2}}, n += 3;
  return c;
}

std::string difference_of(const Coverage& got, const Coverage& want, uint64_t times) {
  std::string wrong;
  const auto compare = [&](const char* what, uint64_t a, uint64_t b) {
    if (a != times * b && wrong.empty()) wrong = format("{}: {}, expected {}", what, a, times * b);
  };
  compare("cases", got.cases, want.cases), compare("deep cases", got.deep_cases, want.deep_cases);
  for (size_t k = 0; k < want.features.size(); ++k) compare("a feature", got.features[k], want.features[k]);
  for (size_t k = 0; k < want.depths.size(); ++k) compare("a depth", got.depths[k], want.depths[k]);
  for (size_t n = 0; n < want.mapped.size(); ++n)
    for (size_t k = 0; k < want.mapped[n].size(); ++k) {
      compare("a mapped subset", got.mapped[n][k], want.mapped[n][k]);
      compare("a traced subset", got.traced[n][k], want.traced[n][k]);
    }
  for (size_t k = 0; k < want.near.size(); ++k) {
    compare("aimed at a threshold", got.near[k].aimed, want.near[k].aimed);
    for (const size_t side : {size_t{0}, size_t{1}})
      compare("a side of a threshold", got.near[k].sides[side], want.near[k].sides[side]);
  }
  return wrong;
}

std::string coverage_is_whole() {
  const Coverage c = full_coverage();
  if (const std::string d = difference_of(Coverage::parse(c.text()), c, 1); !d.empty())
    return "read back: " + d;
  Coverage sum = c;
  sum.merge(c);
  if (const std::string d = difference_of(sum, c, 2); !d.empty()) return "merged with itself: " + d;
  return difference_of(Coverage::parse(Coverage().text()), Coverage(), 1);
}

std::string each_count_has_its_place() {
  for (int depth = 0; depth < int(Coverage::kDepths); ++depth) {
    Coverage c;
    c.add_depth(depth);
    for (int k = 0; k < int(Coverage::kDepths); ++k)
      if (c.depths[size_t(k)] != uint64_t(depth > 0 && k == depth))
        return format("a stack of depth {} is counted {} times as one of depth {}", depth,
                      c.depths[size_t(k)], k);
    if (c.deep_cases != uint64_t(depth > 0)) return "cases under transforms are miscounted";
  }
  for (uint8_t n = 1; n <= 3; ++n)
    for (uint8_t bits = 1; bits < 1u << n; ++bits) {
      Observation o;
      o.mapped_of = n, o.mapped = bits;
      o.traced_of = uint8_t(4 - n), o.traced = 1;
      Coverage c;
      c.add(o);
      if (c.mapped[n][bits] != 1 || c.traced[size_t(4 - n)][1] != 1 || c.cases != 1)
        return format("a case that maps {} of {} is not counted as that", int(bits), int(n));
    }
  for (size_t f = 0; f < kFeatures; ++f) {
    Observation o;
    o.note(Feature(f));
    Coverage c;
    c.add(o);
    for (size_t k = 0; k < kFeatures; ++k)
      if (c.features[k] != uint64_t(k == f)) return format("{} is miscounted", name(Feature(f)));
  }
  return "";
}

std::string shortfalls_are_seen() {
  struct Known {
    uint64_t hits, cases;
    double required;
    bool falls_short;
  };
  for (const Known& k : {Known{0, 100000, 0.1, true}, Known{1, 100000, 0.1, true},
                         Known{5000, 100000, 0.1, true}, Known{11000, 100000, 0.1, false},
                         Known{9990, 100000, 0.1, false}, Known{0, 5, 0.1, false}, Known{1, 5, 0.1, false},
                         Known{0, 0, 0.5, false}, Known{0, 2000, 0.01, true}, Known{30, 100000, 0.01, true}})
    if (falls_short({"", k.hits, k.cases, k.required}) != k.falls_short)
      return format("{} hits in {} cases, where {} is required, {}", k.hits, k.cases, k.required,
                    k.falls_short ? "are enough" : "fall short");
  return "";
}

/// Gives in at last: a run that asks until some case passes would never end.
int discarded = 0;
Verdict discards_for_long(Case&) {
  observe_mapped({true, false});
  return ++discarded > 1000 ? Verdict::pass() : Verdict::discard();
}

std::string discards_count_for_nothing() {
  discarded = 0;
  const Law discards = law_that(discards_for_long);
  const Law deep = law_that([](Case&) { return Verdict::pass(2); });
  const Report none = run_alone(discards, 64), all = run_alone(deep, 64);
  if (none.total().cases || none.total().discards != 64 || none.total().deep)
    return format("64 discarded cases are {} cases and {} discards", none.total().cases,
                  none.total().discards);
  for (const auto& [op, c] : none.coverage)
    if (c.cases || c.deep_cases) return "features of discarded cases are covered";
  uint64_t deep_cases = 0;
  for (const auto& [op, c] : all.coverage) deep_cases += c.depths[2];
  if (all.total().cases != 64 || all.total().deep != 64 || deep_cases != 64)
    return format("of 64 cases under two transforms {} count, {} are deep, {} covered", all.total().cases,
                  all.total().deep, deep_cases);
  return "";
}

int counting = 0;
Verdict counts_and_discards_half(Case&) {
  ++counts_of_case()["seen"];
  return ++counting % 2 ? Verdict::discard() : Verdict::pass();
}

/// What a discarded case has counted is nobody's.
std::string counts_are_of_their_cases() {
  counting = 0;
  const Report r = run_alone(law_that(counts_and_discards_half), 64);
  uint64_t seen = 0;
  for (const auto& [law, counts] : r.counts)
    for (const auto& [what, n] : counts) seen += uint64_t(n);
  const uint64_t cases = r.total().cases;
  return seen == cases ? "" : format("{} cases that count one each have counted {}", cases, seen);
}

Failure failure_of(const char* op, const char* law, What kind) {
  Failure f;
  f.op = op, f.law = law, f.kind = {kind, "shape"}, f.message = "5:got 1\nexpected 2", f.program = "int x;\n";
  f.blob = "LC9.AAAA", f.free = "dtype", f.index = 7, f.process = 1, f.ran = 12, f.checks = 34;
  f.depth = 2;
  return f;
}

std::string reports_are_merged() {
  Report one, other;
  one.tallies[{"mul", "a law"}] = {3, 1, 2, 1, 0.5, {}};
  other.tallies[{"mul", "a law"}] = {5, 0, 1, 2, 0.5, {}};
  other.tallies[{"sum", "a law"}] = {7, 2, 0, 0, 0.5, {}};
  one.failures = {failure_of("mul", "a law", What::Value)};
  other.failures = {failure_of("mul", "a law", What::Value), failure_of("sum", "a law", What::Value),
                    failure_of("mul", "a law", What::Nan), failure_of("mul", "another law", What::Value)};
  one.coverage["mul"] = full_coverage(), other.coverage["mul"] = full_coverage();
  one.counts["a law"]["calls"] = 4, other.counts["a law"]["calls"] = 5;
  one.merge(decode_report(encode(other)));  // as it comes from another process
  const Tally t = one.total();
  if (t.cases != 15 || t.failures != 3 || t.discards != 3 || t.deep != 3)
    return format("{} cases, {} failures, {} discards, {} deep ones; expected 15, 3, 3, 3", t.cases,
                  t.failures, t.discards, t.deep);
  if (one.failures.size() != 4)
    return format("of four failures that differ in operator, law or kind {} are kept", one.failures.size());
  for (const Failure& f : one.failures)
    if (f.message != "5:got 1\nexpected 2" || f.program != "int x;\n" || f.blob != "LC9.AAAA" ||
        f.index != 7 || f.process != 1 || f.ran != 12 || f.checks != 34 || f.depth != 2 ||
        f.free != "dtype" || f.kind.about != "shape")
      return "a failure of another process does not arrive whole";
  if (one.counts["a law"]["calls"] != 9) return "what laws count is not added up";
  return difference_of(one.coverage["mul"], full_coverage(), 2);
}

std::string nothing_checked_is_no_success() {
  OperatorReport r;
  if (r.passed()) return "an operator without a case has passed";
  r.report.tallies[{"mul", "a law"}].discards = 9;
  if (r.passed()) return "an operator of which all cases were discarded has passed";
  r.report.tallies[{"mul", "a law"}].cases = 9;
  if (!r.passed()) return "an operator without failures has not passed";
  r.report.failures = {failure_of("mul", "a law", What::Value)};
  return r.passed() ? "an operator with a failure has passed" : "";
}

}  // namespace

void add_count_calibrations(std::vector<Calibration>& all) {
  all.push_back(
      {"coverage_is_whole", "Coverage that is written, read and merged loses no count.", coverage_is_whole});
  all.push_back({"each_count_has_its_place", "Each depth, subset and feature is counted as itself.",
                 each_count_has_its_place});
  all.push_back({"shortfalls_are_seen",
                 "A share far below what is required falls short, whether it was hit or not.",
                 shortfalls_are_seen});
  all.push_back({"discards_count_for_nothing", "A discarded case is no case and covers nothing.",
                 discards_count_for_nothing});
  all.push_back({"counts_are_of_their_cases",
                 "What discarded cases count is left out, and not the next one's.",
                 counts_are_of_their_cases});
  all.push_back({"reports_are_merged", "Reports of several processes add up, and keep failures that differ.",
                 reports_are_merged});
  all.push_back({"nothing_checked_is_no_success",
                 "An operator without a case, or with a failure, has not passed.",
                 nothing_checked_is_no_success});
}

}  // namespace lamella::verify
