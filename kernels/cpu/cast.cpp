// The table of conversions between all pairs of dtypes, and two-dimensional moves.
#include "lamella/kernels/cpu/cast.h"

#include <cstring>
#include <utility>

namespace lamella::kernels {
namespace {

template <class T, class F>
void cast_strided(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  for (; n > 0; --n, to += to_step, from += from_step) {
    *reinterpret_cast<T*>(to) = convert_value<T>(*reinterpret_cast<const F*>(from));
  }
}

struct Bits128 { uint64_t words[2]; };

template <class T>
void copy_strided(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  if (to_step == int64_t(sizeof(T)) && from_step == 0) {
    const T value = *reinterpret_cast<const T*>(from);
    T* o = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) o[i] = value;
    return;
  }
  if (to_step == int64_t(sizeof(T))) {
    T* o = reinterpret_cast<T*>(to);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, from += 4 * from_step) {
      const T a = *reinterpret_cast<const T*>(from), b = *reinterpret_cast<const T*>(from + from_step);
      const T c = *reinterpret_cast<const T*>(from + 2 * from_step), d = *reinterpret_cast<const T*>(from + 3 * from_step);
      o[i] = a, o[i + 1] = b, o[i + 2] = c, o[i + 3] = d;
    }
    for (; i < n; ++i, from += from_step) o[i] = *reinterpret_cast<const T*>(from);
    return;
  }
  for (; n > 0; --n, to += to_step, from += from_step) *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
}

template <int kSize> void copy_line(void* to, const void* from, int64_t n) { std::memcpy(to, from, size_t(n) * kSize); }

CastLineFn copy_line_of_size(int64_t size) {
  switch (size) {
    case 1: return copy_line<1>;
    case 2: return copy_line<2>;
    case 4: return copy_line<4>;
    case 8: return copy_line<8>;
    default: return copy_line<16>;
  }
}

CastFn find_strided(DType from, DType to) {
  return visit_dtype(from, [to](auto from_tag) -> CastFn {
    using F = typename decltype(from_tag)::type;
    if constexpr (std::is_same_v<F, f128> || std::is_same_v<F, c256>) return nullptr;
    else return visit_dtype(to, [](auto to_tag) -> CastFn {
      using T = typename decltype(to_tag)::type;
      if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256> || std::is_same_v<T, F>) return nullptr;
      else return cast_strided<T, F>;
    });
  });
}

}  // namespace

CastFn copy_of_size(int64_t size) {
  switch (size) {
    case 1: return copy_strided<uint8_t>;
    case 2: return copy_strided<uint16_t>;
    case 4: return copy_strided<uint32_t>;
    case 8: return copy_strided<uint64_t>;
    default: return copy_strided<Bits128>;
  }
}

Mover make_mover(DType from, DType to) {
  const int64_t from_size = itemsize(from), to_size = itemsize(to);
  if (from == to) return {copy_line_of_size(to_size), copy_of_size(to_size), from_size, to_size};
  return {isa().cast(from, to), find_strided(from, to), from_size, to_size};
}

void move_block(const Mover& m, char* to, int64_t to0, int64_t to1, const char* from, int64_t from0, int64_t from1,
                int64_t n0, int64_t n1) {
  const auto run = [&m](char* t, int64_t t_step, const char* f, int64_t f_step, int64_t n) {
    if (m.line && t_step == m.to_size && f_step == m.from_size) m.line(t, f, n);
    else m.strided(t, t_step, f, f_step, n);
  };
  if (n1 == 1 || (to1 == n0 * to0 && from1 == n0 * from0)) return run(to, to0, from, from0, n0 * n1);
  // Inside goes the side the source lies along (a transpose reads each cache line once), or else the longer one.
  const bool lies_across = from1 == m.from_size && from0 != m.from_size && n1 >= 8;
  if (lies_across || (n0 < 16 && n0 < n1 && from0 != m.from_size)) {
    std::swap(n0, n1), std::swap(to0, to1), std::swap(from0, from1);
  }
  for (int64_t j = 0; j < n1; ++j) run(to + j * to1, to0, from + j * from1, from0, n0);
}

}  // namespace lamella::kernels
