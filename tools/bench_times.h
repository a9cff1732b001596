// Times of single calls, taken by Google Benchmark.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lamella::tools::bench {

/// Whether this build has it; if not, time_calls() raises usage and says what to install.
bool has_clock();

struct Timing {
  double cpu_ns = 0, real_ns = 0;  ///< of one call: of this thread, and on the clock
  int64_t calls = 0;
};
/// So many calls; 0: as many as take `seconds`, and some before that to find out. Error usage without Google
/// Benchmark; what `call` raises is raised.
Timing time_calls(const std::function<void()>& call, int64_t calls, double seconds);

/// Instructions of one call, kernel's left out, by the processor's counter; -1 where it may not be read.
double instructions_of(const std::function<void()>& call, int64_t calls);

/// Least, quartiles, and an interval that holds the median in 95 of 100 runs (order statistics).
struct Spread {
  double least = 0, p25 = 0, median = 0, p75 = 0, low = 0, high = 0;
  /// The middle half of the rounds within this share of the median.
  double share() const { return median > 0 ? (p75 - p25) / median : 0; }
};
Spread spread_of(std::vector<double> times);
inline constexpr double kNoisy = 0.1;  ///< share() above it is said

}  // namespace lamella::tools::bench
