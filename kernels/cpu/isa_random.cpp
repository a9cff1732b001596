// Uniform and normal samples of f32 in a row: Philox in vector registers. Compiled once per LAMELLA_BACKEND.
#include <bit>
#include <cmath>
#include <numbers>

#include "lamella/kernels/cpu/registers.h"
#include "lamella/kernels/cpu/samples.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

constexpr int64_t kBlock = kHere.random_block;
constexpr int64_t kLanes = kRegisterBytes / int64_t(sizeof(uint64_t));
constexpr int64_t kStep = 2 * kLanes;  // two registers at a time: what one waits for, the other computes
constexpr int64_t kRoom = (kBlock + kStep - 1) / kStep * kStep;  // whole ones are written

using Counters = RegisterOf<uint64_t, kRegisterBytes>::type;

/// The products of the lower halves.
[[gnu::always_inline]] inline Counters times(Counters a, Counters b) {
#if defined(__AVX512F__)
  // (with a mask of all: the plain form reads an undefined register in g++ 12's header, which warns)
  return Counters(_mm512_maskz_mul_epu32(__mmask8(-1), __m512i(a), __m512i(b)));
#elif defined(__AVX2__)
  return Counters(_mm256_mul_epu32(__m256i(a), __m256i(b)));
#elif defined(__SSE2__)
  return Counters(_mm_mul_epu32(__m128i(a), __m128i(b)));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

/// Words of Philox's blocks (core/rng.h), each in the lower half of a number.
struct Words {
  alignas(kRegisterBytes) uint64_t word[4][kRoom];
};

// One block a lane, each 32-bit word in the lower half of its lane. Nothing reads the upper halves: products
// are of the lower ones, and what is shifted down is a product.
void draw(Words& to, uint64_t key, uint64_t first, int64_t n) {
  uint64_t keys[2][10];
  for (uint32_t round = 0, a = uint32_t(key), b = uint32_t(key >> 32); round < 10; ++round) {
    keys[0][round] = a, keys[1][round] = b;
    a += 0x9E3779B9u, b += 0xBB67AE85u;
  }
  uint64_t lane[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lane[j] = first + uint64_t(j);
  const Counters start = loaded<Counters>(lane), even = Counters{} + 0xD2511F53u,
                 odd = Counters{} + 0xCD9E8D57u;
  for (int64_t i = 0; i < n; i += kStep) {
    Counters c[2][4];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      c[r][0] = start + uint64_t(i + r * kLanes), c[r][1] = c[r][0] >> 32;
      c[r][2] = c[r][3] = Counters{};
    }
    for (int round = 0; round < 10; ++round)
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        const Counters p0 = times(even, c[r][0]), p1 = times(odd, c[r][2]);
        c[r][0] = (p1 >> 32) ^ c[r][1] ^ keys[0][round], c[r][1] = p1;
        c[r][2] = (p0 >> 32) ^ c[r][3] ^ keys[1][round], c[r][3] = p0;
      }
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r)
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) stored(to.word[w] + i + r * kLanes, c[r][w]);
  }
}

void uniform_run(void* out, uint64_t key, uint64_t first, int64_t n) {
  float* o = static_cast<float*>(out);
  Words words;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    draw(words, key, first + uint64_t(i), count);
    const uint64_t* const word = words.word[0];
    for (int64_t j = 0; j < count; ++j) o[i + j] = float(int32_t(uint32_t(word[j]) >> 8)) * 0x1p-24f;
  }
}

/// a * b + c, rounded once where there is an instruction for it: see NOTE: [normal samples], a sample does
/// not depend on it.
inline double mul_add(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// 2 artanh s = log((1 + s) / (1 - s)), abs(s) < 0.1716: what is left out is below s^14 / 15 < 2^-39 of it.
inline double log_of(double u) {
  // u = m 2^e, sqrt(1/2) <= m < sqrt(2): the difference to the bits of sqrt(1/2) holds e.
  const uint64_t bits = std::bit_cast<uint64_t>(u) - 0x3FE6A09E667F3BCDu;
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu);
  // The exponent is -52 to 0: 64 more, in the lowest bits of 2^52, are a number that vectors convert.
  const double e =
      std::bit_cast<double>((((bits >> 52) + 64) & 0xFFFu) | 0x4330000000000000u) - (0x1p52 + 64);
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 13;
  sum = mul_add(sum, z, 1.0 / 11), sum = mul_add(sum, z, 1.0 / 9), sum = mul_add(sum, z, 1.0 / 7);
  sum = mul_add(sum, z, 1.0 / 5), sum = mul_add(sum, z, 1.0 / 3), sum = mul_add(sum, z, 1);
  return mul_add(e, std::numbers::ln2, 2 * s * sum);
}

