// Rounds: kernels, limits and the peer take turns, so that a disturbance meets all alike.
#include "bench_run.h"

#include <algorithm>
#include <optional>

#include "lamella/core/parallel.h"
#include "lamella/verify/case/compare.h"

#include "bench_check.h"
#include "bench_loops.h"
#include "bench_peer.h"
#include "kernel_option.h"
#include "progress.h"

namespace lamella::tools::bench {

namespace {
/// Restores what calls of an operator ran before.
class KeptKernel {
 public:
  explicit KeptKernel(const Work& w) {
    if (w.op) op_ = w.op->name, before_ = chosen_kernel(op_);
  }
  ~KeptKernel() {
    if (!op_.empty()) choose_kernel(op_, before_);
  }
  KeptKernel(const KeptKernel&) = delete;
  const std::string& before() const { return before_; }

 private:
  std::string op_, before_;
};

class Runner {
 public:
  Runner(const std::vector<Item>& items, const RunSettings& settings, const volatile std::sig_atomic_t& stop)
      : items_(items), s_(settings), stop_(stop), progress_(items.size() * size_t(settings.runs)) {
    out_.works.resize(items.size());
  }

  Results run() {
    if (!s_.peer.empty()) peer_.emplace(s_.peer), out_.peer = peer_->version();
    for (int run = 0; run < s_.runs; ++run)
      for (size_t i = 0; i < items_.size() && !stop_; ++i) {
        take(items_[i], out_.works[i], run == 0);
        progress_.step(items_[i].name);
      }
    progress_.clear();
    out_.interrupted = stop_ != 0;
    std::erase_if(out_.works, [](const Result& r) { return r.name.empty(); });
    return std::move(out_);
  }

 private:
  /// One work in one run. What the suite has and this build cannot is a line that says so.
  void take(const Item& item, Result& r, bool is_first) {
    if (!r.failed.empty()) return;
    try {
      set_threads(item.threads);
      const Work work = item.make();
      const KeptKernel kept(work);
      if (is_first) describe(work, item, kept.before(), r);
      if (is_first) check(work, r);
      if (!stop_) time_all(work, r, is_first);
    } catch (const std::exception& e) {
      if (item.is_required && &item == items_.data()) throw;  // nothing was measured yet
      r.name = item.name, r.failed = e.what();
    }
  }

  void describe(const Work& w, const Item& item, const std::string& chosen, Result& r) {
    const std::string more = item.threads == 1 ? "" : format(" threads={}", item.threads);
    r.name = w.name + more, r.family = w.family + more, r.threads = item.threads;
    r.against = w.against.empty() ? "" : w.against + more;
    r.elements = w.elements, r.bytes = w.bytes, r.flops = w.flops;
    std::vector<std::string> kernels = item.kernels;
    if (kernels.empty()) kernels.push_back(w.op ? chosen : "");
    for (const std::string& k : kernels) r.entries.push_back({.kernel = k, .is_default = k == chosen});
  }

  static void choose(const Work& w, const Entry& e) {
    if (w.op && !e.kernel.empty()) choose_kernel(w.op->name, e.kernel);
  }

  /// The library's own kernel comes first: its error is what others are measured by.
  void check(const Work& w, Result& r) {
    if (!w.op || !w.results) return;
    choose_kernel(w.op->name, "built_in");
    const Witness witness = witness_of(w);
    r.witness = witness.name;
    double built_in = 0;
    const auto judge_one = [&](Entry& e) {
      choose(w, e);
      const Judgement j = judge(w, witness, w.results(), built_in);
      e.roundings = j.roundings, e.wrong = j.wrong.empty() ? differs_by_threads(w, r.threads) : j.wrong;
      if (e.kernel == "built_in") built_in = j.roundings;
    };
    for (Entry& e : r.entries)
      if (e.kernel == "built_in") judge_one(e);
    for (Entry& e : r.entries)
      if (e.kernel != "built_in") judge_one(e);
    for (Entry& e : r.entries)
      if (e.wrong.empty() && !stop_) choose(w, e), e.wrong = law_of(w, e);
  }

  /// Bits that depend on the number of threads; empty: none do.
  static std::string differs_by_threads(const Work& w, int threads) {
    std::string wrong;
    std::optional<Tensors> one;
    for (const int n : {1, 2, 7}) {
      set_threads(n);
      const Tensors got = w.results();
      if (!one) one = got;
      const std::string d = verify::differs(got, *one).text();
      if (wrong.empty() && !d.empty()) wrong = format("with {} threads, beside one: {}", n, d);
    }
    set_threads(threads);
    return wrong;
  }

