// Laws of the harness itself: its verdicts refuse wrong answers, and it answers questions with known answers.
#include "lamella/mutate/laws_harness.h"

#include "lamella/mutate/answers.h"
#include "lamella/mutate/calibration.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

/// Operators without tensors have few laws of their own: these have time there.
bool on_factories(const Op& op) { return !takes_tensors(op); }

/// One law and one kind of wrong answer, of all that it must refuse.
Verdict wrong_answers_are_refused(Case& c) {
  const Law& law = laws()[c.draw.below(uint32_t(laws().size()))];
  const std::vector<WrongAnswer>& kinds = wrong_answers();
  const WrongAnswer& w = kinds[c.draw.below(uint32_t(kinds.size()))];
  if (!is_refused(law, w.kind)) return Verdict::pass();
  Heard h = hear(law, w.kind);
  // Where schedules decide, one run of its checks may miss what most runs see.
  for (int again = 0; again < 4 && h.kind == Heard::Unseen; ++again) h = hear(law, w.kind);
  if (h.kind != Heard::Unseen) return Verdict::pass();
  return Verdict::fail(
      format("law {} ({}) passes with {} in {} checks", law.number, law.id, w.what, h.checks),
      format("  // lamella answers --law {}\n", law.id));
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

Verdict calibrations_hold(Case& c) {
  const std::vector<Calibration>& all = calibrations();
  const Calibration& one = all[c.draw.word() % all.size()];
  if (one.slow) return Verdict::pass();
  const Verdict v = check_apart(
      [&] {
        const Finding wrong = one.check();
        return wrong.empty() ? Verdict::pass() : Verdict::fail(wrong);
      },
      20);
  if (v.kind != Verdict::Fail) return v;
  return Verdict::fail({v.failure, format("{}: {}", one.id, v.message)}, format("  // {}\n", one.statement));
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

void install_harness_laws() { [[maybe_unused]] static const bool added = (add_both(), true); }

}  // namespace lamella::verify
