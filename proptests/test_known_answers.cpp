// Known answers: Philox's published vectors; f16 and bf16 against their definitions, every pattern of bits.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/core/rng.h"
#include "lamella/core/visit.h"
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

/// Packed lines are converted by the processor where it can, others by f16::decode: bit by bit the same.
TEST(HalfTypes, PackedAndSteppedAreReadAlike) {
  Tensor all = empty({0x10000, 2}, DType::F16);
  for (uint32_t k = 0; k < 0x20000; ++k) all.data<f16>()[k].bits = uint16_t(k / 2);
  const Tensor stepped = to(select(all, 1, 0), DType::F32);
  const Tensor packed = to(contiguous(select(all, 1, 0)), DType::F32);
  for (uint32_t k = 0; k < 0x10000; ++k) {
    const uint32_t want = std::bit_cast<uint32_t>(f16::decode(uint16_t(k)));
    ASSERT_EQ(std::bit_cast<uint32_t>(packed.data<float>()[k]), want) << k;
    ASSERT_EQ(std::bit_cast<uint32_t>(stepped.data<float>()[k]), want) << k;
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

/// The half nearest to x, of two the even one, by searching the numbers that IEEE 754 defines.
double nearest_half(const Format& f, f128 x) {
  const uint16_t infinity = uint16_t((2 * f.bias + 1) << f.fraction);
  uint16_t low = 0, high = infinity;  // |x| in between; the number above the greatest counts as one
  const f128 magnitude = x < 0 ? -x : x;
  const auto value = [&](uint16_t bits) {
    return bits < infinity ? f128(meaning(bits, f.fraction, f.bias))
                           : 2 * f128(meaning(uint16_t(infinity - 1), f.fraction, f.bias)) -
                                 f128(meaning(uint16_t(infinity - 2), f.fraction, f.bias));
  };
  if (magnitude >= value(infinity)) return x < 0 ? -INFINITY : INFINITY;
  while (high - low > 1)
    (value(uint16_t((low + high) / 2)) <= magnitude ? low : high) = uint16_t((low + high) / 2);
  const f128 below = magnitude - value(low), above = value(high) - magnitude;
  const uint16_t chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return (x < 0 ? -1 : 1) * meaning(chosen, f.fraction, f.bias);
}

/// Next to each tie of the narrow format, at every distance that the wide one has: by way of f32 the nearer
/// ones would become the tie first.
TEST(HalfTypes, EveryNumberIsRoundedOnce) {
  for (const Format& f : kFormats) {
    const bool short_range = f.bias == 15;
    const auto once = [&](auto x, const char* from) {
      const double want = nearest_half(f, f128(x)), got = short_range ? float(f16(x)) : float(bf16(x));
      ASSERT_EQ(got, want) << f.name << " of " << from << " " << double(x);
    };
    for (int bits = 0; bits < (2 * f.bias + 1) << f.fraction; bits += bits < 64 ? 1 : 37) {
      const double a = meaning(uint16_t(bits), f.fraction, f.bias);
      const double unit = std::ldexp(1.0, std::max(std::ilogb(a), 1 - f.bias) - f.fraction);
      for (const double sign : {1.0, -1.0})
        for (int distance = 8; distance <= 60; ++distance)
          for (const double side : {-1.0, 0.0, 1.0}) {
            const double tie = a + unit / 2;
            once(sign * (tie + side * std::ldexp(unit, -distance)), "f64");
            once(f128(sign) * (f128(tie) + f128(side) * f128(unit) * f128(0x1p-60) * f128(0x1p-20)), "f128");
          }
    }
    for (int shift = 9; shift < 63; ++shift)
      for (const int64_t side : {-1, 0, 1})
        for (const int64_t odd : {257, 259, 2049, 2051}) {
          const int64_t tie = shift < 51 ? odd << shift : (odd % 512) << (shift - 9);
          once(tie + side, "i64"), once(-(tie + side), "i64"), once(uint64_t(tie + side), "u64");
          if (tie < INT32_MAX) once(int32_t(tie + side), "i32"), once(uint32_t(tie + side), "u32");
        }
    once(~uint64_t{0}, "u64"), once(INT64_MIN, "i64"), once(true, "bool"), once(uint8_t(255), "u8");
    once(1e300, "f64"), once(-1e300, "f64"), once(1e-300, "f64"), once(-1e-300, "f64");
  }
  EXPECT_TRUE(std::signbit(float(f16(-1e-300))) && std::isnan(float(f16(std::nan("")))));
}

/// On every path, of both columns.
TEST(HalfTypes, EveryPathRoundsOnce) {
  const double just_above_tie[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40};
  for (int k = 0; k < 2; ++k) {
    const DType narrow = k ? DType::BF16 : DType::F16;
    const double above = just_above_tie[k], want = k ? 1 + 0x1p-7 : 1 + 0x1p-10;
    for (const int64_t n : {1, 3, 40}) {  // short runs, vectors
      const std::vector<double> wanted(size_t(n), want);
      for (const Device device : {Device::CPU, Device::Reference}) {
        const auto values = [](const Tensor& t) { return to_device(t, Device::CPU).to_vector(); };
        const Tensor x = to_device(full({n}, above, DType::F64), device), one = ones_like(x, narrow);
        EXPECT_EQ(values(to(x, narrow)), wanted) << narrow << " on " << name(device);
        EXPECT_EQ(values(copy(one, x)), wanted) << narrow << " on " << name(device);
        EXPECT_EQ(values(full_like(one, above)), wanted) << narrow << " on " << name(device);
      }
      const Tensor x = full({n}, above, DType::F64), y = full({1, n}, above, DType::F64);
      EXPECT_EQ(sum(y, {0}, false, narrow).to_vector(), wanted);
      EXPECT_EQ(cumsum(y, 0, narrow).to_vector(), wanted);
      Tensor written = ones({n}, narrow);
      copy_(written, x);
      EXPECT_EQ(written.to_vector(), wanted);
      fill_(written, above);
      EXPECT_EQ(written.to_vector(), wanted);
    }
    EXPECT_EQ(tensor_of({1}, {above}, narrow).item<double>(), want);
    EXPECT_EQ(double(k ? float(tensor_of({1}, {above}, DType::F64).item<bf16>())
                       : float(tensor_of({1}, {above}, DType::F64).item<f16>())),
              want);
  }
}
}  // namespace
