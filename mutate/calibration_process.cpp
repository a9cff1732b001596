// Processes: a check that ends its process, or never ends, is a failure of its own case, and nothing else is
// lost.
#include <chrono>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/case/series.h"
#include "lamella/verify/run/apart.h"
#include "lamella/verify/run/record.h"

namespace lamella::verify {

namespace {

const volatile std::sig_atomic_t never = 0;

/// One case in nine, by its words alone.
bool chosen(Case& c) { return print_of(c) % 9 == 3; }

Verdict crashes(Case& c) {
  if (chosen(c)) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  return Verdict::pass();
}
Verdict exits_well(Case& c) {
  if (chosen(c)) ::_exit(0);
  return Verdict::pass();
}
Verdict exits_badly(Case& c) {
  if (chosen(c)) ::_exit(7);
  return Verdict::pass();
}
/// These two end after all, and once, so that a harness that waits for ever is found out soon.
bool was_long = false;
Verdict spins(Case& c) {
  const double until = chosen(c) && !std::exchange(was_long, true) ? processor_time(::getpid()) + 1 : 0;
  while (processor_time(::getpid()) < until) {}
  return Verdict::pass();
}
Verdict waits(Case& c) {
  if (chosen(c) && !std::exchange(was_long, true)) std::this_thread::sleep_for(std::chrono::seconds(3));
  return Verdict::pass();
}
Verdict passes(Case&) { return Verdict::pass(); }

struct Death {
  const char* what;
  Verdict (*check)(Case&);
  const char* kind;
  int processes = 2;
  double patience = kSecondsOfACheck;
};

std::string wrong_about(const Death& d) {
  const Law dies = law_that(d.check, "calibration_dies"), lives = law_that(passes, "calibration_lives");
  const Op& op = *smooth_ones().at(0);
  RunOptions o{{&op}, {&dies, &lives}, 60, 1, d.processes};
  o.cases = 60, o.patience = d.patience, o.settle = false;
  was_long = false;
  uint64_t ended = 0;
  const Report r = run(o, never, [&](const Progress& p) { ended = std::max(ended, p.ended); });
  const Failure* found = nullptr;
  for (const Failure& f : r.failures)
    if (f.law == dies.id) found = &f;
  if (!found) return format("a check that {} is no failure", d.what);
  if (const std::string kind = str(found->kind); kind != d.kind)
    return format("a check that {} is reported as \"{}\"", d.what, kind);
  const Record record = from_blob(found->blob);
  Case c(op, record.choices, dies.options);
  if (!chosen(c)) return format("a check that {} is put to another case's account", d.what);
  if (ended == 0) return format("a check that {} does not show in the progress", d.what);
  const auto at = r.tallies.find({op.name, std::string(lives.id)});
  const uint64_t n = at == r.tallies.end() ? 0 : at->second.cases;
  return n == 60 ? "" : format("beside a check that {} another law has {} of 60 cases", d.what, n);
}

std::string deaths_are_failures() {
  for (const Death& d : {Death{"crashes", crashes, "crashed: Segmentation fault (signal 11)"},
                         Death{"exits with 0", exits_well, "exited with status 0"},
                         Death{"exits with 7", exits_badly, "exited with status 7"}})
    if (const std::string wrong = wrong_about(d); !wrong.empty()) return wrong;
  return "";
}

std::string hangs_are_failures() {
  for (const Death& d :
       {Death{"spins", spins, "did not end", 1, 0.1}, Death{"waits", waits, "did not end", 1, 0.1}})
    if (const std::string wrong = wrong_about(d); !wrong.empty()) return wrong;
  return "";
}

/// The first check of a run that is over by the time it is given up.
Verdict spins_first(Case&) {
  const double until = std::exchange(was_long, true) ? 0 : processor_time(::getpid()) + 3;
  while (processor_time(::getpid()) < until) {}
  return Verdict::pass();
}
std::string hangs_past_the_end_are_failures() {
  const Law dies = law_that(spins_first, "calibration_dies");
  RunOptions o{{smooth_ones().at(0)}, {&dies}, 1, 1, 1};
  o.patience = 1.5, o.settle = false;
  was_long = false;
  const Report r = run(o, never);
  return r.failures.size() == 1 ? "" : "a check that is stopped after the time of the run is no failure";
}

/// In a process of its own, whichever way it ends.
std::string checks_apart_say_how_they_end() {
  const std::pair<void (*)(), const char*> ends[] = {
      {[] { ::signal(SIGABRT, SIG_DFL), ::raise(SIGABRT); }, "crashed: Aborted (signal 6)"},
      {[] { ::_exit(0); }, "exited with status 0"},
      {[] { ::_exit(3); }, "exited with status 3"}};
  for (const auto& known : ends) {
    const auto end = known.first;
    const Verdict v = check_apart(
        [end] {
          end();
          return Verdict::pass();
        },
        10);
    if (v.kind != Verdict::Fail || v.message != known.second)
      return format("a process that {} is said to say \"{}\"", known.second, v.message);
  }
  const Verdict passed = check_apart([] { return Verdict::pass(3); }, 10);
  return passed.kind == Verdict::Pass && passed.depth == 3 ? "" : "a process that passes does not";
}

/// Passes until the case with the print `spoiling` has been there, in this process, and fails from then on.
size_t last_print = 0, spoiling = 0;
bool spoiled = false;
Verdict fails_once_spoiled(Case& c) {
  last_print = print_of(c);
  if (spoiled) return Verdict::fail("got 1, expected 2");
  spoiled = last_print == spoiling;
  return Verdict::pass();
}

/// What settle() finds out of a failure of the second law when case `index` of burst `by` spoils the process.
Failure settled_after(const RunOptions& o, const std::vector<Burst>& ran, const Burst& by, uint64_t index) {
  const auto check = [&](uint16_t law, uint16_t op, uint64_t at) {
    const Choices words = choices_of(o.seed, *o.laws[law], *o.ops[op], at);
    return run_check(*o.laws[law], *o.ops[op], words);
  };
  constexpr uint64_t kFailing = 1000;
  spoiled = false, spoiling = 0;
  (void)check(by.law, by.op, index);
  spoiling = last_print, spoiled = true;
  Failure f;
  f.op = o.ops[0]->name, f.law = o.laws[1]->id, f.kind = check(1, 0, kFailing).failure;
  f.blob = to_blob(record_of(*o.laws[1], *o.ops[0], choices_of(o.seed, *o.laws[1], *o.ops[0], kFailing), {}));
  spoiled = false;
  settle(f, o, ran, 4);
  return f;
}

/// The second of three processes ran cases 1, 4 and 7 of one pair, and 4, 7 and 10 of another. Of each burst
/// the last case is one that counting by ones does not reach; case 5 is another process's.
std::string earlier_cases_are_those_of_the_process() {
  const Law a = law_that(fails_once_spoiled, "calibration_a"),
            b = law_that(fails_once_spoiled, "calibration_b");
  const RunOptions o{{smooth_ones().at(0), smooth_ones().at(1)}, {&a, &b}, 60, 1, 3};
  const std::vector<Burst> ran{{0, 0, 3, 1}, {1, 1, 3, 4}};
  for (const Burst& by : ran) {
    const uint64_t last = by.first + 6;
    const Failure f = settled_after(o, ran, by, last);
    if (!f.flaky || f.before.size() != 1)
      return format("a failure that needs one case before it names {}: {}", f.before.size(), f.needs);
    const Record named = from_blob(f.before[0]);
    const Law& law = *o.laws[by.law];
    const Op& op = *o.ops[by.op];
    if (named.law != law.id || named.op != op.name || named.choices != choices_of(o.seed, law, op, last))
      return format("a failure that needs case {} of {} before it names another one", last, op.name);
  }
  const Failure f = settled_after(o, ran, ran[1], 5);
  return f.before.empty() ? "" : "a failure that needs another process's case is said to need one of its own";
}

}  // namespace

void add_process_calibrations(std::vector<Calibration>& all) {
  all.push_back({"deaths_are_failures",
                 "A check that ends its process is a failure of its case, and others go on.",
                 deaths_are_failures});
  all.push_back({"hangs_are_failures", "A check that computes or waits for ever is stopped and a failure.",
                 hangs_are_failures});
  all.push_back({"hangs_past_the_end_are_failures",
                 "A check that does not end is a failure in a run that is shorter than the patience, too.",
                 hangs_past_the_end_are_failures});
  all.push_back({"checks_apart_say_how_they_end", "A process of one check tells how it ended.",
                 checks_apart_say_how_they_end});
  all.push_back(
      {"earlier_cases_are_those_of_the_process",
       "A failure that needs a case before it is reported with that one, in any number of processes.",
       earlier_cases_are_those_of_the_process});
}

}  // namespace lamella::verify
