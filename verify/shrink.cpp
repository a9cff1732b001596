// The reducer: makes a failing choice vector shorter, then its words smaller, as long as the law still fails.
#include <chrono>
#include <unordered_set>

#include "lamella/verify/law.h"

namespace lamella::verify {

namespace {

class Reducer {
 public:
  Reducer(const Law& law, const Op& op, Choices choices, int budget_ms)
      : law_(law), op_(op), deadline_(Clock::now() + std::chrono::milliseconds(budget_ms)) {
    best_.choices = std::move(choices);
    best_.verdict = run_check(law, op, best_.choices);
  }

  Shrunk run() {
    if (best_.verdict.kind != Verdict::Fail) return best_;
    for (bool progress = true; progress && !expired();) {
      progress = shorten();
      progress |= delete_spans();
      progress |= zero_spans();
      progress |= lower_words();
    }
    return best_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool expired() const { return Clock::now() >= deadline_; }

  bool accept(Choices candidate) {
    while (!candidate.empty() && candidate.back() == 0) candidate.pop_back();  // missing words read 0
    if (candidate == best_.choices || expired()) return false;
    uint64_t key = candidate.size();
    for (const uint32_t w : candidate) key = (key ^ w) * 0x9E3779B97F4A7C15u ^ (key >> 29);
    if (!seen_.insert(key).second) return false;
    ++best_.executions;
    Verdict verdict = run_check(law_, op_, candidate);
    if (verdict.kind != Verdict::Fail) return false;
    best_.choices = std::move(candidate);
    best_.verdict = std::move(verdict);
    return true;
  }

  bool shorten() {
    bool any = false;
    for (size_t keep = 0; keep < best_.choices.size(); keep = keep * 2 + 1) {
      if (!accept({best_.choices.begin(), best_.choices.begin() + long(keep)})) continue;
      any = true;
      break;
    }
    return any;
  }

  template <class Edit> bool over_spans(Edit edit) {
    bool any = false;
    for (size_t length = 8; length > 0; length /= 2)
      for (size_t at = 0; at < best_.choices.size() && !expired();) {
        Choices candidate = best_.choices;
        const size_t end = std::min(at + length, candidate.size());
        edit(candidate, at, end);
        if (accept(std::move(candidate))) any = true;
        else ++at;
      }
    return any;
  }

  bool delete_spans() {
    return over_spans(
        [](Choices& c, size_t at, size_t end) { c.erase(c.begin() + long(at), c.begin() + long(end)); });
  }
  bool zero_spans() {
    return over_spans(
        [](Choices& c, size_t at, size_t end) { std::fill(c.begin() + long(at), c.begin() + long(end), 0); });
  }

  bool lower_words() {
    bool any = false;
    for (size_t i = 0; i < best_.choices.size(); ++i)
      for (bool lower = true; lower && i < best_.choices.size() && !expired();) {
        const uint32_t w = best_.choices[i];
        lower = false;
        for (const uint32_t v :
             {uint32_t{1}, uint32_t{2}, uint32_t{3}, w % 8, w % 24, w % 256, w / 2, w - 1}) {
          if (v >= w) continue;
          Choices candidate = best_.choices;
          candidate[i] = v;
          if (!accept(std::move(candidate))) continue;
          any = lower = true;
          break;
        }
      }
    return any;
  }

  const Law& law_;
  const Op& op_;
  Clock::time_point deadline_;
  std::unordered_set<uint64_t> seen_;
  Shrunk best_;
};

}  // namespace

Shrunk shrink(const Law& law, const Op& op, Choices choices, int budget_ms) {
  return Reducer(law, op, std::move(choices), budget_ms).run();
}

}  // namespace lamella::verify
