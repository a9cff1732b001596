// Compiled with -O3, once per instruction set; the processor chooses at the first call.
#include "support/loops.h"

#include <immintrin.h>

namespace bench {

[[gnu::target_clones("avx512f", "avx2", "default")]] void add_by_hand(float* __restrict out,
                                                                      const float* __restrict a,
                                                                      const float* __restrict b, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void add_by_hand_streaming(float* out, const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; i += 4)
    _mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
  _mm_sfence();
}

}  // namespace bench
