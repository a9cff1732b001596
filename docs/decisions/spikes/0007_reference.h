// The reference of spike 0007: inputs, plain loops in f64 that share nothing with the text, and the
// comparison.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace spike {

inline std::vector<float> input(int64_t n, uint32_t seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    out.push_back(float(seed >> 8) * 0x1p-23f - 1.0f);
  }
  return out;
}
inline std::vector<double> mul_add_expected(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(double(a[i]) * b[i] + b[i]);
  return out;
}
inline std::vector<double> sums_expected(const std::vector<float>& x, int64_t lines, int64_t n,
                                         bool running) {
  std::vector<double> out;
  for (int64_t line = 0; line < lines; ++line) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += x[size_t(line * n + i)];
      if (running || i == n - 1) out.push_back(sum);
    }
  }
  return out;
}

/// The largest error, and a hash of the result's bits: equal hashes on all executors mean equal results.
inline bool report(const char* what, const std::vector<float>& got, const std::vector<double>& want) {
  double worst = 0;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < want.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &got[i], sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
    worst = std::fmax(worst, std::fabs(got[i] - want[i]));
  }
  const bool ok = got.size() == want.size() && worst < 1e-4;
  std::printf("  %-10s %-5s worst error %.1e, bits %016llx\n", what, ok ? "ok" : "WRONG", worst,
              (long long)hash);
  return ok;
}

inline constexpr int64_t kLines = 7, kLength = 1037;  // no multiple of the lanes

}  // namespace spike
