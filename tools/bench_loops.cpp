// Compiled with -O3 and contraction; the processor chooses the width at the first call.
#include "bench_loops.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <emmintrin.h>

#include "lamella/core/parallel.h"

namespace lamella::tools::bench {

namespace {
/// Floats that start at a line of the caches.
using Floats = std::shared_ptr<float[]>;
Floats floats(size_t n) {
  constexpr size_t kLine = 64;
  auto* const at =
      static_cast<float*>(std::aligned_alloc(kLine, (n * sizeof(float) + kLine) / kLine * kLine));
  LAMELLA_CHECK(at, OutOfMemory, "bench: no memory for a loop over {} floats", n);
  std::fill_n(at, n, 1.0f);
  return {at, std::free};
}

[[gnu::target_clones("avx512f", "avx2", "default")]] void copy_by_hand(float* __restrict out,
                                                                       const float* __restrict a, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + 0.0f;  // no memcpy is made of it
}

[[gnu::target_clones("avx512f", "avx2", "default")]] void add_by_hand(float* __restrict out,
                                                                      const float* __restrict a,
                                                                      const float* __restrict b, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + 3.0f * b[i];
}

[[gnu::target_clones("avx512f", "avx2", "default")]] void fill_by_hand(float* __restrict out, float x,
                                                                       size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = x;
}

/// Bits are or-ed: no order of additions stands in the way.
[[gnu::target_clones("avx512f", "avx2", "default")]] uint32_t read_by_hand(const float* a, size_t n) {
  const auto* const bits = reinterpret_cast<const uint32_t*>(a);
  uint32_t seen = 0;
  for (size_t i = 0; i < n; ++i) seen |= bits[i];
  return seen;
}

void copy_streaming(float* out, const float* a, size_t n) {
  for (size_t i = 0; i + 4 <= n; i += 4) _mm_stream_ps(out + i, _mm_loadu_ps(a + i));
  _mm_sfence();
}

void add_streaming(float* out, const float* a, const float* b, size_t n) {
  const __m128 three = _mm_set1_ps(3);
  for (size_t i = 0; i + 4 <= n; i += 4)
    _mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_mul_ps(three, _mm_loadu_ps(b + i))));
  _mm_sfence();
}

void fill_streaming(float* out, float x, size_t n) {
  const __m128 xs = _mm_set1_ps(x);
  for (size_t i = 0; i + 4 <= n; i += 4) _mm_stream_ps(out + i, xs);
  _mm_sfence();
}

/// What is computed must be used.
void use(uint32_t x) { asm volatile("" : : "r"(x) : "memory"); }

/// Twelve chains of vectors side by side: enough for two units of four cycles each.
template <class V> [[gnu::always_inline]] inline void chains(V* state, int64_t rounds) {
  const V x = state[12], y = state[13];
  V a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5];
  V g = state[6], h = state[7], i = state[8], j = state[9], k = state[10], l = state[11];
  for (int64_t r = 0; r < rounds; ++r) {
    a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y, f = f * x + y;
    g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y, k = k * x + y, l = l * x + y;
  }
  state[0] = a, state[1] = b, state[2] = c, state[3] = d, state[4] = e, state[5] = f;
  state[6] = g, state[7] = h, state[8] = i, state[9] = j, state[10] = k, state[11] = l;
}
constexpr int64_t kChains = 12;

template <class T, int kBytes> struct Vector {
  typedef T type __attribute__((vector_size(kBytes), may_alias));
};

template <class T> [[gnu::target("avx512f")]] void chains_of_64(void* state, int64_t rounds) {
  chains(static_cast<typename Vector<T, 64>::type*>(state), rounds);
}
template <class T> [[gnu::target("avx2,fma")]] void chains_of_32(void* state, int64_t rounds) {
  chains(static_cast<typename Vector<T, 32>::type*>(state), rounds);
}
template <class T> void chains_of_16(void* state, int64_t rounds) {
  chains(static_cast<typename Vector<T, 16>::type*>(state), rounds);
}

std::string on_threads(const std::string& name, int threads) {
  return threads == 1 ? name : name + " x" + std::to_string(threads);
}

