// Results computed straight to memory, past the caches: the text of one instruction set. See stream.h.
#pragma once

#include "lamella/kernels/cpu/lines.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {

inline constexpr int64_t kMemoryLine = 64;  ///< bytes that are sent to memory as one

/// A line of 64 bytes, in as few stores as there are registers for it: each takes its own step on the way to
/// memory, four of them longer than the memory itself.
[[gnu::always_inline]] inline void store_past(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
  for (int k = 0; k < 2; ++k)
    _mm256_stream_si256(static_cast<__m256i*>(to) + k,
                        _mm256_loadu_si256(static_cast<const __m256i*>(from) + k));
#elif defined(__SSE2__)
  for (int k = 0; k < 4; ++k)
    _mm_stream_si128(static_cast<__m128i*>(to) + k, _mm_loadu_si128(static_cast<const __m128i*>(from) + k));
#else
  __builtin_memcpy(to, from, kMemoryLine);
#endif
}

/// o[i] = f(i). What is computed goes straight to memory, `kLines` lines at a time: through a longer buffer
/// what is read would wait while it is stored (docs/performance.md).
template <class T, int64_t kLines = 1, class F>
[[gnu::always_inline]] inline void stream_line(T* o, int64_t n, F f) {
  constexpr int64_t kCount = kLines * kMemoryLine / int64_t(sizeof(T));
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(o + i) % kMemoryLine != 0; ++i) o[i] = f(i);
  for (; i + kCount <= n; i += kCount) {
    alignas(kMemoryLine) T line[kCount];
#pragma GCC unroll 1  // else the compiler gathers unrolled elements one by one
    for (int64_t k = 0; k < kCount; ++k) line[k] = f(i + k);
    for (int64_t k = 0; k < kLines; ++k) store_past(o + i + k * kCount / kLines, line + k * kCount / kLines);
  }
  for (; i < n; ++i) o[i] = f(i);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
