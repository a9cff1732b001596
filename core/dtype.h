// Element types: the closed list, their traits and promotion. core/visit.h has f128 and the switch to C++
// types.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lamella/core/half.h"

LAMELLA_API_BEGIN
namespace lamella {

/// F128 and C256 are internal to the Reference column (the oracle): no CPU kernel takes them. Their C++ types
/// are in core/visit.h, which no header that users include does.
enum class DType : uint8_t {
  Bool,
  U8,
  U16,
  U32,
  U64,
  I8,
  I16,
  I32,
  I64,
  F16,
  BF16,
  F32,
  F64,
  C64,
  C128,
  F128,
  C256
};
inline constexpr int kDTypeCount = 17;
inline constexpr bool is_valid(DType d) { return int(d) < kDTypeCount; }
namespace detail {
[[noreturn, gnu::cold]] void refuse_dtype(std::string_view who, DType d, std::string_view argument);
}
/// Error dtype, naming function and argument, for a number that is none of the list: tables have no line for
/// it.
inline void check_dtype(std::string_view who, DType d, std::string_view argument = "dtype") {
  if (!is_valid(d)) [[unlikely]]
    detail::refuse_dtype(who, d, argument);
}

using c64 = std::complex<float>;
using c128 = std::complex<double>;

template <class T> struct type_tag { using type = T; };

template <class T> inline constexpr DType dtype_of = DType::Bool;
template <> inline constexpr DType dtype_of<uint8_t> = DType::U8;
template <> inline constexpr DType dtype_of<uint16_t> = DType::U16;
template <> inline constexpr DType dtype_of<uint32_t> = DType::U32;
template <> inline constexpr DType dtype_of<uint64_t> = DType::U64;
template <> inline constexpr DType dtype_of<int8_t> = DType::I8;
template <> inline constexpr DType dtype_of<int16_t> = DType::I16;
template <> inline constexpr DType dtype_of<int32_t> = DType::I32;
template <> inline constexpr DType dtype_of<int64_t> = DType::I64;
template <> inline constexpr DType dtype_of<f16> = DType::F16;
template <> inline constexpr DType dtype_of<bf16> = DType::BF16;
template <> inline constexpr DType dtype_of<float> = DType::F32;
template <> inline constexpr DType dtype_of<double> = DType::F64;
template <> inline constexpr DType dtype_of<c64> = DType::C64;
template <> inline constexpr DType dtype_of<c128> = DType::C128;

template <class T> inline constexpr bool is_complex_type = false;
template <class R> inline constexpr bool is_complex_type<std::complex<R>> = true;
template <class T> inline constexpr bool is_half_type = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T> inline constexpr bool is_floating_type =
    std::is_same_v<T, float> || std::is_same_v<T, double> || is_half_type<T>;
template <class T> inline constexpr bool is_integer_type = std::is_integral_v<T> && !std::is_same_v<T, bool>;

inline constexpr uint8_t kItemSize[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 16, 32};
inline constexpr int64_t itemsize(DType d) { return kItemSize[int(d)]; }

inline constexpr bool is_bool(DType d) { return d == DType::Bool; }
inline constexpr bool is_integer(DType d) { return d >= DType::U8 && d <= DType::I64; }
inline constexpr bool is_signed_integer(DType d) { return d >= DType::I8 && d <= DType::I64; }
inline constexpr bool is_complex(DType d) { return d == DType::C64 || d == DType::C128 || d == DType::C256; }
inline constexpr bool is_floating(DType d) {
  return (d >= DType::F16 && d <= DType::F64) || d == DType::F128;
}
/// Kernels compute these in f32.
inline constexpr bool is_half(DType d) { return d == DType::F16 || d == DType::BF16; }
/// Dtypes that carry derivatives.
inline constexpr bool is_inexact(DType d) { return is_floating(d) || is_complex(d); }
inline constexpr bool is_internal(DType d) { return d >= DType::F128; }

/// The real dtype of a complex one (c64 -> f32); any other dtype is returned as it is.
DType to_real(DType d);
/// The complex dtype over a floating one (f32, f16, bf16 -> c64); complex is returned as it is.
DType to_complex(DType d);

/// Binary promotion of two tensor dtypes with at least one dimension each: PyTorch's lattice
/// (docs/decisions/0009).
DType promote(DType a, DType b);
/// Category of promotion: bool < integer < floating < complex. Scalars and rank-0 tensors promote only when
/// their category is higher.
int category(DType d);
/// Whether a value of `from` may be stored into `to` by in-place and out= forms: never to a lower category
/// (float into int, complex into float, anything but bool into bool).
bool can_store(DType from, DType to);

/// "f32", "i64", "bool", …, "no dtype" of what is none; parse accepts these and PyTorch's names ("float32").
std::string_view name(DType d);
bool parse_dtype(std::string_view text, DType& out);

/// A set of dtypes.
using DTypeMask = uint32_t;
inline constexpr DTypeMask mask(DType d) { return 1u << int(d); }
inline constexpr DTypeMask kFloat32And64 = mask(DType::F32) | mask(DType::F64);
inline constexpr DTypeMask kHalfTypes = mask(DType::F16) | mask(DType::BF16);
inline constexpr DTypeMask kFloating = kFloat32And64 | kHalfTypes;
inline constexpr DTypeMask kComplex = mask(DType::C64) | mask(DType::C128);
inline constexpr DTypeMask kIntegers = mask(DType::U8) | mask(DType::U16) | mask(DType::U32) |
                                       mask(DType::U64) | mask(DType::I8) | mask(DType::I16) |
                                       mask(DType::I32) | mask(DType::I64);
inline constexpr DTypeMask kBoolType = mask(DType::Bool);
inline constexpr DTypeMask kRealTypes = kFloating | kIntegers;
inline constexpr DTypeMask kAllTypes = kRealTypes | kComplex | kBoolType;
inline constexpr DTypeMask kInexact = kFloating | kComplex;

}  // namespace lamella
LAMELLA_API_END