template <class T> Limit fma_loop(double flops, int threads) {
  const bool wide = __builtin_cpu_supports("avx512f"), half = __builtin_cpu_supports("fma");
  const int64_t bytes = wide ? 64 : half ? 32 : 16;
  void (*const run)(void*, int64_t) = wide ? chains_of_64<T> : half ? chains_of_32<T> : chains_of_16<T>;
  const int64_t room = 16 * bytes;  // for each thread
  const Floats states = floats(size_t(threads * room) / sizeof(float));
  std::fill_n(reinterpret_cast<T*>(states.get()), threads * room / int64_t(sizeof(T)), T(0.5));
  const double in_a_round = 2.0 * double(kChains * bytes / int64_t(sizeof(T))) * threads;
  const double most = 2e8 * threads;  // of a long product the rate is known after a part
  const double done = std::min(flops, most);
  const auto rounds = std::max<int64_t>(1, int64_t(done / in_a_round));
  const auto all = [=] {
    auto* const first = reinterpret_cast<char*>(states.get());
    if (threads == 1) return run(first, rounds);
    parallel_for(threads, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) run(first + t * room, rounds);
    });
  };
  const char* const name = wide ? "FMA, 512 bits" : half ? "FMA, 256 bits" : "mul+add, 128 bit";
  return {on_threads(name, threads), all, double(rounds) * in_a_round / flops};
}

template <class T> std::vector<Limit> fma_loops(double flops, int threads) {
  std::vector<Limit> out{fma_loop<T>(flops, 1)};
  if (threads > 1) out.push_back(fma_loop<T>(flops, threads));
  return out;
}

/// `count` elements from the place `at` on.
using Part = std::function<void(size_t at, size_t count)>;

/// Whole lines of the caches for each thread.
void share_out(const Part& part, size_t n, int threads) {
  constexpr size_t kLine = 16;
  const size_t each = (n / size_t(threads) + kLine) / kLine * kLine;
  parallel_for(threads, [&](int64_t first, int64_t last) {
    const size_t begin = std::min(n, size_t(first) * each), end = std::min(n, size_t(last) * each);
    if (begin < end) part(begin, end - begin);
  });
}

void add_ways(std::vector<Limit>& out, const std::string& name, size_t n, int threads, Part part) {
  out.push_back({name, [=] { part(0, n); }});
  if (threads > 1) out.push_back({on_threads(name, threads), [=] { share_out(part, n, threads); }});
}

std::vector<Limit> copies(size_t n, int threads) {
  const Floats out = floats(n), a = floats(n);
  std::vector<Limit> all;
  add_ways(all, "copy", n, threads, [=](size_t at, size_t count) { copy_by_hand(&out[at], &a[at], count); });
  add_ways(all, "streaming copy", n, threads,
           [=](size_t at, size_t count) { copy_streaming(&out[at], &a[at], count); });
  return all;
}

std::vector<Limit> additions(size_t n, int threads) {
  const Floats out = floats(n), a = floats(n), b = floats(n);
  std::vector<Limit> all;
  add_ways(all, "triad", n, threads,
           [=](size_t at, size_t count) { add_by_hand(&out[at], &a[at], &b[at], count); });
  add_ways(all, "streaming triad", n, threads,
           [=](size_t at, size_t count) { add_streaming(&out[at], &a[at], &b[at], count); });
  return all;
}

std::vector<Limit> fills(size_t n, int threads) {
  const Floats out = floats(n);
  std::vector<Limit> all;
  add_ways(all, "fill", n, threads, [=](size_t at, size_t count) { fill_by_hand(&out[at], 2, count); });
  add_ways(all, "streaming fill", n, threads,
           [=](size_t at, size_t count) { fill_streaming(&out[at], 2, count); });
  return all;
}

std::vector<Limit> readings(size_t n, int threads) {
  const Floats a = floats(n);
  std::vector<Limit> all;
  add_ways(all, "read", n, threads, [=](size_t at, size_t count) { use(read_by_hand(&a[at], count)); });
  return all;
}
}  // namespace

std::vector<Limit> limits_of(const Work& work, int threads) {
  const auto operands = [&](double arrays) {
    return std::max<size_t>(4, size_t(work.bytes / arrays / sizeof(float)) / 4 * 4);
  };
  switch (work.loop) {
    case Loop::None: return {};
    case Loop::Read: return readings(operands(1), threads);
    case Loop::Write: return fills(operands(1), threads);
    case Loop::Copy: return copies(operands(2), threads);
    case Loop::Add: return additions(operands(3), threads);
    case Loop::Fma: break;
  }
  const bool twice = work.dtype == DType::F64 || work.dtype == DType::C128;
  return twice ? fma_loops<double>(work.flops, threads) : fma_loops<float>(work.flops, threads);
}

}  // namespace lamella::tools::bench
