// Loads and stores of the oracle: one element, any dtype, any working type, no undefined behaviour.
#include "lamella/kernels/reference/accessor.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace lamella::kernels::reference {
namespace {

/// x rounded towards zero and clamped to the range of an integer dtype; NaN becomes 0. f128 holds every
/// bound exactly.
template <class W> W saturate(f128 x, DType dtype) {
  const int bits = 8 * int(itemsize(dtype));
  const bool is_signed = is_signed_integer(dtype);
  const uint64_t highest = ~uint64_t{0} >> (64 - bits + is_signed);
  const f128 high = f128(highest), low = is_signed ? -high - 1 : f128(0);
  if (x != x) return 0;
  if (x >= high) return W(highest);
  if (x <= low) return is_signed ? W(~highest) : W(0);
  return W(x);
}

template <class E> auto real_part(const E& x) {
  if constexpr (Complex<E>) return x.real();
  else if constexpr (is_half_type<E>) return float(x);
  else return x;
}

/// x as a float that rounds to a half as x does: where it is none, of its neighbours the one with an odd last
/// bit.
float towards_half(f128 x) {
  const float nearest = float(x);
  if (f128(nearest) == x || x != x || std::bit_cast<uint32_t>(nearest) & 1) return nearest;
  return std::nextafter(nearest, f128(nearest) < x ? HUGE_VALF : -HUGE_VALF);
}

/// x as a value of `dtype`, held in T: either the working type of `dtype` or its element type.
template <class T, class E> T convert(const E& x, DType dtype) {
  if constexpr (Bool<T> && Complex<E>) return x.real() != 0 || x.imag() != 0;
  else if constexpr (Bool<T>) return real_part(x) != 0;
  else if constexpr (Integer<T> && Inexact<E>) return saturate<T>(f128(real_part(x)), dtype);
  else if constexpr (Integer<T> && sizeof(T) == 8) return wrap(T(real_part(x)), dtype);
  else if constexpr (Integer<T>) return T(real_part(x));
  else if constexpr (is_half_type<T> && std::is_same_v<decltype(real_part(x)), float>) return T(real_part(x));
  else if constexpr (is_half_type<T>) return T(towards_half(f128(real_part(x))));
  else if constexpr (Floating<T>) return T(real_part(x));
  else {
    using R = typename T::value_type;
    if constexpr (Complex<E>) return T(R(x.real()), R(x.imag()));
    else return T(R(real_part(x)), R(0));
  }
}

}  // namespace

template <class W> W load(const View& v, int64_t offset, DType compute) {
  return visit_dtype(v.dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    return convert<W>(v.as<E>()[offset], compute);
  });
}

template <class W> void store(const View& v, int64_t offset, const W& value) {
  visit_dtype(v.dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    v.as<E>()[offset] = convert<E>(value, v.dtype);
  });
}

#define LAMELLA_WORKING_TYPE(W)                    \
  template W load<W>(const View&, int64_t, DType); \
  template void store<W>(const View&, int64_t, const W&);
LAMELLA_WORKING_TYPE(bool)
LAMELLA_WORKING_TYPE(int64_t)
LAMELLA_WORKING_TYPE(uint64_t)
LAMELLA_WORKING_TYPE(float)
LAMELLA_WORKING_TYPE(double)
LAMELLA_WORKING_TYPE(f128)
LAMELLA_WORKING_TYPE(c64)
LAMELLA_WORKING_TYPE(c128)
LAMELLA_WORKING_TYPE(c256)
#undef LAMELLA_WORKING_TYPE

void copy_element(const View& to, int64_t to_offset, const View& from, int64_t from_offset) {
  LAMELLA_ASSERT(to.dtype == from.dtype);
  const int64_t bytes = itemsize(to.dtype);
  std::memcpy(to.as<char>() + to_offset * bytes, from.as<char>() + from_offset * bytes, size_t(bytes));
}

void zero_element(const View& to, int64_t offset) {
  const int64_t bytes = itemsize(to.dtype);
  std::memset(to.as<char>() + offset * bytes, 0, size_t(bytes));
}

void no_kernel(const char* kernel, DType dtype) {
  fail(ErrorCode::DType, "no kernel {} for {}", kernel, name(dtype));
}

}  // namespace lamella::kernels::reference
