// The reducer: makes a failing choice vector shorter, then its words smaller, as long as it fails in the same
// way; then says which parts of the case matter.
#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_set>

#include "lamella/verify/run/apart.h"

namespace lamella::verify {

namespace {

class Reducer {
 public:
  using Check = std::function<Verdict(const Choices&)>;
  Reducer(const Law& law, const Op& op, Choices choices, ShrinkLimits limits, const Decoding& decoding,
          const Check& check)
      : law_(law), op_(op), limits_(limits), decoding_(decoding), check_(check), begin_(Clock::now()) {
    best_.choices = std::move(choices);
  }

  Shrunk run() {
    best_.verdict = check(best_.choices);
    best_.flaky = best_.verdict.kind != Verdict::Fail;  // it failed when it was found
    kind_ = best_.verdict.failure;
    for (int again = 0; again < 3 && !best_.flaky; ++again) {
      const Verdict v = check(best_.choices);
      best_.flaky = v.kind != best_.verdict.kind || v.message != best_.verdict.message;
    }
    if (!best_.flaky) {
      cut(best_.choices, best_.verdict);
      reduce();
      if (limits_.explaining > 0) explain();
    }
    best_.milliseconds = elapsed();
    return best_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double elapsed() const { return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(); }
  bool expired() const { return best_.executions >= limits_.executions || elapsed() >= limits_.milliseconds; }

  Verdict check(const Choices& choices) {
    ++best_.executions;
    return check_ ? check_(choices) : run_check(law_, op_, choices, decoding_);
  }
  bool fails_alike(const Verdict& v) const { return v.kind == Verdict::Fail && v.failure == kind_; }

  /// Words that were not read, and zeros at the end, say nothing.
  static void cut(Choices& c, const Verdict& v) {
    if (c.size() > v.used) c.resize(v.used);
    while (!c.empty() && c.back() == 0) c.pop_back();
  }

  bool accept(Choices candidate) {
    while (!candidate.empty() && candidate.back() == 0) candidate.pop_back();  // missing words read 0
    if (candidate == best_.choices || expired()) return false;
    uint64_t key = candidate.size();
    for (const uint32_t w : candidate) key = (key ^ w) * 0x9E3779B97F4A7C15u ^ (key >> 29);
    if (!seen_.insert(key).second) return false;
    Verdict verdict = check(candidate);
    if (!fails_alike(verdict)) return false;
    cut(candidate, verdict);
    best_.choices = std::move(candidate);
    best_.verdict = std::move(verdict);
    return true;
  }

  void reduce() {
    for (bool progress = true; progress && !expired();) {
      progress = shorten();
      progress |= zero(0, best_.choices.size());
      progress |= lower_words();
      progress |= delete_words();
    }
  }

  bool shorten() {
    for (size_t keep = 0; keep < best_.choices.size(); keep = keep * 2 + 1)
      if (accept({best_.choices.begin(), best_.choices.begin() + long(keep)})) return true;
    return false;
  }

  /// Zeroes the span, or its halves: about log n checks for each word that has to stay.
  bool zero(size_t from, size_t to) {
    to = std::min(to, best_.choices.size());
    const auto all_zero = [&] {
      return std::all_of(best_.choices.begin() + long(from), best_.choices.begin() + long(to),
                         [](uint32_t w) { return w == 0; });
    };
    if (from >= to || expired() || all_zero()) return false;
    Choices candidate = best_.choices;
    std::fill(candidate.begin() + long(from), candidate.begin() + long(to), 0);
    if (accept(std::move(candidate))) return true;
    if (to - from == 1) return false;
    const size_t middle = from + (to - from) / 2;
    const bool right = zero(middle, to);  // later words depend on earlier ones, so they go first
    return zero(from, middle) || right;
  }

  /// see NOTE: [named sizes]: the least number that still fails, if all above it do
  bool lower_name(size_t i) {
    bool any = false;
    for (uint32_t step = 1u << 12; step > 0; step /= 2) {
      if (i >= best_.choices.size() || best_.choices[i] >> 16 != kNamedSize) break;
      if ((best_.choices[i] & 0xffff) < step) continue;
      Choices candidate = best_.choices;
      candidate[i] -= step;
      any |= accept(std::move(candidate));
    }
    return any;
  }

  /// Words are read modulo small numbers: the residue says as much as the word.
  bool lower_words() {
    bool any = false;
    for (size_t i = 0; i < best_.choices.size() && !expired(); ++i) {
      any |= lower_name(i);
      if (i >= best_.choices.size()) break;
      const uint32_t w = best_.choices[i];
      for (const uint32_t v : {1u, 2u, w % 8, w % 24, w % 256, w % 65536}) {
        if (v >= w || i >= best_.choices.size()) continue;
        Choices candidate = best_.choices;
        candidate[i] = v;
        if (!accept(std::move(candidate))) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  bool delete_words() {
    bool any = false;
    for (const size_t length : {size_t{4}, size_t{1}})
      for (size_t at = 0; at + length <= best_.choices.size() && !expired();) {
        Choices candidate = best_.choices;
        candidate.erase(candidate.begin() + long(at), candidate.begin() + long(at + length));
        if (accept(std::move(candidate))) any = true;
        else at += length;
      }
    return any;
  }

  std::vector<std::string> parts() const {
    std::vector<std::string> out;
    DrawOptions options = law_.options;
    options.depth = decoding_.depth;
    options.parts = &out;
    try {
      keeping_state([&] {
        Case c(op_, best_.choices, options);
        law_.check(c);
      });
    } catch (const std::exception&) {}  // what was drawn before is known
    return out;
  }

  /// A part may vary freely when other words in its places fail just so.
  void explain() {
    const std::vector<std::string> names = parts();
    std::map<std::string, std::vector<size_t>> places;
    for (size_t i = 0; i < names.size(); ++i) places[names[i]].push_back(i);
    const int until = best_.executions + limits_.explaining;
    uint64_t state = 0x853c49e6748fea9bu;
    for (const auto& [name, at] : places) {
      bool free = true;
      for (int trial = 0; trial < 4 && free; ++trial) {
        if (best_.executions >= until || elapsed() >= limits_.milliseconds) return;
        Choices candidate = best_.choices;
        candidate.resize(std::max(candidate.size(), at.back() + 1));
        for (const size_t i : at) candidate[i] = uint32_t((state = state * 6364136223846793005u + 1) >> 32);
        free = fails_alike(check(candidate));
      }
      (free ? best_.free : best_.fixed).push_back(name);
    }
  }

  const Law& law_;
  const Op& op_;
  ShrinkLimits limits_;
  Decoding decoding_;
  const Check& check_;
  Clock::time_point begin_;
  FailureKind kind_;
  std::unordered_set<uint64_t> seen_;
  Shrunk best_;
};

}  // namespace

Shrunk shrink(const Law& law, const Op& op, Choices choices, ShrinkLimits limits, const Decoding& decoding) {
  return shrink_by({}, law, op, std::move(choices), limits, decoding);
}

Shrunk shrink_by(const std::function<Verdict(const Choices&)>& check, const Law& law, const Op& op,
                 Choices choices, ShrinkLimits limits, const Decoding& decoding) {
  return Reducer(law, op, std::move(choices), limits, decoding, check).run();
}

}  // namespace lamella::verify
