// One process of checks: queues of operator × law pairs, so that every pair gets cases and deep stacks get
// their share.
#include "lamella/verify/run/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/fault.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

Tally Report::total() const {
  Tally sum;
  for (const auto& [key, t] : tallies) {
    sum.cases += t.cases, sum.failures += t.failures, sum.discards += t.discards, sum.deep += t.deep;
    sum.seconds += t.seconds;
  }
  return sum;
}

void Report::merge(const Report& other) {
  for (const auto& [key, t] : other.tallies) {
    Tally& mine = tallies[key];
    mine.cases += t.cases, mine.failures += t.failures, mine.discards += t.discards, mine.deep += t.deep;
    mine.seconds += t.seconds;
    mine.strata.merge(t.strata);
  }
  for (const Failure& f : other.failures) {
    const auto same = [&](const Failure& g) { return g.op == f.op && g.law == f.law && g.kind == f.kind; };
    const auto known = std::find_if(failures.begin(), failures.end(), same);
    if (known == failures.end()) failures.push_back(f);
    else if (std::pair(f.flaky, f.program.size()) < std::pair(known->flaky, known->program.size()))
      *known = f;
  }
  for (const auto& [op, c] : other.coverage) coverage[op].merge(c);
  for (const auto& [law, counted] : other.counts)
    for (const auto& [what, n] : counted) counts[law][what] += n;
  branches.merge(other.branches);
  seconds = std::max(seconds, other.seconds);
}

namespace {
constexpr double kSharp = 2;  ///< times the median law's weight
}

Worker::Worker(const RunOptions& options, int index, Position* position)
    : options_(options), index_(index), position_(position), start_(Clock::now()) {
  for (size_t o = 0; o < options.ops.size(); ++o)
    for (size_t l = 0; l < options.laws.size(); ++l)
      if (options.laws[l]->applies(*options.ops[o]) &&
          in_shard(*options.ops[o], *options.laws[l], options.shard, options.shards))
        pairs_.push_back({.op = options.ops[o],
                          .law = options.laws[l],
                          .op_index = int(o),
                          .law_index = int(l),
                          .next = uint64_t(index),
                          .series = series_of(options.seed, *options.laws[l], *options.ops[o]),
                          .weight = sharpness(options.laws[l]->id, options.ops[o]->name)});
  // The sharpest laws first; among those, neighbours in the list differ in both: a short run sees all laws
  // and all operators.
  std::stable_sort(pairs_.begin(), pairs_.end(), [&](const Pair& a, const Pair& b) {
    return std::pair(a.weight < kSharp, scrambled(options.seed + uint64_t(a.op_index) * 977, a.law->id)) <
           std::pair(b.weight < kSharp, scrambled(options.seed + uint64_t(b.op_index) * 977, b.law->id));
  });
}

double Worker::elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Worker::resume(const Report& earlier) {
  branches_ = earlier.branches;
  for (Pair& p : pairs_) {
    const auto at = earlier.tallies.find({p.op->name, std::string(p.law->id)});
    if (at == earlier.tallies.end()) continue;
    p.next += (at->second.cases + at->second.discards) * uint64_t(options_.processes);
  }
}

void Worker::skip(int op_index, int law_index) {
  for (Pair& p : pairs_)
    if (p.op_index == op_index && p.law_index == law_index) p.retired = true;
}

namespace {
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
  return out;
}
}  // namespace

void Worker::note_position(const Pair& p, bool first) {
  if (!position_) return;
  Position& at = *position_;
  at.op = p.op_index, at.law = p.law_index, at.index = p.next, at.cases = cases_, at.failures = failures_;
  if (first && at.bursts < at.room)
    at.ran[at.bursts++] = {uint16_t(p.op_index), uint16_t(p.law_index), 0, p.next};
  if (at.bursts > 0) ++at.ran[at.bursts - 1].count;
}

bool Worker::count(Pair& p, const Verdict& v, const Observation& seen) {
  if (v.kind == Verdict::Discard) {
    ++p.tally.discards;
    return false;
  }
  ++p.tally.cases, ++cases_;
  for (const auto& [what, n] : counts_of_case()) counts_[std::string(p.law->id)][what] += n;
  if (v.depth >= 2) ++p.tally.deep, ++deep_;
  Stratum s = stratum_of_case();
  if (!s.has_transforms())
    for (int k = 0; k < v.depth; ++k) s.add_transform(k, Stratum::Any);
  p.tally.strata.add(s, 1, v.kind == Verdict::Fail);
  const uint64_t like =
      scrambled(s.code ^ uint64_t(seen.features) << 32 ^ uint64_t(seen.mapped) << 8 ^ seen.traced);
  const bool is_new = !p.shown[like % p.shown.size()];
  p.shown.set(like % p.shown.size());
  if (v.kind != Verdict::Fail || faulty(Fault::FailuresNotCounted)) return is_new;
  ++p.tally.failures, ++failures_;
  if (p.tally.failures >= 10 && !options_.cases)
    p.retired = true;  // known to be broken: the time is better spent elsewhere
  return is_new;
}

/// Shrinks the first failure of each kind of a pair. Shrinking takes at most a third of the time as a whole.
void Worker::keep(Pair& p, const Choices& choices, const Verdict& v) {
  for (const Failure& f : p.found)
    if (f.kind == v.failure) return;
  const double left = options_.seconds / 3 + 1 - shrinking_;
  const auto begin = Clock::now();
  const Shrunk s = shrink(*p.law, *p.op, choices, {.milliseconds = int(1000 * std::clamp(left, 0.02, 2.0))});
  shrinking_ += std::chrono::duration<double>(Clock::now() - begin).count();
  const Verdict& shown = s.verdict.kind == Verdict::Fail ? s.verdict : v;  // a flaky one may pass again
  Failure f;
  f.op = p.op->name, f.law = p.law->id, f.kind = v.failure;
  f.message = shown.message, f.program = shown.program, f.depth = shown.depth;
  f.blob = to_blob(record_of(*p.law, *p.op, s.choices, shown));
  f.free = joined(s.free);
  f.flaky = s.flaky, f.executions = s.executions, f.milliseconds = s.milliseconds;
  f.index = p.next - uint64_t(options_.processes), f.process = index_;
  f.ran = position_ ? position_->bursts : 0;
  f.checks = cases_;
  p.found.push_back(std::move(f));
  found_ = true;
}

Report Worker::report() const {
  Report r;
  for (const Pair& p : pairs_) {
    if (p.tally.cases + p.tally.discards == 0) continue;
    r.tallies[{p.op->name, std::string(p.law->id)}] = p.tally;
    r.failures.insert(r.failures.end(), p.found.begin(), p.found.end());
  }
  r.coverage = coverage_;
  r.counts = counts_;
  r.branches = branches_;
  r.seconds = elapsed();
  return r;
}

Report run_here(const RunOptions& options, const volatile std::sig_atomic_t& stop) {
  Worker worker(options, 0, nullptr);
  worker.run(stop, {});
  return worker.report();
}

}  // namespace lamella::verify
