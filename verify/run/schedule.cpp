// Which pair of operator and law a worker checks next, and for how long.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <utility>

#include "lamella/verify/case/fault.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

namespace {
constexpr uint64_t kObservedEvery = 4;   ///< counting features of every case would cost a tenth of the rate
constexpr uint64_t kBranchesEvery = 16;  ///< counting branches of one case in four would, too

/// Which cases are looked at: the same in any number of processes, and others of each pair.
uint64_t looked_at(const Op& op, const Law& law, uint64_t index) {
  return scrambled((index + 1) ^ uint64_t(op.id) << 40 ^ uint64_t(law.number) << 52);
}

double thread_ms() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * double(t.tv_sec) + 1e-6 * double(t.tv_nsec);
}

/// How sharp laws are: mutants that they notice, for the time they take, in units of the median law.
/// tools/law_weights.py computes it from what `lamella mutate` and the bugs of mutants/real say.
struct LawWeight {
  std::string_view law;
  double weight;
  std::string_view alone_on = {};  ///< operators with mutants that no other law notices
};
constexpr double kOfSharpPairs = 2;
constexpr LawWeight kWeights[] = {
#include "law_weights.inc"
};

/// Whether `word` is one of the words of `list`, which stand between spaces.
bool is_among(std::string_view list, std::string_view word) {
  const size_t n = word.size();
  for (size_t at = list.find(word); at != list.npos; at = list.find(word, at + n)) {
    const bool begins = at == 0 || list[at - 1] == ' ', ends = at + n == list.size() || list[at + n] == ' ';
    if (begins && ends) return true;
  }
  return false;
}
}  // namespace

double sharpness(std::string_view law, std::string_view op) {
  for (const LawWeight& w : kWeights)
    if (w.law == law) return w.weight * (!op.empty() && is_among(w.alone_on, op) ? kOfSharpPairs : 1);
  return 1;
}

/// Runs cases of a pair for about `seconds`, at least one and at most `most`.
void Worker::work(Pair& p, double seconds, uint64_t most, const volatile std::sig_atomic_t& stop) {
  const auto begin = Clock::now();
  double spent = 0;
  uint64_t tries = 0;
  bool grew = false;
  do {
    note_position(p, tries == 0);
    NamedSizes named;
    Decoding decoding;
    const Choices choices = choices_in(p.series, *p.law, *p.op, p.next, &named, &decoding.tail);
    const uint64_t index = p.next, bits = looked_at(*p.op, *p.law, p.next);
    const bool observe = bits % kObservedEvery == 0;
    const bool aimed = named.threshold >= 0;
    p.next += uint64_t(options_.processes);
    Observation seen;
    seen.near = aimed;
    if (faulty(Fault::ProcessesAlike)) p.next -= uint64_t(options_.processes) - 1;
    observed() = observe || aimed ? &seen : nullptr;
    stratum_of_case() = {};
    counts_of_case().clear();
    const auto counting = [&] {  // two kilobytes of state, which other cases need not have
      CountBranches branches(branches_);
      Verdict v = run_check(*p.law, *p.op, choices, decoding);
      grew |= branches.fresh() > 0;
      return v;
    };
    const Verdict v = bits % kBranchesEvery == 0 ? counting() : run_check(*p.law, *p.op, choices, decoding);
    observed() = nullptr;
    grew |= count(p, v, seen);
    if (v.kind != Verdict::Discard) {
      Coverage& coverage = p.coverage ? *p.coverage : *(p.coverage = &coverage_[p.op->name]);
      coverage.add_depth(v.depth);
      if (observe) coverage.add(seen);
      if (aimed) coverage.add_sides(seen, named.threshold);
    }
    spent = std::chrono::duration<double>(Clock::now() - begin).count();
    if (v.kind == Verdict::Fail) {
      keep(p, choices_in(p.series, *p.law, *p.op, index, nullptr), v);
      break;
    }
  } while (spent < seconds && !stop && !done(p) && ++tries < most);
  p.tally.seconds += spent;
  p.growth = grew ? std::min(2.0, p.growth * 2) : std::max(0.25, p.growth * 0.7);
}

/// NOTE: [rounds of a run] First every pair gets its share: 32 cases of all processes together, or as many as
/// 20 ms of processor time give, and at least 2. What fits in little time comes first, by what cases of the
/// law have taken so far: a short run has asked the fast laws of all operators before the slow ones (of
/// threads, of deep stacks) have their first case. What it asks more than once goes by how sharp laws are:
/// between 1/4 and 8 times what the median law gets. A law that applies to few operators gets more of each,
/// and so does one whose cases are cheap and mostly alike (Law::share): the part of its share beyond 255
/// cases waits for the last round, until everybody has had a share.
struct Worker::Round {
  uint64_t cases;
  double ms;       ///< that a pair may have taken by its end
  double dearest;  ///< ms that a first case may take; 0: pairs come while cases of the law fit in their time
  bool sharp = false;  ///< cases and time are multiplied by how sharp the law is
  uint64_t most = kFew;

  static constexpr uint64_t kFew = 255, kAll = UINT64_MAX;
};