/// Series to t^12 and t^13, abs(t) <= pi/4: what is left out is below 2^-40 of the result.
struct CosSin {
  double cos, sin;
};
inline CosSin cos_sin_of(double t) {
  const double z = t * t;
  double sine = 1.0 / 6227020800, cosine = 1.0 / 479001600;
  sine = mul_add(sine, z, -1.0 / 39916800), cosine = mul_add(cosine, z, -1.0 / 3628800);
  sine = mul_add(sine, z, 1.0 / 362880), cosine = mul_add(cosine, z, 1.0 / 40320);
  sine = mul_add(sine, z, -1.0 / 5040), cosine = mul_add(cosine, z, -1.0 / 720);
  sine = mul_add(sine, z, 1.0 / 120), cosine = mul_add(cosine, z, 1.0 / 24);
  sine = mul_add(sine, z, -1.0 / 6), cosine = mul_add(cosine, z, -1.0 / 2), cosine = mul_add(cosine, z, 1);
  return {cosine, mul_add(sine * z, t, t)};
}

/// Whether x lies within 2^15 of its last bits, 2^-38 of it at least, of the middle of two floats.
inline bool is_unsure(double x) {
  const uint64_t half = 1u << 28, near = 1u << 15;  // a float has 29 bits less
  return ((std::bit_cast<uint64_t>(x) + near - half) & (2 * half - 1)) < 2 * near;
}

/// 64 bits of two words.
inline uint64_t joined(uint64_t low, uint64_t high) { return (low & 0xFFFFFFFFu) | high << 32; }

/// NOTE: [normal samples] A sample is what the library's functions say in f64, rounded: sample_normal. In f32
/// it is computed here by series that vectorise and are right to 2^-39 of the result (as the library's are to
/// 2^-50), and kept where all numbers within 2^-38 of it round to the same float, the library's too. One of
/// some 8,000 is not, and goes through the library: the bits are the same on every instruction set.
void normal_pairs(float* o, uint64_t key, uint64_t block, int64_t n) {
  Words words;
  double value[2][kRoom];
  draw(words, key, block, n);
  uint64_t unsure = 0;
  for (int64_t j = 0; j < n; ++j) {
    const NormalBits bits{joined(words.word[0][j], words.word[1][j]),
                          joined(words.word[2][j], words.word[3][j])};
    const double size = std::sqrt(-2 * log_of(bits.u()));
    const double r = std::bit_cast<double>(std::bit_cast<uint64_t>(size) ^ bits.sign());
    const CosSin at = cos_sin_of(std::numbers::pi / 2 * bits.f());
    const bool swaps = bits.swaps();
    value[0][j] = r * (swaps ? at.sin : at.cos), value[1][j] = r * (swaps ? at.cos : at.sin);
    unsure |= uint64_t(is_unsure(value[0][j])) | uint64_t(is_unsure(value[1][j]));
  }
  for (int64_t j = 0; j < n; ++j) o[2 * j] = float(value[0][j]), o[2 * j + 1] = float(value[1][j]);
  for (int64_t j = 0; unsure && j < 2 * n; ++j)
    if (is_unsure(value[j % 2][j / 2])) o[j] = float(sample_normal(key, 2 * block + uint64_t(j)));
}

void normal_run(void* out, uint64_t key, uint64_t first, int64_t n) {
  float* o = static_cast<float*>(out);
  const auto one = [&](int64_t i) { o[i] = float(sample_normal(key, first + uint64_t(i))); };
  const int64_t odd = int64_t(first % 2);
  if (odd && n > 0) one(0);
  int64_t i = odd;
  for (; i + 1 < n; i += 2 * kBlock)
    normal_pairs(o + i, key, (first + uint64_t(i)) / 2, n - i < 2 * kBlock ? (n - i) / 2 : kBlock);
  if (n > odd && (n - odd) % 2) one(n - 1);
}

}  // namespace

SampleRunFn find_uniform(DType dtype) { return dtype == DType::F32 ? uniform_run : nullptr; }
SampleRunFn find_normal(DType dtype) { return dtype == DType::F32 ? normal_run : nullptr; }

}  // namespace lamella::kernels::LAMELLA_BACKEND
