// The clock is the thread's own: on a shared machine the time that others are given does not count.
#include "support/times.h"

#include <algorithm>
#include <ctime>

namespace bench {
namespace {

double seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double seconds_of(const std::function<void()>& f, int repeat) {
  const double start = seconds_now();
  for (int i = 0; i < repeat; ++i) f();
  return seconds_now() - start;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[size_t(q * double(sorted.size() - 1) + 0.5)];
}

/// Runs in a round: about 2 ms, a thousand times what reading the clock takes.
int repeat_of(const Row& row) {
  int repeat = 1;
  while (seconds_of(row.run, repeat) < 2e-3) repeat *= 2;
  return repeat;
}

}  // namespace

std::vector<Times> time_rows(const Rows& rows, int rounds) {
  std::vector<Times> times(rows.size());
  std::vector<int> repeat;
  for (const Row& row : rows) repeat.push_back(repeat_of(row));
  std::vector<double> least_run(rows.size(), 1e300), least_base(rows.size(), 1e300);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const double scale = 1e9 / repeat[i] / rows[i].units;
      const double base = rows[i].baseline ? seconds_of(rows[i].baseline, repeat[i]) * scale : 0;
      const double run = seconds_of(rows[i].run, repeat[i]) * scale;
      least_base[i] = std::min(least_base[i], base);
      least_run[i] = std::min(least_run[i], run);
      times[i].rounds.push_back(run - base);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> sorted = times[i].rounds;
    std::sort(sorted.begin(), sorted.end());
    times[i].least = least_run[i] - least_base[i];
    times[i].p25 = quantile(sorted, 0.25);
    times[i].median = quantile(sorted, 0.5);
    times[i].p75 = quantile(sorted, 0.75);
  }
  return times;
}

double speed_beside(const Times& row, const Times& other) {
  std::vector<double> speeds;
  for (size_t i = 0; i < row.rounds.size(); ++i) speeds.push_back(other.rounds[i] / row.rounds[i]);
  std::sort(speeds.begin(), speeds.end());
  return quantile(speeds, 0.5);
}

}  // namespace bench
