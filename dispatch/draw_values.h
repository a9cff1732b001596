// The numbers that drawn tensors are made of: classes of values, and the ends of each dtype's range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lamella/core/tensor.h"
#include "lamella/dispatch/draw.h"

namespace lamella::drawn {

inline uint64_t hash(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + i * 0xD1B54A32D192ED03u + 0x8CB92BA72F3D8DD7u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
/// In [0, 1), with all 53 bits.
inline double uniform(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }
/// Bell-shaped, variance 1, always within 3.5.
inline double bell(uint64_t bits) {
  return (uniform(bits) + uniform(hash(bits, 1)) + uniform(hash(bits, 2)) + uniform(hash(bits, 3)) - 2) *
         1.7320508075688772;
}

enum class Kind : uint8_t {
  Iota,
  Bell,
  Small,
  Special,
  Powers,
  Wide,
  NearOne,
  Equal,
  Sorted,
  OneHot,
  Tiny,
  Extreme
};
inline constexpr Kind kMixture[] = {Kind::Iota,    Kind::Bell,    Kind::Bell,    Kind::Bell,   Kind::Bell,
                                    Kind::Bell,    Kind::Bell,    Kind::Bell,    Kind::Bell,   Kind::Small,
                                    Kind::Small,   Kind::Special, Kind::Special, Kind::Powers, Kind::Wide,
                                    Kind::NearOne, Kind::Equal,   Kind::Sorted,  Kind::OneHot, Kind::Tiny};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Beside the dtype's largest number, for which 1e300 stands.
inline constexpr double kExtremes[] = {
    kInfinity, std::numeric_limits<double>::quiet_NaN(), -kInfinity, 1e300, 0, 1,
    -1e300,    std::numeric_limits<double>::quiet_NaN()};

inline constexpr double kSpecials[] = {0, 1, -1, 0.5, -0.5, 2, -2, -0.0};

/// Exponents that keep products of a few elements within the dtype.
inline int largest_exponent(DType d) {
  switch (to_real(d)) {
    case DType::F64: return 60;
    case DType::F16: return 4;
    default: return 20;
  }
}

inline double extreme_value(uint64_t bits, DType d) {
  const double v = kExtremes[bits % 8];
  if (std::fabs(v) != 1e300) return v;
  const DType real = to_real(d);
  const double largest = real == DType::F16    ? 65504
                         : real == DType::BF16 ? 0x1.fep127
                         : real == DType::F32  ? double(std::numeric_limits<float>::max())
                                               : std::numeric_limits<double>::max();
  return std::copysign(largest, v);
}

/// `v` rounded to a floating dtype.
inline double rounded(double v, DType d) {
  switch (to_real(d)) {
    case DType::F16: return double(float(f16(float(v))));
    case DType::BF16: return double(float(bf16(float(v))));
    case DType::F32: return double(float(v));
    default: return v;
  }
}

/// One real number of a class; `i` of `n`.
inline double real_value(Kind kind, uint64_t seed, int64_t i, int64_t n, DType dtype, int e, int tiny,
                         bool tame) {
  const uint64_t bits = hash(seed, uint64_t(i));
  switch (kind) {
    case Kind::Iota: return double(i % 5 + 1) / (tame ? 4 : 1);
    case Kind::Bell: return bell(bits);
    case Kind::Small: return double(int64_t(bits % 7) - 3);
    case Kind::Special: return kSpecials[bits % 8];
    case Kind::Powers: return std::ldexp(bits & 1 ? 1.0 : -1.0, int((bits >> 8) % uint64_t(2 * e + 1)) - e);
    case Kind::Wide: return std::ldexp(2 * uniform(bits) - 1, int(hash(bits, 5) % uint64_t(2 * e + 1)) - e);
    case Kind::NearOne: return (bits & 1 ? 1.0 : -1.0) * (1 - std::ldexp(1.0, -int(1 + (bits >> 8) % 40)));
    case Kind::Equal: return bell(hash(seed, 77));
    case Kind::Sorted:
      return (double(i) - double(n) / 2 + uniform(bits) / 2) / double(std::max<int64_t>(n, 4)) * 4 *
             (seed & 1 ? -1 : 1);
    case Kind::OneHot: return i == int64_t(seed % uint64_t(std::max<int64_t>(n, 1))) ? 1 : 0;
    case Kind::Extreme: return extreme_value(bits, dtype);
    default: return std::ldexp(bell(bits), tiny);
  }
}

inline double into_domain(double v, Domain domain) {
  if (domain == Domain::Positive) return std::max(std::fabs(v), 0.125);
  if (domain == Domain::NonZero && std::fabs(v) < 0.125) return std::signbit(v) ? v - 0.125 : v + 0.125;
  return v;
}

/// Whole numbers: small ones mostly, the dtype's whole range in two classes.
inline int64_t integer_value(Kind kind, uint64_t seed, int64_t i, int64_t n, DType dtype, Domain domain,
                             bool narrow) {
  const uint64_t bits = hash(seed, uint64_t(i));
  int64_t v;
  if (!narrow && (kind == Kind::Wide || kind == Kind::Powers)) {
    v = kind == Kind::Wide ? int64_t(bits) : int64_t((uint64_t{1} << bits % 64) - (bits >> 8 & 1));
    const int unused = 64 - 8 * int(itemsize(dtype));
    v = is_signed_integer(dtype) ? v << unused >> unused : int64_t(uint64_t(v) << unused >> unused);
    if (domain == Domain::Positive) v = v < 0 ? v & 0x7f : v;
  } else {
    switch (kind) {
      case Kind::Iota: v = i % 5 + 1; break;
      case Kind::Equal: v = int64_t(seed % 5); break;
      case Kind::Sorted: v = seed & 1 ? n - i : i; break;
      case Kind::OneHot: v = i == int64_t(seed % uint64_t(std::max<int64_t>(n, 1))); break;
      default: v = int64_t(bits % 9) - (is_signed_integer(dtype) ? 4 : 0);
    }
    // Of many elements the later ones are larger than narrow dtypes: 256 would be stored as 0.
    const int64_t most = itemsize(dtype) == 1 ? 127 : std::numeric_limits<int64_t>::max();
    if (v > most || v < -most) v %= most;
    if (domain == Domain::Positive) v = std::abs(v);
  }
  return v == 0 && (domain == Domain::Positive || domain == Domain::NonZero) ? 1 : v;
}

inline void store(Tensor& t, int64_t i, double re, double im) {
  void* const p = t.raw_data();
  switch (t.dtype()) {
    case DType::F16: static_cast<f16*>(p)[i] = f16(float(re)); return;
    case DType::BF16: static_cast<bf16*>(p)[i] = bf16(float(re)); return;
    case DType::F32: static_cast<float*>(p)[i] = float(re); return;
    case DType::F64: static_cast<double*>(p)[i] = re; return;
    case DType::C64: static_cast<c64*>(p)[i] = c64(float(re), float(im)); return;
    case DType::C128: static_cast<c128*>(p)[i] = c128(re, im); return;
    default: LAMELLA_ASSERT(false);
  }
}

inline void store_integer(Tensor& t, int64_t i, int64_t v) {
  char* const p = static_cast<char*>(t.raw_data()) + i * itemsize(t.dtype());
  if (is_bool(t.dtype())) *p = v & 1;
  else std::memcpy(p, &v, size_t(itemsize(t.dtype())));  // little-endian: the low bytes
}

/// The bits of a number at the ends of a floating dtype, `h` says which: zeros and infinities of both signs,
/// NaN of any bits (all set, signalling, negative), the largest and smallest numbers and what lies beside
/// them, subnormal ones, those whose squares just overflow or vanish, and any other pattern of bits.
uint64_t end_bits(DType real, uint64_t h);
/// The smallest and the largest integer of a dtype, what lies beside them, and powers of two in the middle.
int64_t end_integer(DType dtype, uint64_t h);
/// An integer that narrow integer dtypes cannot hold, and one that halves or f32 cannot.
int64_t wide_integer(uint32_t w);
double wide_number(uint32_t w);
/// An attribute at an end: those of i64, about `size` and -size, or 0.
int64_t end_attribute(uint32_t w, int64_t size);

/// Part `part` of element i, by its bits.
inline void store_bits(Tensor& t, int64_t i, int part, uint64_t bits) {
  const int64_t bytes = itemsize(to_real(t.dtype()));
  std::memcpy(static_cast<char*>(t.raw_data()) + i * itemsize(t.dtype()) + part * bytes, &bits,
              size_t(bytes));  // little-endian: the low bytes
}

}  // namespace lamella::drawn
