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
constexpr int64_t kRoom = (kBlock + kLanes - 1) / kLanes * kLanes;  // whole registers are written

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
  for (int64_t i = 0; i < n; i += kLanes) {
    Counters c0 = start + uint64_t(i), c1 = c0 >> 32, c2 = {}, c3 = {};
    for (int round = 0; round < 10; ++round) {
      const Counters p0 = times(even, c0), p1 = times(odd, c2);
      c0 = (p1 >> 32) ^ c1 ^ keys[0][round], c1 = p1;
      c2 = (p0 >> 32) ^ c3 ^ keys[1][round], c3 = p0;
    }
    stored(to.word[0] + i, c0), stored(to.word[1] + i, c1);
    stored(to.word[2] + i, c2), stored(to.word[3] + i, c3);
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

/// x / 2^53 of x < 2^53, exactly: two halves, as no vector set but one converts such integers.
inline double fraction(uint64_t x) {
  const double high = std::bit_cast<double>(x >> 32 | 0x4330000000000000u) - 0x1p52;
  const double low = std::bit_cast<double>((x & 0xFFFFFFFFu) | 0x4330000000000000u) - 0x1p52;
  return (high * 0x1p32 + low) * 0x1p-53;
}

/// 53 bits of two words, as sample_normal joins them.
inline uint64_t joined(uint64_t low, uint64_t high) { return ((low & 0xFFFFFFFFu) | high << 32) >> 11; }

/// a * b + c, rounded once where there is an instruction for it: see NOTE: [normal samples], a sample does
/// not depend on it.
inline double mul_add(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// 2 artanh s = log((1 + s) / (1 - s)), abs(s) < 0.1716: what is left out is below s^18 / 19 = 2^-50 of it.
inline double log_of(double u) {
  // u = m 2^e, sqrt(1/2) <= m < sqrt(2): the difference to the bits of sqrt(1/2) holds e.
  const uint64_t bits = std::bit_cast<uint64_t>(u) - 0x3FE6A09E667F3BCDu;
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu);
  // The exponent is -53 to 0: 64 more make it a number that the fraction's trick converts.
  const double e =
      std::bit_cast<double>((((bits >> 52) + 64) & 0xFFFu) | 0x4330000000000000u) - (0x1p52 + 64);
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 17;
  sum = mul_add(sum, z, 1.0 / 15), sum = mul_add(sum, z, 1.0 / 13), sum = mul_add(sum, z, 1.0 / 11);
  sum = mul_add(sum, z, 1.0 / 9), sum = mul_add(sum, z, 1.0 / 7), sum = mul_add(sum, z, 1.0 / 5);
  sum = mul_add(sum, z, 1.0 / 3), sum = mul_add(sum, z, 1);
  return mul_add(e, std::numbers::ln2, 2 * s * sum);
}

// cos t for 0 <= t < 2 pi + 2^-50: t = k pi/2 + r, abs(r) < pi/4 + 2^-50, pi/2 in two parts, of which the
// first ends in zeros: k times it is exact. Series to r^15 and r^14: what is left out is below 2^-50 of the
// result.
inline double cos_of(double t) {
  const double first = 0x1.921fb54442dp0, rest = 0x1.8469898cc5170p-48;
  const double k = (t * (2 / std::numbers::pi) + 0x1.8p52) - 0x1.8p52;
  const double r = mul_add(-k, rest, t - k * first), z = r * r;
  double sine = -1.0 / 1307674368000, cosine = -1.0 / 87178291200;
  sine = mul_add(sine, z, 1.0 / 6227020800), cosine = mul_add(cosine, z, 1.0 / 479001600);
  sine = mul_add(sine, z, -1.0 / 39916800), cosine = mul_add(cosine, z, -1.0 / 3628800);
  sine = mul_add(sine, z, 1.0 / 362880), cosine = mul_add(cosine, z, 1.0 / 40320);
  sine = mul_add(sine, z, -1.0 / 5040), cosine = mul_add(cosine, z, -1.0 / 720);
  sine = mul_add(sine, z, 1.0 / 120), cosine = mul_add(cosine, z, 1.0 / 24);
  sine = mul_add(sine, z, -1.0 / 6), cosine = mul_add(cosine, z, -1.0 / 2), cosine = mul_add(cosine, z, 1);
  sine = mul_add(sine * z, r, r);
  const double value = ((k == 1) | (k == 3)) ? sine : cosine;
  return ((k == 1) | (k == 2)) ? -value : value;
}

/// NOTE: [normal samples] Sample i is sqrt(-2 log u1) cos(2 pi u2) in f64 by the library's functions,
/// rounded: sample_normal. In f32 it is computed here by series that vectorise and are right to 2^-44 of the
/// result (as the library's are to 2^-50), and kept where all numbers within 2^-40 of it round to the same
/// float, the library's too. One of some 16,000 is not, and goes through the library: the stream's bits are
/// those it always had, whatever the instruction set.
void normal_run(void* out, uint64_t key, uint64_t first, int64_t n) {
  float* o = static_cast<float*>(out);
  Words words;
  double value[kRoom];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    draw(words, key, first + uint64_t(i), count);
    int unsure = 0;
    for (int64_t j = 0; j < count; ++j) {
      const double u1 = 1 - fraction(joined(words.word[0][j], words.word[1][j]));
      const double u2 = fraction(joined(words.word[2][j], words.word[3][j]));
      value[j] = std::sqrt(-2 * log_of(u1)) * cos_of(2 * std::numbers::pi * u2);
      const float low = float(value[j] * (1 - 0x1p-40)), high = float(value[j] * (1 + 0x1p-40));
      o[i + j] = low;
      unsure |= (low != high) | (low == 0);
    }
    for (int64_t j = 0; unsure && j < count; ++j) {
      const float high = float(value[j] * (1 + 0x1p-40));
      if (o[i + j] != high || high == 0) o[i + j] = float(sample_normal(key, first + uint64_t(i + j)));
    }
  }
}

}  // namespace

SampleRunFn find_uniform(DType dtype) { return dtype == DType::F32 ? uniform_run : nullptr; }
SampleRunFn find_normal(DType dtype) { return dtype == DType::F32 ? normal_run : nullptr; }

}  // namespace lamella::kernels::LAMELLA_BACKEND
