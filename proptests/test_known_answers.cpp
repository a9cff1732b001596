// Known answers: Philox's published vectors; f16 and bf16 against their definitions, every pattern of bits.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/core/rng.h"
#include "lamella/lamella.h"

namespace {
using namespace lamella;

/// Random123's kat_vectors, philox4x32 with 10 rounds: counter, key, result.
struct PhiloxAnswer {
  std::array<uint32_t, 4> counter;
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 4> result;
};
constexpr PhiloxAnswer kPhilox[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesThePublishedAnswers) {
  for (const PhiloxAnswer& a : kPhilox)
    EXPECT_EQ(philox(a.counter, uint64_t(a.key[0]) | uint64_t(a.key[1]) << 32), a.result);
}

/// What the bits mean by IEEE 754: `fraction` bits of significand, the bias of an exponent that is 1 to
/// 2 * bias + 1.
double meaning(uint16_t bits, int fraction, int bias) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> fraction, top = 2 * bias + 1;
  const int significand = bits & ((1 << fraction) - 1);
  if (exponent == top) return significand ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(significand, 1 - bias - fraction);
  return sign * std::ldexp(significand + (1 << fraction), exponent - bias - fraction);
}

struct Format {
  const char* name;
  int fraction, bias;
  uint16_t (*encode)(float);
  float (*decode)(uint16_t);
};
constexpr Format kFormats[] = {
    {"f16", 10, 15, f16::encode, f16::decode},
    {"bf16", 7, 127, bf16::encode,
     [](uint16_t b) {
       bf16 x;
       x.bits = b;
       return float(x);
     }},
};

TEST(HalfTypes, EveryPatternMeansWhatIeee754SaysAndRoundTrips) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double wanted = meaning(uint16_t(bits), f.fraction, f.bias);
      const float got = f.decode(uint16_t(bits));
      const uint16_t back = f.encode(got);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(got)) << f.name << " " << bits;
        const int quiet = 1 << (f.fraction - 1);
        ASSERT_EQ(back, bits | quiet) << f.name << ": sign and payload of a NaN";
      } else {
        ASSERT_EQ(double(got), wanted) << f.name << " " << bits;
        ASSERT_EQ(back, bits) << f.name;
      }
    }
}

TEST(HalfTypes, RoundToNearestTiesToEven) {
  for (const Format& f : kFormats) {
    const uint16_t infinity = uint16_t((2 * f.bias + 1) << f.fraction);
    for (uint16_t low = 0; low < infinity; ++low)
      for (const uint16_t sign : {0, 0x8000}) {
        // Beyond the greatest number as if the exponent went on: IEEE 754-2019, 4.3.1.
        const double a = meaning(low, f.fraction, f.bias);
        const double gap = low + 1 == infinity ? a - meaning(uint16_t(low - 1), f.fraction, f.bias)
                                               : meaning(uint16_t(low + 1), f.fraction, f.bias) - a;
        const float tie = float((sign ? -1 : 1) * (a + gap / 2));
        const float toward_zero = std::nextafter(tie, 0.0f);
        const float away = std::nextafter(tie, sign ? -INFINITY : INFINITY);
        const uint16_t even = uint16_t(low + (low & 1));
        ASSERT_EQ(f.encode(tie), sign | even) << f.name << " " << low;
        ASSERT_EQ(f.encode(toward_zero), sign | low) << f.name << " " << low;
        ASSERT_EQ(f.encode(away), sign | uint16_t(low + 1)) << f.name << " " << low;
      }
  }
}

/// f64 reaches f16 and bf16 by way of f32, as in PyTorch: next to a tie of the narrow format that is two
/// roundings, and every path rounds so.
TEST(HalfTypes, F64GoesThroughF32) {
  const double just_above_tie[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40};
  for (int k = 0; k < 2; ++k) {
    const DType narrow = k ? DType::BF16 : DType::F16;
    for (const int64_t n : {1, 3, 40}) {  // short runs, vectors
      const Tensor x = full({n}, just_above_tie[k], DType::F64);
      EXPECT_EQ(to(x, narrow).to_vector(), std::vector<double>(size_t(n), 1)) << narrow;
      const Tensor elsewhere = to(to_device(x, "reference"), narrow);
      EXPECT_EQ(to_device(elsewhere, "cpu").to_vector(), std::vector<double>(size_t(n), 1)) << narrow;
      EXPECT_EQ(full({n}, just_above_tie[k], narrow).to_vector(), std::vector<double>(size_t(n), 1));
    }
    EXPECT_EQ(tensor_of({1}, {just_above_tie[k]}, narrow).item<double>(), 1);
  }
}
}  // namespace
