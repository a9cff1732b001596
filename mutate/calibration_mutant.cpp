// What `lamella mutate` counts: what laws notice, what is equivalent, and neither for the other.
#include <csignal>
#include <cstdlib>

#include "lamella/core/pool.h"
#include "lamella/mutate/calibration_parts.h"
#include "lamella/mutate/mutant_table.h"
#include "lamella/verify/run/apart.h"

namespace lamella::verify {

namespace {

std::string scores_add_up() {
  MutantResult killed, equal, alive;
  killed.kills.push_back({"a law", 1, "", ""});
  equal.equivalent = true;
  const Score s = score_of({killed, killed, equal, alive});
  if (s.mutants != 4 || s.killed != 2 || s.equivalent != 1 || s.survivors() != 1)
    return format("of two that were noticed, one equivalent and one survivor {} are noticed, {} equivalent",
                  s.killed, s.equivalent);
  return std::abs(s.rate() - 2.0 / 3) < 1e-12 ? "" : format("their rate is {}", s.rate());
}

Planted nothing_wrong() {
  return {"nothing", "kernel", "Nothing is wrong.", smooth_ones().at(0), OpForm::Functional, [](Op&) {}};
}
MutantOptions few() {
  MutantOptions o;
  o.processes = 1, o.cpu_ms = 2, o.equivalence_ms = 500, o.equivalence_cases = 40;
  o.laws = {"schema_reads_back"};
  return o;
}
MutantResult result_of(const Planted& p, const MutantOptions& o) {
  const std::vector<MutantResult> all = run_mutants({p}, o);
  return all.empty() ? MutantResult() : all[0];
}

std::string few_cases_are_no_proof() {
  const MutantResult r = result_of(nothing_wrong(), few());
  if (r.killed()) return "a bug that is none was noticed by " + r.kills[0].law;
  return r.equivalent ? "40 equal cases are called equivalence" : "";
}

void dies(const KernelCall&) {
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

/// No law of these runs a kernel: it is run where right and wrong are compared.
std::string deaths_elsewhere_are_no_kills() {
  Planted p = nothing_wrong();
  p.plant = [](Op& row) { row.kernel.cpu = dies, row.kernel.lines = {}; };
  const MutantResult r = result_of(p, few());
  if (r.killed()) return "a process that dies while it compares is counted as noticed by " + r.kills[0].law;
  MutantOptions all = few();
  all.laws = {"equals_where_exact"};
  return result_of(p, all).killed() ? "" : "a process that dies in a law is not counted as noticed";
}

Verdict always_fails(Case&) { return Verdict::fail("planted"); }

/// In a process of its own: it has one law more.
std::string red_before_is_not_noticed() {
  const Verdict v = check_apart(
      [] {
        add_law(law_that(always_fails, "calibration_of_red"));
        MutantOptions o = few();
        o.laws = {"calibration_of_red"};
        return result_of(nothing_wrong(), o).killed() ? Verdict::fail("noticed") : Verdict::pass();
      },
      60);
  return v.kind == Verdict::Fail ? "a law that fails without the bug has " + v.message + " it" : "";
}

}  // namespace

void add_mutant_calibrations(std::vector<Calibration>& all) {
  if constexpr (kPoisons)
    return;  // their processes have a limit of addresses, with which no sanitizer starts
  all.push_back(
      {"scores_add_up", "A bug is noticed, equivalent or a survivor, and one of them.", scores_add_up});
  all.push_back({"few_cases_are_no_proof", "A bug is not equivalent before 10^5 cases are equal.",
                 few_cases_are_no_proof});
  all.push_back({"deaths_elsewhere_are_no_kills", "Who dies in a comparison was noticed by no law.",
                 deaths_elsewhere_are_no_kills});
  all.push_back({"red_before_is_not_noticed", "A law that fails without a bug has not noticed it.",
                 red_before_is_not_noticed});
}

}  // namespace lamella::verify
