// The table of conversions between all pairs of dtypes, and two-dimensional moves.
#include "lamella/kernels/cpu/cast.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lamella/core/thresholds.h"
#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/transpose.h"

namespace lamella::kernels {
namespace {

template <class T, class F>
void cast_strided(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  for (; n > 0; --n, to += to_step, from += from_step) {
    *reinterpret_cast<T*>(to) = convert_value<T>(*reinterpret_cast<const F*>(from));
  }
}

struct Bits128 {
  uint64_t words[2];
};

// Pieces of a line of the cache: this file is compiled without vectors, and a loop would store one by one.
template <class T> void repeat(char* to, const char* from, int64_t n) {
  const T value = *reinterpret_cast<const T*>(from);
  constexpr int64_t of_line = 64 / sizeof(T);
  if (n >= of_line) {
    alignas(64) T line[of_line];
    std::fill_n(line, of_line, value);
    for (int64_t lines = n / of_line; lines > 0; --lines, to += sizeof line)
      std::memcpy(to, line, sizeof line);
  }
  T* const rest = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n % of_line; ++i) rest[i] = value;
}

template <class T>
void copy_strided(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  if (to_step == int64_t(sizeof(T)) && from_step == 0) return repeat<T>(to, from, n);
  if (to_step == int64_t(sizeof(T))) {
    T* o = reinterpret_cast<T*>(to);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, from += 4 * from_step) {
      const T a = *reinterpret_cast<const T*>(from), b = *reinterpret_cast<const T*>(from + from_step);
      const T c = *reinterpret_cast<const T*>(from + 2 * from_step),
              d = *reinterpret_cast<const T*>(from + 3 * from_step);
      o[i] = a, o[i + 1] = b, o[i + 2] = c, o[i + 3] = d;
    }
    for (; i < n; ++i, from += from_step) o[i] = *reinterpret_cast<const T*>(from);
    return;
  }
  for (; n > 0; --n, to += to_step, from += from_step)
    *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
}

// Two loops in one call: a transpose makes a great many short runs.
template <class T> void copy_one_by_one(char* to, int64_t to0, int64_t to1, const char* from, int64_t from0,
                                        int64_t from1, int64_t n0, int64_t n1) {
  for (int64_t j = 0; j < n1; ++j, to += to1, from += from1) {
    char* o = to;
    const char* a = from;
    for (int64_t i = 0; i < n0; ++i, o += to0, a += from0)
      *reinterpret_cast<T*>(o) = *reinterpret_cast<const T*>(a);
  }
}

// Rows of `to` are columns of `from`: whole squares, then what is left beside and below them.
template <class T, int64_t kSide>
void copy_transposed(char* to, int64_t to1, const char* from, int64_t from0, int64_t n0, int64_t n1) {
  constexpr int64_t kItem = sizeof(T);
  const int64_t whole0 = n0 / kSide * kSide, whole1 = n1 / kSide * kSide;
  for (int64_t j = 0; j < whole1; j += kSide)
    for (int64_t i = 0; i < whole0; i += kSide)
      transpose_square<T, kSide>(to + j * to1 + i * kItem, to1, from + i * from0 + j * kItem, from0);
  copy_one_by_one<T>(to + whole0 * kItem, kItem, to1, from + whole0 * from0, from0, kItem, n0 - whole0,
                     whole1);
  copy_one_by_one<T>(to + whole1 * to1, kItem, to1, from + whole1 * kItem, from0, kItem, n0, n1 - whole1);
}

template <class T> void copy_block(char* to, int64_t to0, int64_t to1, const char* from, int64_t from0,
                                   int64_t from1, int64_t n0, int64_t n1) {
  constexpr int64_t kItem = sizeof(T);
  if (to1 == kItem && from0 == kItem) std::swap(n0, n1), std::swap(to0, to1), std::swap(from0, from1);
  if (to0 != kItem || from1 != kItem) return copy_one_by_one<T>(to, to0, to1, from, from0, from1, n0, n1);
  constexpr int64_t kSide = kUsualThresholds.transposed, kLowered = kLoweredThresholds.transposed;
  if (thresholds().lowered) copy_transposed<T, kLowered>(to, to1, from, from0, n0, n1);
  else copy_transposed<T, kSide>(to, to1, from, from0, n0, n1);
}

template <int kSize> void copy_line(void* to, const void* from, int64_t n) {
  std::memcpy(to, from, size_t(n) * kSize);
}

template <class T> Mover copy_of() {
  constexpr int64_t kSize = sizeof(T);
  return {copy_line<sizeof(T)>, copy_strided<T>, copy_block<T>, kSize, kSize};
}

Mover copy_of_size(int64_t size) {
  switch (size) {
    case 1: return copy_of<uint8_t>();
    case 2: return copy_of<uint16_t>();
    case 4: return copy_of<uint32_t>();
    case 8: return copy_of<uint64_t>();
    default: return copy_of<Bits128>();
  }
}

CastFn find_strided(DType from, DType to) {
  return visit_dtype(from, [to](auto from_tag) -> CastFn {
    using F = typename decltype(from_tag)::type;
    if constexpr (std::is_same_v<F, f128> || std::is_same_v<F, c256>) return nullptr;
    else
      return visit_dtype(to, [](auto to_tag) -> CastFn {
        using T = typename decltype(to_tag)::type;
        if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256> || std::is_same_v<T, F>)
          return nullptr;
        else return cast_strided<T, F>;
      });
  });
}

}  // namespace

Mover make_mover(DType from, DType to) {
  if (from == to) return copy_of_size(itemsize(to));
  return {isa().cast(from, to), find_strided(from, to), nullptr, itemsize(from), itemsize(to)};
}

void move_block(const Mover& m, char* to, int64_t to0, int64_t to1, const char* from, int64_t from0,
                int64_t from1, int64_t n0, int64_t n1) {
  const auto run = [&m](char* t, int64_t t_step, const char* f, int64_t f_step, int64_t n) {
    if (m.line && t_step == m.to_size && f_step == m.from_size) m.line(t, f, n);
    else m.strided(t, t_step, f, f_step, n);
  };
  if (n1 == 1 || (to1 == n0 * to0 && from1 == n0 * from0)) return run(to, to0, from, from0, n0 * n1);
  const int64_t long_run = thresholds().long_run;
  const bool lines = to0 == m.to_size && from0 == m.from_size && n0 >= long_run;
  if (m.block && !lines) return m.block(to, to0, to1, from, from0, from1, n0, n1);
  if (n0 < long_run && n0 < n1) {  // the longer side inside: fewer calls
    std::swap(n0, n1), std::swap(to0, to1), std::swap(from0, from1);
  }
  for (int64_t j = 0; j < n1; ++j) run(to + j * to1, to0, from + j * from1, from0, n0);
}

}  // namespace lamella::kernels
