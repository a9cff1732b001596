// What a person would write by hand for one dtype and one layout: the measure of the kernels.
#pragma once

#include <cstddef>

namespace bench {

void add_by_hand(float* out, const float* a, const float* b, size_t n);

/// With stores that pass the caches by; `out` aligned to 16 bytes, n a multiple of 4.
void add_by_hand_streaming(float* out, const float* a, const float* b, size_t n);

}  // namespace bench