  /// The same laws are asked once of each kernel, not at each size.
  const std::string& law_of(const Work& w, const Entry& e) {
    const auto [at, fresh] = laws_.try_emplace(w.op->name + "=" + e.kernel);
    if (!fresh) return at->second;
    std::vector<std::string> ops = operators_with_kernels(w.op->name);
    if (ops.empty()) ops.push_back(w.op->name);
    for (const std::string& op : ops)
      if (at->second.empty()) at->second = broken_law(op, s_.law_seconds / double(ops.size()), stop_);
    return at->second;
  }

  struct Turn {
    std::function<void()> before, call;
    std::vector<Timing>* into;
    double scale = 1;   ///< of what is measured in part
    int64_t calls = 0;  ///< found out by the first time
  };

  void time_all(const Work& w, Result& r, bool is_first) {
    std::vector<Turn> turns;
    for (Entry& e : r.entries)
      if (e.wrong.empty()) turns.push_back({[&] { choose(w, e); }, w.run, &e.rounds});
    for (const Limit& l : limits_of(w, r.threads))
      turns.push_back({[] {}, l.run, &r.limits[l.name], 1 / l.share});
    bool has_peer = false;
    if (peer_) {
      r.no_peer = peer_->prepare(w.peer, r.threads);
      has_peer = r.no_peer.empty();
    }
    int64_t peer_calls = 0;
    for (int round = 0; round < s_.rounds && !stop_; ++round) {
      for (Turn& t : turns)
        if (!stop_) take_turn(t);
      if (has_peer && !stop_) has_peer = ask_peer(r, peer_calls);
    }
    if (has_peer) peer_->drop();
    if (!is_first || stop_) return;
    for (size_t i = 0, turn = 0; i < r.entries.size(); ++i)
      if (r.entries[i].wrong.empty()) {
        const Turn& t = turns[turn++];
        t.before();
        r.entries[i].instructions = instructions_of(t.call, std::min<int64_t>(t.calls, 100));
      }
  }

  void take_turn(Turn& t) {
    t.before();
    Timing one = time_calls(t.call, t.calls, s_.seconds);
    if (t.calls == 0) {  // it has also warmed what it touches: it does not count
      t.calls = std::max<int64_t>(one.calls, 1);
      if (stop_) return;
      one = time_calls(t.call, t.calls, s_.seconds);
    }
    one.cpu_ns *= t.scale, one.real_ns *= t.scale;
    t.into->push_back(one);
  }

  bool ask_peer(Result& r, int64_t& calls) {
    if (calls == 0) {
      const std::optional<Timing> first = peer_->time(0, s_.seconds);
      if (first) calls = std::max<int64_t>(first->calls, 1);
    }
    const std::optional<Timing> one = peer_->time(std::max<int64_t>(calls, 1), s_.seconds);
    if (one) r.peer.push_back(*one);
    else r.no_peer = "the peer has ended";
    return one.has_value();
  }

  const std::vector<Item>& items_;
  const RunSettings& s_;
  const volatile std::sig_atomic_t& stop_;
  Countdown progress_;
  std::optional<Peer> peer_;
  std::map<std::string, std::string> laws_;  ///< by operator and kernel: what is wrong
  Results out_;
};
}  // namespace

Results run_items(const std::vector<Item>& items, const RunSettings& settings,
                  const volatile std::sig_atomic_t& stop) {
  if (!has_clock()) time_calls({}, 1, 0);  // says so
  return Runner(items, settings, stop).run();
}

std::vector<double> shown_times(const std::vector<Timing>& rounds, bool real_time) {
  std::vector<double> out;
  for (const Timing& t : rounds) out.push_back(real_time ? t.real_ns : t.cpu_ns);
  return out;
}

double limit_of(const Result& result, bool real_time, std::string* which) {
  double best = 0;
  for (const auto& [name, rounds] : result.limits) {
    const double least = spread_of(shown_times(rounds, real_time)).least;
    if (least <= 0 || (best > 0 && least >= best)) continue;
    best = least;
    if (which) *which = name;
  }
  return best;
}

bool is_noisy(const Result& result, bool real_time) {
  const auto varies = [real_time](const std::vector<Timing>& rounds) {
    return spread_of(shown_times(rounds, real_time)).share() > kNoisy;
  };
  std::string which;
  return std::ranges::any_of(result.entries, [&](const Entry& e) { return varies(e.rounds); }) ||
         varies(result.peer) || (limit_of(result, real_time, &which) > 0 && varies(result.limits.at(which)));
}

}  // namespace lamella::tools::bench
