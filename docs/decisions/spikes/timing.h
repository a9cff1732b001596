// Timing for the spikes: alternatives run in turn, so that a busy neighbour meets all; medians with spread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace spike {

/// Keeps a value, and all memory, in the eyes of the optimiser.
template <class T> inline void keep(const T& value) { asm volatile("" : : "g"(&value) : "memory"); }

/// Processor time of all threads: what a neighbour's load does not change much.
inline double now_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

/// A question with several answers, each a body for one repetition, or for n of them; printed are ns each.
class Contest {
 public:
  explicit Contest(std::string question) : question_(std::move(question)) {}

  template <class F> void add(std::string name, int64_t n, F body) {
    if constexpr (std::is_invocable_v<F, int64_t>) {
      entries_.push_back({std::move(name), n, body, {}});
    } else {
      const auto repeated = [body](int64_t n) {
        while (n--) body();
      };
      entries_.push_back({std::move(name), n, repeated, {}});
    }
  }

  /// The first entry is the one the others are compared with.
  void run(int rounds = 9) {
    for (int round = -1; round < rounds; ++round)  // round -1 warms up
      for (Entry& e : entries_) {
        const double start = now_ns();
        e.body(e.n);
        if (round >= 0) e.ns.push_back((now_ns() - start) / double(e.n));
      }
    std::printf("%s\n", question_.c_str());
    for (Entry& e : entries_) {
      std::sort(e.ns.begin(), e.ns.end());
      std::printf("  %-58s %10.2f ns  [%.2f .. %.2f]  x%.2f\n", e.name.c_str(), median(e), e.ns.front(),
                  e.ns.back(), median(e) / median(entries_[0]));
    }
  }
  double median(size_t i) const { return median(entries_[i]); }

 private:
  struct Entry {
    std::string name;
    int64_t n;
    std::function<void(int64_t)> body;
    std::vector<double> ns;
  };
  static double median(const Entry& e) { return e.ns[e.ns.size() / 2]; }

  std::string question_;
  std::vector<Entry> entries_;
};

}  // namespace spike
