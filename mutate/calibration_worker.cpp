// Workers: which cases they run, how often, and what they keep of failures.
#include <chrono>
#include <set>

#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

namespace {

const volatile std::sig_atomic_t go_on = 0;

/// Hashes of cases that the laws below were asked about.
std::vector<size_t> asked;
Verdict notes(Case& c) {
  asked.push_back(print_of(c));
  return Verdict::pass();
}
Verdict notes_and_discards_some(Case& c) {
  asked.push_back(print_of(c));
  return asked.back() % 3 ? Verdict::pass() : Verdict::discard();
}
/// With room, so that no case is asked again for what the list itself allocates.
void forget() { asked.clear(), asked.reserve(4000); }
size_t different() { return std::set<size_t>(asked.begin(), asked.end()).size(); }

RunOptions counted(const std::vector<const Law*>& laws, uint64_t cases, int processes) {
  RunOptions o{{smooth_ones().at(0)}, laws, 60, 1, processes};
  o.cases = cases;
  return o;
}

std::string processes_share_the_cases() {
  const Law law = law_that(notes);
  forget();
  const RunOptions o = counted({&law}, 80, 2);
  for (const int index : {0, 1}) Worker(o, index, nullptr).run(go_on, {});
  if (asked.size() != 80) return format("two processes check {} of 80 cases", asked.size());
  if (different() < 76) return format("of 80 cases of two processes {} are different", different());
  const std::set<size_t> of_two(asked.begin(), asked.end());
  forget();
  const RunOptions alone = counted({&law}, 80, 1);
  Worker(alone, 0, nullptr).run(go_on, {});
  if (std::set<size_t>(asked.begin(), asked.end()) != of_two)
    return "one process checks other cases than two";
  forget();
  RunOptions other = alone;
  other.seed = 2;
  Worker(other, 0, nullptr).run(go_on, {});
  size_t again = 0;
  for (const size_t h : asked) again += of_two.contains(h);
  return again > 4 ? format("{} of 80 cases are those of another seed", again) : "";
}

std::string tries_are_counted() {
  const Law law = law_that(notes_and_discards_some);
  for (const int processes : {1, 2, 3}) {
    forget();
    const RunOptions o = counted({&law}, 60, processes);
    Tally sum;
    for (int k = 0; k < processes; ++k) {
      Worker w(o, k, nullptr);
      w.run(go_on, {});
      const Tally t = w.report().total();
      sum.cases += t.cases, sum.discards += t.discards;
    }
    if (asked.size() != 60 || sum.cases + sum.discards != 60)
      return format("{} processes try {} of 60 cases and count {} and {} discards", processes, asked.size(),
                    sum.cases, sum.discards);
  }
  return "";
}

std::string resumed_goes_on() {
  const Law law = law_that(notes_and_discards_some);
  for (const int processes : {1, 2}) {
    forget();
    const RunOptions first = counted({&law}, 30, processes), all = counted({&law}, 90, processes);
    for (int k = 0; k < processes; ++k) {
      Worker before(first, k, nullptr);
      before.run(go_on, {});
      Worker after(all, k, nullptr);
      after.resume(before.report());
      after.run(go_on, {});
    }
    if (asked.size() != 90 || different() < 84)
      return format("{} processes, each replaced once, check {} cases, {} of them different, of 90",
                    processes, asked.size(), different());
  }
  return "";
}

std::string skipped_alone_is_left_out() {
  const Law one = law_that(notes, "calibration_a"), two = law_that(notes, "calibration_b");
  const std::vector<const Op*> ops = smooth_ones();
  RunOptions o = counted({&one, &two}, 20, 1);
  o.ops = {ops.at(0), ops.at(1)};
  for (const int op : {0, 1})
    for (const int law : {0, 1}) {
      Worker w(o, 0, nullptr);
      w.skip(op, law);
      w.run(go_on, {});
      const Report r = w.report();
      for (const int a : {0, 1})
        for (const int b : {0, 1}) {
          const auto at = r.tallies.find({ops[size_t(a)]->name, std::string(b ? two.id : one.id)});
          const uint64_t n = at == r.tallies.end() ? 0 : at->second.cases;
          if (n != (a == op && b == law ? 0u : 20u))
            return format("pair {}, {} was left out, and pair {}, {} had {} of 20 cases", op, law, a, b, n);
        }
    }
  return "";
}

/// As slow as a hundred others.
Verdict slow(Case& c) {
  volatile uint32_t w = c.draw.word();
  for (int k = 0; k < 6000; ++k) w = w * 5 + 1;
  return Verdict::pass();
}
Verdict fast(Case&) { return Verdict::pass(); }

/// More than first shares give: pairs that are done leave the queue while others wait.
std::string done_pairs_take_no_other() {
  const Law a = law_that(fast, "calibration_a"), b = law_that(slow, "calibration_b"),
            c = law_that(fast, "calibration_c");
  RunOptions o = counted({&a, &b, &c}, 700, 1);
  o.ops = smooth_ones();
  const Report r = run_here(o, go_on);
  for (const auto& [key, t] : r.tallies)
    if (t.cases != 700) return format("{} of {} had {} of 700 cases", key.second, key.first, t.cases);
  return r.tallies.size() == 3 * o.ops.size() ? "" : "a pair had no case at all";
}

/// Cases of a law with a large share, and of one beside it, whose first cases take 2 ms.
int of_large_share = 0, of_slow = 0, slow_by_then = -1;
Verdict has_large_share(Case&) {
  if (++of_large_share == 256) slow_by_then = of_slow;
  return Verdict::pass();
}
Verdict begins_slowly(Case&) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(++of_slow <= 3 ? 2 : 0);
  while (std::chrono::steady_clock::now() < end) {}
  return Verdict::pass();
}

