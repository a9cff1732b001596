// The C++ type of every dtype, the oracle's f128 too, and the one switch from a DType to it. For kernels and
// what checks them: __float128 is no type of every compiler, so users' headers do without.
#pragma once

#include "lamella/core/dtype.h"

LAMELLA_API_BEGIN
namespace lamella {

using f128 = __float128;
using c256 = std::complex<f128>;

template <> inline constexpr DType dtype_of<f128> = DType::F128;
template <> inline constexpr DType dtype_of<c256> = DType::C256;
template <> inline constexpr bool is_floating_type<f128> = true;
template <> inline constexpr bool is_wide_number<f128> = true;

/// Calls f(type_tag<T>{}) with the C++ type of `dtype`.
template <class F> decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool: return f(type_tag<bool>{});
    case DType::U8: return f(type_tag<uint8_t>{});
    case DType::U16: return f(type_tag<uint16_t>{});
    case DType::U32: return f(type_tag<uint32_t>{});
    case DType::U64: return f(type_tag<uint64_t>{});
    case DType::I8: return f(type_tag<int8_t>{});
    case DType::I16: return f(type_tag<int16_t>{});
    case DType::I32: return f(type_tag<int32_t>{});
    case DType::I64: return f(type_tag<int64_t>{});
    case DType::F16: return f(type_tag<f16>{});
    case DType::BF16: return f(type_tag<bf16>{});
    case DType::F32: return f(type_tag<float>{});
    case DType::F64: return f(type_tag<double>{});
    case DType::C64: return f(type_tag<c64>{});
    case DType::C128: return f(type_tag<c128>{});
    case DType::F128: return f(type_tag<f128>{});
    default: return f(type_tag<c256>{});
  }
}

}  // namespace lamella
LAMELLA_API_END
