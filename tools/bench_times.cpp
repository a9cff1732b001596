// One benchmark at a time is registered and run, so that rounds go through kernels, limits and the peer in
// turn.
#include "bench_times.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lamella/core/check.h"

#if LAMELLA_HAVE_BENCH
#include <benchmark/benchmark.h>
#endif

namespace lamella::tools::bench {

#if LAMELLA_HAVE_BENCH
namespace {
/// Prints nothing and keeps the one run.
class Kept : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.iterations > 0) {
        const auto n = double(run.iterations);
        timing = {run.cpu_accumulated_time / n * 1e9, run.real_accumulated_time / n * 1e9,
                  int64_t(run.iterations)};
      }
  }
  Timing timing;
};
}  // namespace

bool has_clock() { return true; }

Timing time_calls(const std::function<void()>& call, int64_t calls, double seconds) {
  std::exception_ptr raised;
  const auto body = [&](benchmark::State& state) {
    try {
      for (auto unused : state) {
        static_cast<void>(unused);
        call();
      }
    } catch (...) {
      raised = std::current_exception();
      state.SkipWithError("raised");
    }
  };
  benchmark::ClearRegisteredBenchmarks();
  auto* const registered = benchmark::RegisterBenchmark("call", body);
  if (calls > 0) registered->Iterations(calls);
  else registered->MinTime(seconds);
  Kept kept;
  benchmark::RunSpecifiedBenchmarks(&kept, std::string("."));
  benchmark::ClearRegisteredBenchmarks();
  if (raised) std::rethrow_exception(raised);
  return kept.timing;
}
#else
bool has_clock() { return false; }

Timing time_calls(const std::function<void()>&, int64_t, double) {
  fail(ErrorCode::Usage,
       "bench: this build has no Google Benchmark to take times with; install libbenchmark-dev and configure "
       "again (`lamella doctor` shows what was found)");
}
#endif

double instructions_of(const std::function<void()>& call, int64_t calls) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_HARDWARE, attr.size = sizeof attr, attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.disabled = 1, attr.exclude_kernel = 1, attr.exclude_hv = 1;
  const int file = int(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  if (file < 0) return -1;
  uint64_t count = 0;
  ::ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
  for (int64_t i = 0; i < calls; ++i) call();
  ::ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
  const bool read_it = ::read(file, &count, sizeof count) == ssize_t(sizeof count);
  ::close(file);
  return read_it && count > 0 ? double(count) / double(calls) : -1;
}

Spread spread_of(std::vector<double> t) {
  if (t.empty()) return {};
  std::sort(t.begin(), t.end());
  const auto n = double(t.size());
  const auto at = [&](double rank) { return t[size_t(std::clamp(rank, 0.0, n - 1))]; };
  // Ranks n/2 -+ 1.96 sqrt(n)/2 of a binomial distribution by its normal one.
  const double half = 0.98 * std::sqrt(n);
  const double median = t.size() % 2 ? at((n - 1) / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
  return {t[0],
          at(std::floor(0.25 * (n - 1) + 0.5)),
          median,
          at(std::floor(0.75 * (n - 1) + 0.5)),
          at(std::floor(n / 2 - half)),
          at(std::ceil(n / 2 + half) - 1)};
}

}  // namespace lamella::tools::bench