namespace {
/// What cases of a law have taken, how many operators share it, and how many times the share of one it has.
struct LawCost {
  double ms = 0;
  uint64_t cases = 0, pairs = 0, share = 1;
  double of_case() const { return cases ? ms / double(cases) : 0; }
};
/// Pairs of a law have together what those of the median law have, or what it asks for, at most 32 times the
/// share of one.
void give_shares(std::map<const Law*, LawCost>& costs) {
  std::vector<uint64_t> pairs;
  for (const auto& [law, cost] : costs) pairs.push_back(cost.pairs);
  if (pairs.empty()) return;
  std::ranges::nth_element(pairs, pairs.begin() + ptrdiff_t(pairs.size() / 2));
  const uint64_t median = pairs[pairs.size() / 2];
  for (auto& [law, cost] : costs) {
    const uint64_t asked = uint64_t(std::clamp(law->share, 1, 32));  // a plug-in's law may say anything
    cost.share = std::clamp<uint64_t>(median / cost.pairs * asked, asked, 32);
  }
}
constexpr double kNoLimit = 1e9;
/// Of the time so far. Some questions wait for the clock: at once they would take all of a short run.
constexpr double kMostOfNumbered = 0.5;
}  // namespace

bool Worker::first_shares(const volatile std::sig_atomic_t& stop, const std::function<void()>& snapshot) {
  static constexpr Round kRounds[] = {{4, 0.3, 0},      {2, kNoLimit, 1}, {16, 0.5, 0, true},
                                      {2, kNoLimit, 5}, {32, 1, 0, true}, {2, kNoLimit, kNoLimit},
                                      {8, 5, 0},        {32, 20, 0},      {32, 20, 0, false, Round::kAll}};
  const uint64_t n = uint64_t(options_.processes);
  std::map<const Law*, LawCost> costs;
  for (const Pair& p : pairs_) ++costs[p.law].pairs;
  give_shares(costs);
  const auto numbered = std::ranges::find_if(pairs_, [](const Pair& p) { return p.law->numbered; });
  Pair* const asking = numbered == pairs_.end() ? nullptr : &*numbered;
  for (const Round& round : kRounds) {
    const bool first = &round == kRounds;
    for (Pair& p : pairs_) {
      if (stop || elapsed() >= options_.deadline()) return false;
      if (!first) ask_numbered(asking, kMostOfNumbered, stop, snapshot);
      LawCost& cost = costs[p.law];
      const double share = (round.dearest > 0 ? 1 : double(cost.share)) * (round.sharp ? p.weight : 1);
      const uint64_t had = p.next / n, all = std::min(uint64_t(double(round.cases) * share), round.most);
      const uint64_t due = std::max<uint64_t>(all / n, 1);
      const double left = round.ms * share / double(n) - p.ms;
      if (p.retired || done(p) || had >= due || left <= 0 || &p == asking) continue;
      if (cost.of_case() > (round.dearest > 0 ? round.dearest : left)) continue;
      const double before = thread_ms(), begin = elapsed();
      work(p, left * 1e-3, due - had, stop);
      if (!first) p.ms += thread_ms() - before;  // with the one large case nothing of a share is spent
      cost.ms += 1e3 * (elapsed() - begin);      // threads of a case, and what they wait for, count here
      cost.cases += p.next / n - had;
      tell(snapshot);
    }
  }
  ask_numbered(asking, kNoLimit, stop, snapshot);
  return true;
}

/// The questions of law 131 that come next while they have taken at most `part` of the time, once every pair
/// has been seen. Their answers depend on no choices: to ask again is left to the time that is left.
void Worker::ask_numbered(Pair* p, double part, const volatile std::sig_atomic_t& stop,
                          const std::function<void()>& snapshot) {
  while (p && p->next < p->law->numbered() && p->tally.seconds <= part * elapsed() && !p->retired &&
         !done(*p) && !stop && elapsed() < options_.deadline())
    work(*p, 0, 1, stop), tell(snapshot);
}

void Worker::tell(const std::function<void()>& snapshot) {
  if (!snapshot || (!std::exchange(found_, false) && elapsed() - told_ <= 1)) return;
  told_ = elapsed();
  snapshot();
}

/// NOTE: [shares] What time is left then: laws that need the oracle are slow and get a fixed share of it. Of
/// the rest, pairs whose cases nest two or more transforms come first while fewer than 35 % of all cases so
/// far do, but the others have a fifth of the time. Within each queue pairs take turns, longer ones where
/// cases still show what the pair has not shown before, or take branches that no case has taken (see NOTE:
/// [branches]), and where the law is sharp.
void Worker::run(const volatile std::sig_atomic_t& stop, const std::function<void()>& snapshot) {
  if (!first_shares(stop, snapshot)) return;
  std::vector<Pair*> queues[3];  // oracle, deep, shallow
  for (Pair& p : pairs_)
    queues[p.law->oracle ? 0 : p.tally.deep || p.law->group == "compose" ? 1 : 2].push_back(&p);
  size_t next[3] = {0, 0, 0};
  double seconds[3] = {0, 0, 0};
  const double begin = elapsed();
  while (!stop && elapsed() < options_.deadline()) {
    int q = 2;
    const double spent = elapsed() - begin;
    if (!queues[0].empty() && seconds[0] < 0.35 * spent) q = 0;
    else if (double(deep_) < 0.35 * double(cases_) && seconds[2] > 0.2 * spent) q = 1;
    for (int k = 0; k < 3 && queues[q].empty(); ++k) q = (q + 1) % 3;
    if (queues[q].empty()) break;
    Pair*& p = queues[q][next[q]++ % queues[q].size()];
    if (p->retired || done(*p)) {
      p = queues[q].back();
      queues[q].pop_back();
      continue;
    }
    const double before = elapsed();
    work(*p, (q == 0 ? 0.004 : 0.001) * p->weight * p->growth, 256, stop);
    seconds[q] += elapsed() - before;
    tell(snapshot);
  }
}

}  // namespace lamella::verify
