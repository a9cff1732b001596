// Contiguous conversions worth SIMD. Compiled once per LAMELLA_BACKEND.
#include "lamella/kernels/cpu/lines.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

template <class To, class From> void convert_line(void* to, const void* from, int64_t n) {
  To* o = static_cast<To*>(to);
  const From* a = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) o[i] = To(a[i]);
}

// bf16 by hand and not through core/half.h: see the first lines of isa.h.
void bf16_to_f32(void* to, const void* from, int64_t n) {
  uint32_t* o = static_cast<uint32_t*>(to);
  const uint16_t* a = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) o[i] = uint32_t(a[i]) << 16;
}

uint16_t bf16_bits(uint32_t u) {
  const uint32_t quiet_nan = (u >> 16) | 0x40u, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

#if defined(__AVX2__)
static_assert(kUsualThresholds.convert_width == 8);

/// As bf16_bits, each in the lower half of its word.
__m256i bf16_words(__m256i u) {
  const __m256i upper = _mm256_srli_epi32(u, 16), odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, half), 16);
  const __m256i size = _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(size, _mm256_set1_epi32(0x7f800000));
  return _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), is_nan);
}
#endif

void f32_to_bf16(void* to, const void* from, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(to);
  const uint32_t* a = static_cast<const uint32_t*>(from);
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    const __m256i words = bf16_words(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i),
                     _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
#endif
  for (; i < n; ++i) o[i] = bf16_bits(a[i]);
}

#if defined(__AVX2__)

void f16_to_f32(void* to, const void* from, int64_t n) {
  float* o = static_cast<float*>(to);
  const uint16_t* a = static_cast<const uint16_t*>(from);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i))));
  }
  for (; i < n; ++i) o[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(a[i])));
}

void f32_to_f16(void* to, const void* from, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(to);
  const float* a = static_cast<const float*>(from);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) {
    o[i] = uint16_t(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(a[i]), _MM_FROUND_TO_NEAREST_INT)));
  }
}
#endif

constexpr int pair(DType from, DType to) { return int(from) * kDTypeCount + int(to); }

}  // namespace

CastLineFn find_cast(DType from, DType to) {
  switch (pair(from, to)) {
    case pair(DType::BF16, DType::F32): return bf16_to_f32;
    case pair(DType::F32, DType::BF16): return f32_to_bf16;
#if defined(__AVX2__)
    case pair(DType::F16, DType::F32): return f16_to_f32;
    case pair(DType::F32, DType::F16): return f32_to_f16;
#endif
    case pair(DType::F32, DType::F64): return convert_line<double, float>;
    case pair(DType::F64, DType::F32): return convert_line<float, double>;
    case pair(DType::I32, DType::F32): return convert_line<float, int32_t>;
    case pair(DType::I32, DType::F64): return convert_line<double, int32_t>;
    case pair(DType::I64, DType::F32): return convert_line<float, int64_t>;
    case pair(DType::I64, DType::F64): return convert_line<double, int64_t>;
    case pair(DType::I32, DType::I64): return convert_line<int64_t, int32_t>;
    case pair(DType::I64, DType::I32): return convert_line<int32_t, int64_t>;
    case pair(DType::U8, DType::F32): return convert_line<float, uint8_t>;
    case pair(DType::U8, DType::I64):
    case pair(DType::Bool, DType::I64): return convert_line<int64_t, uint8_t>;
    case pair(DType::Bool, DType::F32): return convert_line<float, uint8_t>;
    case pair(DType::Bool, DType::F64): return convert_line<double, uint8_t>;
    default: return nullptr;
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
