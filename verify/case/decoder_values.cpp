// Numbers at the ends of each dtype's range.
#include "lamella/verify/case/decoder_values.h"

namespace lamella::drawn {

namespace {
struct Bits {
  int fraction, exponent;
};
Bits bits_of(DType real) {
  switch (real) {
    case DType::F16: return {10, 5};
    case DType::BF16: return {7, 8};
    case DType::F32: return {23, 8};
    default: return {52, 11};
  }
}

/// What other dtypes just hold and just do not: f16, f32, i32, i64 and u64.
constexpr double kLimits[] = {65504,   65519,      65519.996,  65520,   0x1.fffffep127, 0x1.ffffffp127,
                              0x1p31,  0x1p32 - 1, 0x1p53 + 2, 0x1p63,  0x1p64,         0x1p-24,
                              0x1p-25, 0x1.8p-25,  0x1p-149,   0x1p-150};

uint64_t limit_bits(DType real, uint64_t h) {
  uint64_t bits[2] = {};  // little-endian: the low bytes; as long as the largest element
  store(Elements(bits, 1, real), 0, h & 16 ? -kLimits[h % 16] : kLimits[h % 16], 0);
  return bits[0];
}
}  // namespace

uint64_t end_bits(DType real, uint64_t h) {
  const auto widths = bits_of(real);
  const auto fraction = widths.fraction, exponent = widths.exponent;  // no bindings: lambdas use them
  const uint64_t ones = (uint64_t{1} << fraction) - 1, top = (uint64_t{1} << exponent) - 1,
                 quiet = ones / 2 + 1;
  const uint64_t sign = (h >> 8 & 1) << (fraction + exponent), r = hash(h, 3), few = h >> 10 & 3;
  const auto make = [&](uint64_t e, uint64_t f) { return sign | e << fraction | (f & ones); };
  const uint64_t bias = top / 2;
  switch (h % 16) {
    case 0: return make(0, 0);
    case 1: return make(top, ones) | uint64_t{1} << (fraction + exponent);  // all bits
    case 2: return make(top, r % quiet | 1);                                // signals
    case 3: return make(top, r | quiet);
    case 4: return make(top, 0);
    case 5: return make(top - 1, ones - few);
    case 6: return make(top - 1, r);
    case 7: return make(0, 1 + few);
    case 8: return make(0, r);
    case 9: return make(1, few);
    case 10: return make(bias + bias / 2 - 1 + few, r);  // squares about the largest number
    case 11: return make(bias - bias / 2 - 1 + few, r);  // and about the smallest
    case 12: return make(bias, few);
    case 13: return limit_bits(real, r);
    default: return make(r >> 40 & top, r);
  }
}

uint64_t special_bits(DType real, uint64_t h) {
  const auto widths = bits_of(real);
  const uint64_t top = (uint64_t{1} << widths.exponent) - 1, sign = h >> 8 & 1;
  const uint64_t quiet = uint64_t{1} << (widths.fraction - 1);
  const uint64_t plus = h % 5 < 2 ? 0 : h % 5 < 4 ? top << widths.fraction : top << widths.fraction | quiet;
  return plus | sign << (widths.fraction + widths.exponent);
}

uint64_t far_bits(DType real, bool large, uint64_t h) {
  const auto widths = bits_of(real);
  const uint64_t top = (uint64_t{1} << widths.exponent) - 1, few = h >> 8 & 7, r = hash(h, 5);
  const uint64_t fraction = r & ((uint64_t{1} << widths.fraction) - 1);
  return (large ? top - 1 - few : 1 + few) << widths.fraction | fraction |
         (h & 1) << (widths.fraction + widths.exponent);
}

int64_t end_integer(DType dtype, uint64_t h) {
  const int bits = 8 * int(itemsize(dtype));
  const uint64_t highest = ~uint64_t{0} >> (64 - bits + is_signed_integer(dtype));
  const uint64_t lowest = is_signed_integer(dtype) ? ~highest : 0, few = h >> 8 & 3;
  switch (h % 6) {
    case 0: return int64_t(lowest);
    case 1: return int64_t(highest);
    case 2: return int64_t(lowest + few);
    case 3: return int64_t(highest - few);
    case 4: return int64_t(few) - (is_signed_integer(dtype) ? 2 : 0);
    default: return int64_t((uint64_t{1} << bits / 2) + few - 2);
  }
}

int64_t wide_integer(uint32_t w) {
  static constexpr int64_t kWide[] = {128,
                                      255,
                                      256,
                                      300,
                                      -129,
                                      32768,
                                      65535,
                                      65536,
                                      (int64_t{1} << 31) + 1,
                                      (int64_t{1} << 32) + 5,
                                      (int64_t{1} << 53) + 1,
                                      INT64_MAX,
                                      INT64_MIN};
  return kWide[w % std::size(kWide)];
}

double wide_number(uint32_t w) {
  static constexpr double kWide[] = {
      65519, 65520, -1e5, 0x1.ffffffp127,       1e39, 1e300, -1e300, 1e-8, 0x1p-25, 1e-46,
      0.1,   0,     -0.0, 1 + 0x1p-11 + 0x1p-40};
  return kWide[w % std::size(kWide)];
}

int64_t end_attribute(uint32_t w, int64_t size) {
  switch (w % 10) {
    case 0: return INT64_MAX;
    case 1: return INT64_MIN;
    case 2: return INT64_MAX - int64_t(w / 10 % 3);
    case 3: return INT64_MIN + int64_t(w / 10 % 3);
    case 4: return size;
    case 5: return -size;
    case 6: return size + (w / 10 % 2 ? 1 : -1);
    case 7: return -size + (w / 10 % 2 ? 1 : -1);
    case 8: return w / 10 % 2 ? int64_t{1} << 32 : -(int64_t{1} << 31);
    default: return 0;
  }
}

}  // namespace lamella::drawn
