// The numbers that drawn tensors are made of: classes of values, and the ends of each dtype's range.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lamella/core/tensor.h"
#include "lamella/verify/case/decoder.h"

LAMELLA_API_BEGIN
namespace lamella::drawn {

/// Inlined: a tensor asks for dozens in a row, which then share the seed's product.
[[gnu::always_inline]] inline uint64_t hash(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + i * 0xD1B54A32D192ED03u + 0x8CB92BA72F3D8DD7u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
/// In [0, 1), with all 53 bits.
inline double uniform(uint64_t bits) { return double(int64_t(bits >> 11)) * 0x1p-53; }
/// 2^e; REQUIRES: it is a normal number. (std::ldexp is a call of the library's.)
inline double power_of_two(int e) { return std::bit_cast<double>(uint64_t(1023 + e) << 52); }
/// Bell-shaped, variance 1, always within 3.5: the sum of four uniform numbers, less 2, in units of 2^-53. It
/// rounds as the sum of the numbers themselves does.
inline double bell(uint64_t bits) {
  const auto units = [](uint64_t h) { return int64_t(h >> 11); };
  const double two = double(units(bits) + units(hash(bits, 1)));
  return (two + double(units(hash(bits, 2))) + double(units(hash(bits, 3))) - 0x1p54) *
         (1.7320508075688772 * 0x1p-53);
}

enum class Kind : uint8_t {
  Iota,
  Bell,
  Small,
  Special,
  Powers,
  Wide,
  NearOne,
  Offset,
  Equal,
  Sorted,
  OneHot,
  Tiny,
  Extreme
};
inline constexpr Kind kMixture[] = {
    Kind::Iota, Kind::Bell,    Kind::Bell,  Kind::Bell,   Kind::Bell,    Kind::Bell,    Kind::Bell,
    Kind::Bell, Kind::Bell,    Kind::Small, Kind::Small,  Kind::Special, Kind::Special, Kind::Powers,
    Kind::Wide, Kind::NearOne, Kind::Equal, Kind::Sorted, Kind::OneHot,  Kind::Tiny,    Kind::Offset};

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

/// Real numbers of a class, `count` from the one at `begin` of `n`.
inline void real_values(double* out, int64_t begin, int64_t count, Kind kind, uint64_t seed, int64_t n,
                        DType dtype, int e, int tiny, bool tame) {
  const auto each = [=](auto&& value) {
    for (int64_t i = begin; i < begin + count; ++i) out[i - begin] = value(i, hash(seed, uint64_t(i)));
  };
  switch (kind) {
    case Kind::Iota: return each([=](int64_t i, uint64_t) { return double(i % 5 + 1) / (tame ? 4 : 1); });
    case Kind::Bell: return each([](int64_t, uint64_t bits) { return bell(bits); });
    case Kind::Small: return each([](int64_t, uint64_t bits) { return double(int64_t(bits % 7) - 3); });
    case Kind::Special: return each([](int64_t, uint64_t bits) { return kSpecials[bits % 8]; });
    case Kind::Powers:
      return each([=](int64_t, uint64_t bits) {
        return (bits & 1 ? 1.0 : -1.0) * power_of_two(int((bits >> 8) % uint64_t(2 * e + 1)) - e);
      });
    case Kind::Wide:
      return each([=](int64_t, uint64_t bits) {
        return (2 * uniform(bits) - 1) * power_of_two(int(hash(bits, 5) % uint64_t(2 * e + 1)) - e);
      });
    case Kind::NearOne:
      return each([](int64_t, uint64_t bits) {
        return (bits & 1 ? 1.0 : -1.0) * (1 - power_of_two(-int(1 + (bits >> 8) % 40)));
      });
    case Kind::Offset: {  // much, and little around it: what is left when the one cancels is the other
      const int most = tame ? 3 : std::min(e, 10);
      const double at = (seed & 1 ? 1 : -1) * power_of_two(int((seed >> 8) % uint64_t(most + 1)));
      const double around = std::fabs(at) * power_of_two(-int((seed >> 16) % 8));
      return each([=](int64_t, uint64_t bits) { return at + around * bell(bits); });
    }
    case Kind::Equal: return std::fill_n(out, count, bell(hash(seed, 77))), void();
    case Kind::Sorted:
      return each([=](int64_t i, uint64_t bits) {
        return (double(i) - double(n) / 2 + uniform(bits) / 2) / double(std::max<int64_t>(n, 4)) * 4 *
               (seed & 1 ? -1 : 1);
      });
    case Kind::OneHot: {
      const auto hot = int64_t(seed % uint64_t(std::max<int64_t>(n, 1)));
      return each([=](int64_t i, uint64_t) { return i == hot ? 1.0 : 0.0; });
    }
    case Kind::Extreme: return each([=](int64_t, uint64_t bits) { return extreme_value(bits, dtype); });
    default: {
      const double scale = power_of_two(tiny);  // no product of it is rounded: 2^-180 at the least
      return each([=](int64_t, uint64_t bits) { return bell(bits) * scale; });
    }
  }
}

inline double into_domain(double v, Domain domain) {
  if (domain == Domain::Positive) return std::max(std::fabs(v), 0.125);
  if (domain == Domain::NonZero && std::fabs(v) < 0.125) return std::signbit(v) ? v - 0.125 : v + 0.125;
  return v;
}

/// Whole numbers: small ones mostly, the dtype's whole range in two classes. `count` from the one at `begin`
/// of `n`.
inline void integer_values(int64_t* out, int64_t begin, int64_t count, Kind kind, uint64_t seed, int64_t n,
                           DType dtype, Domain domain, bool narrow) {
  const auto each = [=](auto&& value) {
    for (int64_t i = begin; i < begin + count; ++i) out[i - begin] = value(i, hash(seed, uint64_t(i)));
  };
  if (!narrow && (kind == Kind::Wide || kind == Kind::Powers)) {
    const int unused = 64 - 8 * int(itemsize(dtype));
    const bool is_signed = is_signed_integer(dtype);
    each([=](int64_t, uint64_t bits) {
      int64_t v = kind == Kind::Wide ? int64_t(bits) : int64_t((uint64_t{1} << bits % 64) - (bits >> 8 & 1));
      v = is_signed ? v << unused >> unused : int64_t(uint64_t(v) << unused >> unused);
      return domain == Domain::Positive && v < 0 ? v & 0x7f : v;
    });
  } else {
    const int64_t least = is_signed_integer(dtype) ? 4 : 0;
    const auto hot = int64_t(seed % uint64_t(std::max<int64_t>(n, 1)));
    switch (kind) {
      case Kind::Iota: each([](int64_t i, uint64_t) { return i % 5 + 1; }); break;
      case Kind::Equal: std::fill_n(out, count, int64_t(seed % 5)); break;
      case Kind::Sorted: each([=](int64_t i, uint64_t) { return seed & 1 ? n - i : i; }); break;
      case Kind::OneHot: each([=](int64_t i, uint64_t) { return int64_t(i == hot); }); break;
      default: each([=](int64_t, uint64_t bits) { return int64_t(bits % 9) - least; });
    }
    // Of many elements the later ones are larger than narrow dtypes: 256 would be stored as 0.
    const int64_t most = itemsize(dtype) == 1 ? 127 : std::numeric_limits<int64_t>::max();
    for (int64_t i = 0; i < count; ++i) {
      if (out[i] > most || out[i] < -most) out[i] %= most;
      if (domain == Domain::Positive) out[i] = std::abs(out[i]);
    }
  }
  for (int64_t i = 0; i < count && (domain == Domain::Positive || domain == Domain::NonZero); ++i)
    if (out[i] == 0) out[i] = 1;
}

/// Elements in a row: of a tensor, or of one whose layout nobody has drawn yet.
struct Elements {
  void* at;
  int64_t count;
  DType type;
  Elements(void* p, int64_t n, DType d) : at(p), count(n), type(d) {}
  Elements(const Tensor& t) : Elements(t.raw_data(), t.numel(), t.dtype()) {}
};

inline void store(const Elements& t, int64_t i, double re, double im) {
  void* const p = t.at;
  switch (t.type) {
    case DType::F16: static_cast<f16*>(p)[i] = f16(float(re)); return;
    case DType::BF16: static_cast<bf16*>(p)[i] = bf16(float(re)); return;
    case DType::F32: static_cast<float*>(p)[i] = float(re); return;
    case DType::F64: static_cast<double*>(p)[i] = re; return;
    case DType::C64: static_cast<c64*>(p)[i] = c64(float(re), float(im)); return;
    case DType::C128: static_cast<c128*>(p)[i] = c128(re, im); return;
    default: LAMELLA_ASSERT(false);
  }
}

/// `count` numbers from the one at `begin`; imaginary parts are read where the dtype has them.
inline void store_all(const Elements& t, int64_t begin, int64_t count, const double* re, const double* im) {
  const auto put = [&]<class T>(std::type_identity<T>, auto&& number) {
    T* const to = static_cast<T*>(t.at) + begin;
    for (int64_t i = 0; i < count; ++i) to[i] = number(i);
  };
  switch (t.type) {
    case DType::F16: return put(std::type_identity<f16>{}, [=](int64_t i) { return f16(float(re[i])); });
    case DType::BF16: return put(std::type_identity<bf16>{}, [=](int64_t i) { return bf16(float(re[i])); });
    case DType::F32: return put(std::type_identity<float>{}, [=](int64_t i) { return float(re[i]); });
    case DType::F64: return put(std::type_identity<double>{}, [=](int64_t i) { return re[i]; });
    case DType::C64:
      return put(std::type_identity<c64>{}, [=](int64_t i) { return c64(float(re[i]), float(im[i])); });
    case DType::C128: return put(std::type_identity<c128>{}, [=](int64_t i) { return c128(re[i], im[i]); });
    default: LAMELLA_ASSERT(false);
  }
}

inline void store_integer(const Elements& t, int64_t i, int64_t v) {
  char* const p = static_cast<char*>(t.at) + i * itemsize(t.type);
  if (is_bool(t.type)) *p = v & 1;
  else std::memcpy(p, &v, size_t(itemsize(t.type)));  // little-endian: the low bytes
}

/// `count` numbers from the one at `begin`.
inline void store_integers(const Elements& t, int64_t begin, int64_t count, const int64_t* v) {
  const auto put = [&]<class T>(std::type_identity<T>) {
    char* p = static_cast<char*>(t.at) + begin * int64_t(sizeof(T));
    for (int64_t i = 0; i < count; ++i, p += sizeof(T)) {
      const T word = T(v[i]);
      std::memcpy(p, &word, sizeof word);
    }
  };
  if (is_bool(t.type))
    for (int64_t i = 0; i < count; ++i) static_cast<char*>(t.at)[begin + i] = v[i] & 1;
  else if (itemsize(t.type) == 1) put(std::type_identity<uint8_t>{});
  else if (itemsize(t.type) == 2) put(std::type_identity<uint16_t>{});
  else if (itemsize(t.type) == 4) put(std::type_identity<uint32_t>{});
  else put(std::type_identity<uint64_t>{});
}

/// The bits of a number at the ends of a floating dtype, `h` says which: zeros and infinities of both signs,
/// NaN of any bits (all set, signalling, negative), the largest and smallest numbers and what lies beside
/// them, subnormal ones, those whose squares just overflow or vanish, and any other pattern of bits.
uint64_t end_bits(DType real, uint64_t h);
/// NaN, an infinity or a zero.
uint64_t special_bits(DType real, uint64_t h);
/// A number within 2^7 of the largest one, or of the smallest normal one.
uint64_t far_bits(DType real, bool large, uint64_t h);
/// The smallest and the largest integer of a dtype, what lies beside them, and powers of two in the middle.
int64_t end_integer(DType dtype, uint64_t h);
/// An integer that narrow integer dtypes cannot hold, and one that halves or f32 cannot.
int64_t wide_integer(uint32_t w);
double wide_number(uint32_t w);
/// An attribute at an end: those of i64, about `size` and -size, or 0.
int64_t end_attribute(uint32_t w, int64_t size);

/// Part `part` of element i, by its bits.
inline void store_bits(const Elements& t, int64_t i, int part, uint64_t bits) {
  const int64_t bytes = itemsize(to_real(t.type));
  std::memcpy(static_cast<char*>(t.at) + i * itemsize(t.type) + part * bytes, &bits,
              size_t(bytes));  // little-endian: the low bytes
}

}  // namespace lamella::drawn
LAMELLA_API_END
