// Laws of the harness itself: its verdicts refuse wrong answers, and it answers questions with known answers.
#include "lamella/mutate/laws_harness.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <stdlib.h>

#include "lamella/mutate/answers.h"
#include "lamella/mutate/calibration.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

/// Operators without tensors have few laws of their own: these have time there.
bool on_factories(const Op& op) { return !takes_tensors(op); }

/// Whether the law, whose verdicts are these, refuses the kind.
Verdict refuses(const Law& law, const WrongAnswer& w, Verdicts verdicts = Verdicts::AsGiven) {
  Heard h = hear(law, w.kind, verdicts);
  // Where schedules decide, one run of its checks may miss what most runs see.
  for (int again = 0; again < 4 && h.kind == Heard::Unseen; ++again) h = hear(law, w.kind, verdicts);
  if (h.kind != Heard::Unseen) return Verdict::pass();
  return Verdict::fail(
      format("law {} ({}) passes with {} in {} checks", law.number, law.id, w.what, h.checks),
      format("  // lamella answers --law {}\n", law.id));
}

/// One law and one kind of wrong answer, of all that it must refuse.
Verdict wrong_answers_are_refused(Case& c) {
  const Law& law = laws()[c.draw.below(uint32_t(laws().size()))];
  const std::vector<WrongAnswer>& kinds = wrong_answers();
  const WrongAnswer& w = kinds[c.draw.below(uint32_t(kinds.size()))];
  return is_refused(law, w.kind) ? refuses(law, w) : Verdict::pass();
}

/// The first of them: one pair asks all calibrations, in their order (see NOTE: [numbered cases]).
bool on_first_factory(const Op& op) {
  static const uint32_t first = [] {
    for (const Op* o : all_operators())
      if (on_factories(*o)) return o->id;
    return UINT32_MAX;
  }();
  return op.id == first;
}

Verdict holds(const Calibration& one) {
  const Verdict v = check_apart(
      [&] {
        const Finding wrong = one.check();
        return wrong.empty() ? Verdict::pass() : Verdict::fail(wrong);
      },
      20);
  if (v.kind != Verdict::Fail) return v;
  return Verdict::fail({v.failure, format("{}: {}", one.id, v.message)}, format("  // {}\n", one.statement));
}

Verdict calibrations_hold(Case& c) {
  const std::vector<Calibration>& all = calibrations();
  const Calibration& one = all[c.draw.word() % all.size()];
  return one.slow ? Verdict::pass() : holds(one);
}

void say_nothing() { (void)!std::freopen("/dev/null", "w", stderr); }  // in a process of its own
std::string raises() { say_nothing(), fail(ErrorCode::Value, "planted"); }
std::string throws_what_is_no_exception() { say_nothing(), throw 1; }
std::string is_killed() {
  (void)std::signal(SIGABRT, SIG_DFL);
  std::abort();
}
std::string exits() { ::_Exit(0); }
const Calibration kWrongCalibrations[] = {
    {"finds", "a calibration that finds something", [] { return std::string("planted"); }},
    {"raises", "one that raises", raises},
    {"throws", "one that throws what is no exception", throws_what_is_no_exception},
    {"killed", "one whose process is killed", is_killed},
    {"exits", "one whose process exits with status 0", exits},
};

/// The first law that is known to refuse the kind and passes it when its verdicts all pass: where a wrong
/// answer ends the process, that is a refusal as well. Of those without the oracle, which is slow, the first
/// twenty are tried.
const Law* that_may_pass(Wrong kind) {
  int tried = 0;
  for (const Law& law : laws())
    if (!law.oracle && is_refused(law, kind) && tried++ < 20 &&
        hear(law, kind, Verdicts::AllPass).kind == Heard::Unseen)
      return &law;
  return nullptr;
}

void add_both() {
  add_law({130,
           "wrong_answers_are_refused",
           "harness",
           "A law refuses each kind of wrong answer that docs/answers.md says it sees.",
           {},
           true,
           on_factories,
           wrong_answers_are_refused});
  add_law({131,
           "calibrations_hold",
           "harness",
           "Comparisons, bounds, generators, counts and verdicts answer questions with known answers.",
           {},
           true,
           on_first_factory,
           calibrations_hold,
           1,
           [] { return calibrations().size(); }});
}

}  // namespace

std::vector<ToldWrongly> told_wrongly() {
  std::vector<ToldWrongly> out;
  for (const WrongAnswer& w : wrong_answers()) {
    const Law* const law = that_may_pass(w.kind);
    out.push_back({130, "wrong_answers_are_refused",
                   format("`{}` passes {}", law ? law->id : "nobody", w.what),
                   law ? refuses(*law, w, Verdicts::AllPass) : Verdict::pass()});
  }
  for (const Calibration& c : kWrongCalibrations)
    out.push_back({131, "calibrations_hold", std::string(c.statement), holds(c)});
  return out;
}

void install_harness_laws() { [[maybe_unused]] static const bool added = (add_both(), true); }

}  // namespace lamella::verify
