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

void f32_to_bf16(void* to, const void* from, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(to);
  const uint32_t* a = static_cast<const uint32_t*>(from);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t u = a[i];
    const uint32_t quiet_nan = (u >> 16) | 0x40u, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    o[i] = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
  }
}

#if defined(__AVX2__)
static_assert(kUsualThresholds.convert_width == 8);

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
