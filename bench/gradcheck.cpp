// What does it cost to check a derivative? gradcheck of small functions, one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "lamella/core/generator.h"
#include "lamella/verify.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct Row {
  const char* name;
  double target_us;  ///< 0: shown for comparison only
  std::function<GradcheckReport()> run;
};

/// Median and least microseconds over 31 rounds.
std::pair<double, double> measure(const Row& row) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  for (int round = 0; round < 31; ++round) {
    const auto start = Clock::now();
    constexpr int kRepeat = 20;
    for (int i = 0; i < kRepeat; ++i) row.run();
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kRepeat);
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us.front()};
}
}  // namespace

int main() {
  manual_seed(1);
  const Tensor x = randn({3, 4}, {}, DType::F64), w = randn({4, 4}, {}, DType::F64);
  const UnaryFunction f = [](const Tensor& t) { return tanh(t); };
  const UnaryFunction layer = [&](const Tensor& t) { return softmax(tanh(matmul(t, w)), 1); };
  const std::vector<Row> rows = {
      {"tanh f64[3,4]", 60, [&] { return gradcheck(f, x); }},
      {"tanh f64[3,4], every entry", 0, [&] { return gradcheck(f, x, {.every_entry = true}); }},
      {"tanh f64[3,4], differences in f64", 0,
       [&] { return gradcheck(f, x, {.oracle = OracleKind::Differences}); }},
      {"tanh f64[3,4], second order too", 0, [&] { return gradcheck(f, x, {.second_order = true}); }},
      {"softmax(tanh(x w)) f64[3,4]", 0, [&] { return gradcheck(layer, x); }},
  };
  std::printf("%-50s %8s %8s %8s\n", "us per gradcheck", "median", "least", "target");
  for (const Row& row : rows) {
    if (const GradcheckReport r = row.run(); !r) {
      std::printf("%s: %s", row.name, r.text().c_str());
      return 1;
    }
    const auto [median, least] = measure(row);
    char target[16] = "-";
    if (row.target_us > 0) std::snprintf(target, sizeof target, "%.0f", row.target_us);
    std::printf("%-50s %8.1f %8.1f %8s\n", row.name, median, least, target);
  }
  return 0;
}
