// Promotion and names of dtypes.
#include "lamella/core/dtype.h"

#include <array>
#include <charconv>
#include <cmath>

#include "lamella/core/check.h"
#include "lamella/core/scalar.h"
#include "lamella/core/visit.h"

namespace lamella {

namespace {
constexpr std::string_view kNames[] = {"bool", "u8",   "u16", "u32", "u64", "i8",   "i16",  "i32", "i64",
                                       "f16",  "bf16", "f32", "f64", "c64", "c128", "f128", "c256"};
constexpr std::string_view kLongNames[] = {
    "bool",    "uint8",    "uint16",  "uint32",  "uint64",    "int8",       "int16",    "int32",     "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float128", "complex256"};

constexpr DType promote_integers(DType a, DType b) {
  if (is_signed_integer(a) == is_signed_integer(b)) return itemsize(a) >= itemsize(b) ? a : b;
  const DType s = is_signed_integer(a) ? a : b;
  const DType u = is_signed_integer(a) ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  switch (itemsize(u)) {  // the narrowest signed type that holds both; i64 at the top, where none does
    case 1: return DType::I16;
    case 2: return DType::I32;
    default: return DType::I64;
  }
}

constexpr DType promote_floating(DType a, DType b) {
  if (a == DType::F128 || b == DType::F128) return DType::F128;
  if (a == DType::F64 || b == DType::F64) return DType::F64;
  return a == b ? a : DType::F32;  // f16 with bf16 meets at f32
}

constexpr DType widest_complex(DType real) {
  return real == DType::F128 ? DType::C256 : real == DType::F64 ? DType::C128 : DType::C64;
}
constexpr DType real_of(DType d) {
  switch (d) {
    case DType::C64: return DType::F32;
    case DType::C128: return DType::F64;
    case DType::C256: return DType::F128;
    default: return d;
  }
}
constexpr int category_of(DType d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3; }

constexpr DType promoted(DType a, DType b) {
  if (a == b) return a;
  const int ca = category_of(a), cb = category_of(b);
  const DType high = ca >= cb ? a : b;
  const DType low = ca >= cb ? b : a;
  if (category_of(high) <= 1) return ca == cb ? promote_integers(a, b) : high;
  if (category_of(high) == 2) return ca == cb ? promote_floating(a, b) : high;
  if (category_of(low) <= 1) return high;
  return widest_complex(promote_floating(real_of(high), real_of(low)));
}

/// Promotion of all pairs: asked for by every call of two dtypes.
constexpr auto kPromoted = [] {
  std::array<std::array<DType, kDTypeCount>, kDTypeCount> all{};
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b) all[size_t(a)][size_t(b)] = promoted(DType(a), DType(b));
  return all;
}();
}  // namespace

DType to_real(DType d) { return real_of(d); }

DType to_complex(DType d) { return is_complex(d) ? d : widest_complex(d); }

int category(DType d) { return category_of(d); }

DType promote(DType a, DType b) {
  check_dtype("promote", a, "a"), check_dtype("promote", b, "b");
  return kPromoted[size_t(a)][size_t(b)];
}

bool can_store(DType from, DType to) { return category(from) <= category(to); }

std::string_view name(DType d) { return is_valid(d) ? kNames[int(d)] : "no dtype"; }

void detail::refuse_dtype(std::string_view who, DType d, std::string_view argument) {
  fail(ErrorCode::DType,
       "{}: {} = DType({}); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or c128", who,
       Argument{std::string(argument)}, int(d));
}

bool parse_dtype(std::string_view text, DType& out) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (text == kNames[i] || text == kLongNames[i]) {
      out = DType(i);
      return true;
    }
  return false;
}

namespace {
template <class T> constexpr double kLargest = double(std::numeric_limits<T>::max());
template <> constexpr double kLargest<f16> = 65504;
template <> constexpr double kLargest<bf16> = 0x1.fep127;
template <> constexpr double kLargest<f128> = std::numeric_limits<double>::infinity();

/// 2^63 and 2^64 are doubles, the largest numbers of i64 and u64 are not.
template <class T> bool holds(double v) {
  if constexpr (std::is_same_v<T, bool>) return true;
  else if constexpr (!std::is_integral_v<T>) return !(std::abs(v) > kLargest<T>) || std::isinf(v);
  else if constexpr (std::is_signed_v<T>)
    return v >= double(std::numeric_limits<T>::min()) && (sizeof(T) < 8 ? v <= kLargest<T> : v < kLargest<T>);
  else return v > -1 && (sizeof(T) < 8 ? v <= kLargest<T> : v < kLargest<T>);
}
template <class T> bool holds(__int128 v) {
  if constexpr (std::is_same_v<T, bool>) return true;
  else if constexpr (!std::is_integral_v<T>) return holds<T>(double(v));
  else {
    const __int128 max = std::numeric_limits<T>::max();
    return v <= max && v >= (std::is_signed_v<T> ? -max - 1 : -max);
  }
}
}  // namespace

bool Scalar::fits(DType dtype) const {
  return visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      return is_integral() ? holds<R>(double(to_double())) : holds<R>(d_) && holds<R>(im_);
    } else {
      if (kind_ == DType::C128) return false;
      if (is_integral()) return holds<T>(kind_ == DType::U64 ? __int128(uint64_t(i_)) : __int128(i_));
      return holds<T>(d_);
    }
  });
}

Scalar Scalar::stored(DType dtype) const {
  return visit_dtype(dtype, [&]<class Tag>(Tag) -> Scalar {
    using T = typename Tag::type;
    const T x = to<T>();
    if constexpr (is_complex_type<T>) return c128(double(x.real()), double(x.imag()));
    else if constexpr (std::is_integral_v<T>) return x;
    else return double(x);
  });
}

Scalar Scalar::operator-() const {
  if (is_integral()) {
    LAMELLA_CHECK(kind_ != DType::U64 || i_ == INT64_MIN, Overflow, "-({}) fits no integer type", str());
    const uint64_t negative = 0 - uint64_t(i_);
    return kind_ == DType::I64 && i_ == INT64_MIN ? Scalar(negative) : Scalar(int64_t(negative));
  }
  if (kind_ == DType::F64) return Scalar(-d_);
  return Scalar(c128(-d_, -im_));
}

namespace {
std::string number(double v) {
  if (v != v) return "nan";  // its sign says nothing, and would stand behind the plus of an imaginary part
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
  return {text.data(), end};
}
}  // namespace

std::string Scalar::str() const {
  if (kind_ == DType::Bool) return i_ ? "true" : "false";
  if (kind_ == DType::U64) return std::to_string(uint64_t(i_));
  if (kind_ == DType::I64) return std::to_string(i_);
  if (kind_ == DType::F64) return number(d_);
  return number(d_) + (im_ < 0 || (im_ == 0 && 1 / im_ < 0) ? "" : "+") + number(im_) + "j";
}

}  // namespace lamella