std::string large_shares_wait() {
  Law much = law_that(has_large_share, "calibration_a");
  const Law little = law_that(begins_slowly, "calibration_b");
  much.share = 32;
  of_large_share = of_slow = 0, slow_by_then = -1;
  run_here(counted({&much, &little}, 300, 1), go_on);
  return slow_by_then < 2 ? format("one pair had 256 cases when another had {}", slow_by_then) : "";
}

Verdict fails_in_two_ways(Case& c) {
  const uint32_t w = c.draw.word();
  if (w % 5 == 1) return Verdict::fail("got 1, expected 2");
  return w % 5 == 2 ? Verdict::fail({What::Nan, "got nan, expected 2"}) : Verdict::pass();
}

std::string failures_are_counted() {
  const Law fails = law_that([](Case&) { return Verdict::fail("got 1, expected 2"); });
  RunOptions o{{smooth_ones().at(0)}, {&fails}, 0.02, 1, 1};
  const Report always = run_here(o, go_on);
  if (always.total().failures == 0) return "a law that always fails has no failures in the report";
  if (always.failures.empty()) return "the report shows no failure of a law that always fails";
  const Law two = law_that(fails_in_two_ways);
  RunOptions both = counted({&two}, 40, 1);
  both.ops = {smooth_ones().at(0), smooth_ones().at(1)};
  const Report r = run_here(both, go_on);
  std::set<std::string> known;
  for (const Failure& f : r.failures) known.insert(f.op + " " + str(f.kind));
  if (known.size() != 4 || r.failures.size() != 4)
    return format("of two kinds of failures of two operators {} are reported", r.failures.size());
  return r.total().cases == 80 ? "" : "cases of a law that fails are not counted";
}

/// What decides lies behind the words that most cases read.
Verdict fails_by_a_late_word(Case& c) {
  uint32_t last = 0;
  for (int k = 0; k < 30; ++k) last = c.draw.word();
  return last % 40 == 11 ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}
std::string late_words_are_kept() {
  const Law law = law_that(fails_by_a_late_word);
  const Op& op = *smooth_ones().at(0);
  for (const uint64_t seed : {1, 2, 3, 4}) {
    RunOptions o = counted({&law}, 600, 1);
    o.seed = seed;
    const Report r = run_here(o, go_on);
    if (r.failures.size() != 1) return "a law that fails by its thirtieth word is not seen to";
    if (run_check(law, op, from_blob(r.failures[0].blob).choices).kind != Verdict::Fail)
      return "the case that is kept of a law that fails by its thirtieth word passes";
  }
  return "";
}

}  // namespace

void add_worker_calibrations(std::vector<Calibration>& all) {
  all.push_back({"processes_share_the_cases",
                 "Two processes check the cases of one, and another seed checks others.",
                 processes_share_the_cases});
  all.push_back({"tries_are_counted", "So many cases are tried as were asked for, discarded ones too.",
                 tries_are_counted});
  all.push_back(
      {"resumed_goes_on", "A process that replaces another goes on behind its last case.", resumed_goes_on});
  all.push_back(
      {"skipped_alone_is_left_out", "Leaving a pair out leaves out no other.", skipped_alone_is_left_out});
  all.push_back({"done_pairs_take_no_other", "Every pair gets its cases, whichever are done before.",
                 done_pairs_take_no_other});
  all.push_back(
      {"large_shares_wait", "No pair has 256 cases before every other has two.", large_shares_wait});
  all.push_back({"late_words_are_kept", "A failure is kept with all words that its case has read.",
                 late_words_are_kept});
  all.push_back({"failures_are_counted",
                 "A law that fails is in the report, with each kind of failure of each operator.",
                 failures_are_counted});
}

}  // namespace lamella::verify
