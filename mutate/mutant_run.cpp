// The laws against one planted bug: which notice, after how many cases; and if none does, whether there is
// a difference to notice at all.
#include "lamella/mutate/mutant_run.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <span>
#include <sys/time.h>
#include <unistd.h>

#include "lamella/mutate/calibration.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

namespace {

double cpu_ms() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

/// NOTE: [rounds] Every law gets a case, then a few, so that the matrix says who notices what: those first
/// that notice most bugs of this group (kAskedFirst), and the sharpest of them at length before the others
/// are asked at all. While no law has noticed, all get more. Laws whose cases never reach the bug are left
/// out of later rounds. Between the rounds, the wrong operator is compared with the right one: where 10^5
/// cases give the same bits, more cases of the laws would be spent on nothing.
struct Round {
  int cases, slow;  ///< of each law in all so far; of each that evaluates in f128
  double ms;        ///< of processor time of each law, in all so far
};
constexpr Round kOnce{1, 1, 1000}, kFirst{4, 1, 1000}, kSecond{30, 6, 60},
    kLater[] = {{200, 20, 40}, {1000, 60, 120}, {8000, 400, 500}};

/// Laws in the order in which they notice most of what those before them pass by, for each group of mutants.
struct AskedFirst {
  std::string_view group, law;
};
constexpr AskedFirst kAskedFirst[] = {
#include "law_order.inc"
};

constexpr size_t kSharpest = 4;  ///< get thirty cases before others get any

/// How soon a law is asked: those that notice most first, then those about what is wrong, and those in f128
/// at the end.
int rank_of(const Law& law, const Planted& p) {
  const auto known = std::ranges::find_if(
      kAskedFirst, [&](const AskedFirst& a) { return a.group == p.group && a.law == law.id; });
  if (known != std::end(kAskedFirst))
    return int(known - std::begin(kAskedFirst)) - int(std::size(kAskedFirst));
  static const std::map<std::string, std::vector<std::string_view>> kNearest = {
      {"rule", {"derivative", "compose"}},
      {"batch", {"vmap", "compose"}},
      {"composite", {"shape", "value", "layout"}},
      {"dispatch", {"dispatch", "compose", "vmap", "forms"}},
      {"kernel", {"value", "layout", "vmap", "forms"}}};
  const auto near = kNearest.find(p.group);
  const int last = 10;
  int at = last;
  if (near != kNearest.end()) at = int(std::ranges::find(near->second, law.group) - near->second.begin());
  return at + (law.oracle ? last : 0);
}

struct LawState {
  const Law* law;
  int rank = 0, cases = 0;
  double ms = 0;
  uint64_t reached = 0;
  bool noticed = false;
};

class Hunt {
 public:
  Hunt(const Planted& p, const MutantOptions& o, Say& say)
      : planted_(p), options_(o), say_(say), table_(plant(p)), row_(table_->row(p.op->id)) {
    for (const Law& law : laws()) {
      const bool wanted = o.laws.empty() || std::ranges::find(o.laws, law.id) != o.laws.end();
      if (wanted && law.group != "harness" && law.applies(*p.op)) states_.push_back({&law, rank_of(law, p)});
    }
    std::ranges::stable_sort(states_, [](const LawState& a, const LawState& b) {
      return std::pair(a.rank, -sharpness(a.law->id)) < std::pair(b.rank, -sharpness(b.law->id));
    });
    asked_first_ = size_t(std::ranges::count_if(states_, [](const LawState& s) { return s.rank < 0; }));
  }

  void run() {
    const ScopedTable pinned(table_);
    for (const Round& round : {kOnce, kFirst})
      if (work_first(asked_first_, round)) return;
    if (!noticed_ && all_work(kSecond, options_.cpu_ms, kSharpest) && options_.first_only) return;
    for (const Round& round : {kOnce, kFirst})
      if (work_first(states_.size(), round)) return;
    if (noticed_ || all_work(kSecond, options_.cpu_ms)) return;
    say_.comparing();
    const Equivalence e = compare_with_right(planted_, table_, options_);
    const bool equal = e.difference.empty() && e.cases >= options_.equivalence_cases;
    const double most_ms = cpu_ms() + options_.cpu_ms;
    for (const Round& round : kLater)
      if ((!equal || options_.equivalence_cases == 0) && all_work(round, most_ms)) return;
    uint64_t reached = 0;
    int laws_reached = 0;
    for (const LawState& s : states_) reached += s.reached, laws_reached += s.reached > 0;
    if (live_bug.counted) say_.line(format("reached {} {} {}", reached, laws_reached, checks_));
    else say_.line(format("reached -1 {} {}", states_.size(), checks_));
    say_.line(format("{} {} {}", e.difference.empty() ? "equal" : "differs", e.cases, e.difference));
  }

 private:
  /// The first `n` laws in turn. Whether the answer is known.
  bool work_first(size_t n, const Round& round) {
    for (LawState& s : std::span(states_).first(n)) {
      work(s, round);
      if (noticed_ && options_.first_only) return true;
    }
    return false;
  }

  /// All laws, or the first `most`, in turn, until one notices.
  bool all_work(const Round& round, double most_ms, size_t most = SIZE_MAX) {
    for (LawState& s : std::span(states_).first(std::min(most, states_.size()))) {
      if (cpu_ms() > most_ms) break;
      if (live_bug.counted && s.cases >= (s.law->oracle ? 6 : 30) && s.reached == 0) continue;
      work(s, round);
      if (noticed_) return true;
    }
    return false;
  }

