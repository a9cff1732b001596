// Streaming stores: see stream.h.
#include "lamella/kernels/cpu/stream.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include "lamella/core/thresholds.h"
#include "lamella/kernels/cpu/isa.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lamella::kernels {
namespace {

/// What the kernel says of the cache that one core can use: "32768K".
int64_t cache_of_a_core() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kilobytes = 0;
  char unit = 0;
  return file >> kilobytes >> unit && unit == 'K' && kilobytes > 0 ? kilobytes << 10 : 0;
}

// The C library adds up all caches of a package on some processors: 384 MB where a core reaches 32.
int64_t find_last_level_cache() {
  if (const int64_t bytes = cache_of_a_core(); bytes > 0) return bytes;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const int64_t bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return kUsualThresholds.past_caches;
}
int64_t last_level_cache() {
  static const int64_t bytes = find_last_level_cache();
  return bytes;
}

}  // namespace

// Where there are stores that do.
bool passes_caches(int64_t bytes) {
#if defined(__SSE2__)
  return bytes >= (thresholds().lowered ? thresholds().past_caches : last_level_cache());
#else
  return bytes < 0;
#endif
}

bool shares_caches(int64_t bytes) {
  static_assert(kUsualThresholds.shared_caches * 4 == kUsualThresholds.past_caches);
  return bytes >= (thresholds().lowered ? thresholds().shared_caches : last_level_cache() / 4);
}

int64_t bytes_of_plan(const IterPlan& plan) {
  int64_t total = 0;
  for (int k = 0; k < plan.operands; ++k) {
    if (k > 0 && plan.data[k] == plan.data[0]) return 0;
    int64_t bytes = plan.itemsize[k];
    for (int d = 0; d < plan.rank; ++d) bytes *= plan.strides[k][d] == 0 ? 1 : plan.sizes[d];
    total += bytes;
  }
  return total;
}

// Lines of 64 bytes, each written whole; what does not fill one is copied.
void stream(char* to, const char* from, int64_t bytes) {
#if defined(__SSE2__)
  const int64_t head = std::min<int64_t>(-reinterpret_cast<intptr_t>(to) & 63, bytes);
  std::memcpy(to, from, size_t(head));
  to += head, from += head, bytes -= head;
  const int64_t lines = bytes / 64;
  isa().copy_past(to, from, lines);
  to += lines * 64, from += lines * 64, bytes -= lines * 64;
#endif
  std::memcpy(to, from, size_t(bytes));
}

void ask_for(const char* next, int64_t bytes) {
  constexpr int64_t kAhead = 1 << 14;  // what the first-level cache keeps beside the row at hand
  for (int64_t line = 0; line < std::min(bytes, kAhead); line += 64) __builtin_prefetch(next + line);
}

void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace lamella::kernels
