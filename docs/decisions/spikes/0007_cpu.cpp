// Spike 0007 on the CPU: all lanes in one vector value. Built for several instruction sets by flags alone.
#include "0007_reference.h"
#include "0007_text.h"
#include "timing.h"

namespace {

template <bool kInSteps> struct CpuExecutor {
  typedef float Value __attribute__((vector_size(spike::kLanes * sizeof(float)), aligned(64)));

  int64_t group() const { return 0; }
  int64_t groups() const { return 1; }
  template <class F> void for_each(int64_t n, F f) const {
    for (int64_t i = 0; i < n; ++i) f(i);
  }
  Value zero() const { return Value{}; }
  Value load(const float* p, int64_t i, int64_t n) const {
    Value v;
    if (i + spike::kLanes <= n) return std::memcpy(&v, p + i, sizeof v), v;
    std::memcpy(&(v = Value{}), p + i, size_t(n - i) * sizeof(float));
    return v;
  }
  void store(float* p, int64_t i, int64_t n, const Value& v) const {
    if (i + spike::kLanes <= n) [[likely]]
      std::memcpy(p + i, &v, sizeof v);
    else std::memcpy(p + i, &v, size_t(n - i) * sizeof(float));
  }
  /// Lane l gets lane l - k's value, the first k lanes zero.
  Value shift_up(const Value& v, int k) const { return window(Value{}, v, spike::kLanes - k); }
  Value shift_down(const Value& v, int k) const { return window(v, Value{}, k); }
  /// Lane after lane is faster here than steps: 4 cycles each, where a shift through memory costs 12 and
  /// more.
  template <class Op> Value scan(Value v) {
    if constexpr (kInSteps) return spike::scan_in_steps<Op>(*this, v);
    float lanes[spike::kLanes];
    std::memcpy(lanes, &v, sizeof v);
    for (int l = 1; l < spike::kLanes; ++l) lanes[l] = Op()(lanes[l - 1], lanes[l]);
    std::memcpy(&v, lanes, sizeof v);
    return v;
  }
  Value last(const Value& v) const { return Value{} + v[spike::kLanes - 1]; }

 private:
  static Value window(const Value& low, const Value& high, int at) {
    alignas(64) float both[2 * spike::kLanes];
    std::memcpy(both, &low, sizeof low);
    std::memcpy(both + spike::kLanes, &high, sizeof high);
    Value v;
    std::memcpy(&v, both + at, sizeof v);
    return v;
  }
};

// What one would write by hand, with the same flags.
void plain_mul_add(const float* a, const float* b, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i] + b[i];
}
float plain_sum(const float* x, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
void plain_scan(const float* x, float* out, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = sum += x[i];
}
}  // namespace

int main() {
  using namespace spike;
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) return std::puts("this machine has no AVX-512"), 0;
#elif defined(__AVX2__)
  if (!__builtin_cpu_supports("avx2")) return std::puts("this machine has no AVX2"), 0;
#endif
  CpuExecutor<true> e;
  CpuExecutor<false> own;
  const std::vector<float> a = input(kLines * kLength, 1), b = input(kLines * kLength, 2);
  std::vector<float> c(a.size()), sums(kLines), scans(a.size());
  pointwise<MulAdd>(e, a.data(), b.data(), c.data(), int64_t(a.size()));
  reduce<Sum>(e, a.data(), sums.data(), kLines, kLength);
  scan<Sum>(e, a.data(), scans.data(), kLines, kLength);
  const bool ok = report("pointwise", c, mul_add_expected(a, b)) &
                  report("reduce", sums, sums_expected(a, kLines, kLength, false)) &
                  report("scan", scans, sums_expected(a, kLines, kLength, true));
  const int64_t n = 4096;
  float* const out = c.data();
  Contest contest("4096 elements of f32");
  contest.add("pointwise: the text", 5000,
              [&] { pointwise<MulAdd>(e, a.data(), b.data(), out, n), keep(c); });
  contest.add("pointwise: by hand", 5000, [&] { plain_mul_add(a.data(), b.data(), out, n), keep(c); });
  contest.add("reduce: the text", 5000, [&] { reduce<Sum>(e, a.data(), out, 1, n), keep(c); });
  contest.add("reduce: by hand", 5000, [&] { keep(plain_sum(a.data(), n)); });
  contest.add("scan: the text", 5000, [&] { scan<Sum>(e, a.data(), out, 1, n), keep(c); });
  contest.add("scan: the text, lane after lane", 5000, [&] { scan<Sum>(own, a.data(), out, 1, n), keep(c); });
  contest.add("scan: by hand", 5000, [&] { plain_scan(a.data(), out, n), keep(c); });
  contest.run();
  return ok ? 0 : 1;
}
