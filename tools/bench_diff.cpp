// Two files side by side: medians, how sure they are, and whether they differ. Any of Google Benchmark's will
// do.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench_report.h"
#include "run_json.h"

namespace lamella::tools::bench {

using nlohmann::json;

namespace {
struct Samples {
  std::string name;
  std::vector<double> ns;
  double instructions = -1;
};

double in_ns(const json& one, const char* clock) {
  const std::string unit = one.value("time_unit", "ns");
  const double scale = unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "us" ? 1e3 : 1;
  return one.value(clock, 0.0) * scale;
}

/// Repetitions by name, in the file's order. Files with aggregates alone give their medians.
std::vector<Samples> samples_in(const std::string& path, bool real_time) {
  const json file = read_json(path);
  LAMELLA_CHECK(file.contains("benchmarks") && file["benchmarks"].is_array(), Usage,
                "bench diff: {} has no list \"benchmarks\"; expected a file of --json or of Google Benchmark",
                path);
  std::vector<Samples> out;
  for (const bool aggregates : {false, true}) {
    for (const json& one : file["benchmarks"]) {
      const bool is_aggregate = one.value("run_type", "iteration") == "aggregate";
      if (is_aggregate != aggregates || (is_aggregate && one.value("aggregate_name", "") != "median"))
        continue;
      const std::string name = one.value("run_name", one.value("name", ""));
      auto at = std::ranges::find(out, name, &Samples::name);
      if (at == out.end()) at = out.insert(out.end(), Samples{name, {}, -1});
      at->ns.push_back(in_ns(one, real_time ? "real_time" : "cpu_time"));
      at->instructions = one.value("instructions", at->instructions);
    }
    if (!out.empty()) break;
  }
  LAMELLA_CHECK(!out.empty(), Usage, "bench diff: {} has no benchmark", path);
  return out;
}

/// The same numbers for the same files.
struct Lots {
  uint64_t state = 20261123;
  size_t below(size_t n) {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return size_t((z ^ (z >> 31)) % n);
  }
};

double median_drawn(const std::vector<double>& xs, Lots& lots) {
  std::vector<double> drawn(xs.size());
  for (double& x : drawn) x = xs[lots.below(xs.size())];
  return spread_of(std::move(drawn)).median;
}

struct Ratio {
  double value = 1, low = 1, high = 1;
};
/// after / before, by medians; the interval by the bootstrap.
Ratio ratio_of(const Samples& before, const Samples& after) {
  constexpr int kDraws = 1000;
  Lots lots;
  std::vector<double> ratios;
  for (int i = 0; i < kDraws; ++i) {
    const double a = median_drawn(before.ns, lots), b = median_drawn(after.ns, lots);
    ratios.push_back(a > 0 ? b / a : 1);
  }
  std::sort(ratios.begin(), ratios.end());
  const double a = spread_of(before.ns).median, b = spread_of(after.ns).median;
  return {a > 0 ? b / a : 1, ratios[size_t(kDraws * 0.025)], ratios[size_t(kDraws * 0.975)]};
}

std::string with_interval(const Samples& s) {
  const Spread spread = spread_of(s.ns);
  const double half = spread.median > 0 ? (spread.high - spread.low) / 2 / spread.median : 0;
  char text[64];
  std::snprintf(text, sizeof text, "%8s +-%4.1f%%", time_text(spread.median).c_str(), 100 * half);
  return text;
}

std::string verdict(const Ratio& r, size_t rounds) {
  constexpr double kSmall = 0.01;
  constexpr size_t kFew = 5;  // of fewer the interval says nothing
  if (rounds < kFew) return "few";
  if (r.low > 1 + kSmall) return "slower";
  return r.high < 1 - kSmall ? "faster" : "";
}

void print_pair(const Samples& a, const Samples& b) {
  const Ratio r = ratio_of(a, b);
  char instructions[32] = "";
  if (a.instructions > 0 && b.instructions > 0)
    std::snprintf(instructions, sizeof instructions, "%.3f", b.instructions / a.instructions);
  constexpr size_t kNames = 32;
  const bool is_long = a.name.size() > kNames;  // it has a line of its own then
  if (is_long) std::printf("%s\n", a.name.c_str());
  std::printf("%-32s %s %s %5.2f [%.2f, %.2f] %5s %s\n", is_long ? "" : a.name.c_str(),
              with_interval(a).c_str(), with_interval(b).c_str(), r.value, r.low, r.high, instructions,
              verdict(r, std::min(a.ns.size(), b.ns.size())).c_str());
}
}  // namespace

int print_diff(const std::string& before, const std::string& after, bool real_time) {
  const std::vector<Samples> a = samples_in(before, real_time), b = samples_in(after, real_time);
  std::printf("%-32s %16s %16s %5s %12s %5s\n", "median +- half of 95 %", "A", "B", "B/A", "95 %", "instr");
  int common = 0;
  for (const Samples& x : a) {
    const auto y = std::ranges::find(b, x.name, &Samples::name);
    if (y == b.end()) continue;
    print_pair(x, *y), ++common;
  }
  const auto print_lonely = [](const std::vector<Samples>& here, const std::vector<Samples>& there,
                               const char* which) {
    for (const Samples& x : here)
      if (std::ranges::find(there, x.name, &Samples::name) == there.end())
        std::printf("only in %s: %s\n", which, x.name.c_str());
  };
  print_lonely(a, b, "A"), print_lonely(b, a, "B");
  LAMELLA_CHECK(common > 0, Usage, "bench diff: {} and {} have no benchmark in common", before, after);
  std::printf("slower, faster: the interval of B/A lies beyond 1 %%; few: under five rounds\n");
  return 0;
}

}  // namespace lamella::tools::bench