  void work(LawState& s, const Round& round) {
    say_.trying(s.law->id);
    const int most = s.law->oracle ? round.slow : round.cases;
    const double begin = most > kFirst.cases ? cpu_ms() : 0;  // asking for the time costs as much as a case
    const uint64_t reached = live_bug.reached;
    while (s.cases < most && !s.noticed) {
      if (begin > 0 && s.cases % 8 == 0 && s.ms + cpu_ms() - begin > round.ms) break;
      check(s);
    }
    if (begin > 0) s.ms += cpu_ms() - begin;
    s.reached += live_bug.reached - reached;
  }

  void check(LawState& s) {
    const Choices choices = choices_of(options_.seed, *s.law, row_, uint64_t(s.cases));
    ++s.cases, ++checks_;
    const Verdict v = run_check(*s.law, row_, choices);
    if (v.kind != Verdict::Fail || fails_anyway(*s.law, choices)) return;
    s.noticed = noticed_ = true;
    say_.line(format("caught {} {} {} {}", s.law->id, s.cases, checks_, v.message));
  }

  /// Whether the law fails here without the bug: then it has not noticed it.
  bool fails_anyway(const Law& law, const Choices& choices) const {
    const ScopedTable published(nullptr);
    return run_check(law, *planted_.op, choices).kind == Verdict::Fail;
  }

  const Planted& planted_;
  const MutantOptions& options_;
  Say& say_;
  const OpTable* table_;
  const Op& row_;
  std::vector<LawState> states_;
  size_t asked_first_ = 0;  ///< of them
  int64_t checks_ = 0;
  bool noticed_ = false;
};

/// Faults of the harness are put before its self-checks.
void calibrate(const Planted& p, const MutantOptions& o, Say& say) {
  plant(p);
  int64_t checks = 0;
  for (const Calibration& c : calibrations()) {
    say.trying(c.id);
    const std::string wrong = c.check();
    ++checks;
    if (wrong.empty()) continue;
    say.line(format("caught {} 1 {} {}", c.id, checks, wrong));
    if (o.first_only) return;
  }
}

/// The ways in which cases of a group are compared, in turn; derivatives of derivatives cost as much as the
/// rest.
std::vector<Probe> probes_for(const Planted& p) {
  if (p.group == "batch")
    return {Probe::Vmap, Probe::VjpOfVmap, Probe::Vmap, Probe::VmapOfVmap, Probe::Vmap, Probe::VjpOfVmap};
  if (p.group == "rule" && p.id.find(".jvp(") != p.id.npos)
    return {Probe::Jvp, Probe::Jvp, Probe::Second, Probe::Jvp, Probe::Jvp, Probe::JvpOfJvp};
  if (p.group == "rule") return {Probe::Vjp, Probe::Vjp, Probe::Vjp, Probe::Second};
  if (p.group == "kernel") return {Probe::Forward, Probe::Forms};
  if (p.group == "composite")
    return {Probe::Forward, Probe::Forward, Probe::Forms, Probe::Vjp, Probe::Second, Probe::Vmap};
  if (p.id.starts_with("first_thread")) return {Probe::Thread};
  return {Probe::Forward, Probe::Forms, Probe::Vmap, Probe::VmapOfVmap, Probe::Jvp,     Probe::JvpOfJvp,
          Probe::State,   Probe::Dead,  Probe::Vjp,  Probe::VjpOfVmap,  Probe::Backward};
}

}  // namespace

void Say::line(const std::string& text) const {
  std::string one = text.substr(0, 400);
  std::ranges::replace(one, '\n', ' ');
  one += '\n';
  [[maybe_unused]] const ssize_t n = write(fd, one.data(), one.size());
}

void Say::trying(std::string_view id) {
  *at = id;
  if (left-- > 0) return;
  left = 4;                              // not each time: a call of the system costs as much as many cases
  const itimerval cpu{{0, 0}, {10, 0}};  // a bug may loop for ever, or wait
  setitimer(ITIMER_PROF, &cpu, nullptr);
  alarm(30);
}

void Say::comparing() {
  *at = kComparison;
  left = 0;
  const itimerval cpu{{0, 0}, {30, 0}};
  setitimer(ITIMER_PROF, &cpu, nullptr);
  alarm(0);  // on a busy machine it may take long, and no law is to blame
}

void hunt(const Planted& p, const MutantOptions& options, Say say) {
  say.trying("start");
  if (p.op) Hunt(p, options, say).run();
  else calibrate(p, options, say);
  say.line("end");
}

Equivalence compare_with_right(const Planted& p, const OpTable* table, const MutantOptions& o) {
  Equivalence e;
  const double until = cpu_ms() + o.equivalence_ms;
  const std::vector<Probe> probes = probes_for(p);
  for (uint64_t i = 0; e.cases < o.equivalence_cases && cpu_ms() < until; ++i) {
    const Choices choices = choices_of(o.seed + 77, laws().front(), *p.op, i);
    const Probe kind = probes[i % probes.size()];
    const auto run = [&](const OpTable* with, const Op& op, Tensors& ys) {
      const ScopedTable pinned(with);
      return status_of([&] { ys = probe(kind, op, choices, {}); });
    };
    Tensors right, wrong;
    const uint64_t reached = live_bug.reached;
    const Status got = run(table, table->row(p.op->id), wrong);
    ++e.cases;
    if (live_bug.counted && live_bug.reached == reached) continue;  // all that ran was right
    const Status expected = run(nullptr, *p.op, right);
    if (got.raised != expected.raised)
      e.difference = "got " + str(got).text() + ", expected " + str(expected).text();
    else e.difference = differs(wrong, right).text();
    if (!e.difference.empty()) return e;
  }
  return e;
}

}  // namespace lamella::verify
