// The greatest or least of contiguous elements, in registers, and where it is.
#pragma once

#include "lamella/kernels/cpu/registers.h"

namespace lamella::kernels::LAMELLA_BACKEND {

template <class F> inline constexpr bool is_extreme =
    std::is_same_v<F, Of<Maximum>> || std::is_same_v<F, Of<Minimum>>;

/// Of two numbers of which none is NaN, the first where they are equal. V: elements or registers.
template <class F, class V> [[gnu::always_inline]] inline V further(V a, V b) {
  if constexpr (std::is_same_v<F, Of<Maximum>>) return a < b ? b : a;
  else return b < a ? b : a;
}

template <class T> struct Extreme {
  T value;
  bool has_nan;  ///< and says nothing else
};

/// Elements that one step takes.
inline constexpr int64_t kExtremeWidth = kHere.fold_many / 2;

/// At a[i] of every half kilobyte, asks the second-level cache for the one that is `ahead` bytes away (0: not
/// at all): the processor asks ahead by itself, but no further than to the end of a page. More lines at once
/// would wait for each other.
template <class T> [[gnu::always_inline]] inline void ask_ahead(const T* a, int64_t i, int64_t ahead) {
  constexpr int64_t kAtOnce = kHere.fold_block;  // bytes
  if (ahead == 0 || i % (kAtOnce / int64_t(sizeof(T))) != 0) [[likely]]
    return;
  const char* const from = reinterpret_cast<const char*>(a + i) + ahead;
#pragma GCC unroll 8
  for (int64_t line = 0; line < kAtOnce; line += 64) __builtin_prefetch(from + line, 0, 2);
}

// A NaN is a number apart: comparing every element with itself costs less than a body that keeps the first
// NaN. The last step takes elements a second time rather than fewer: the greatest stays what it was.
/// REQUIRES: n >= kExtremeWidth.
template <class F, class T> Extreme<T> extreme_of(const T* a, int64_t n, int64_t ahead = 0) {
  using Wide = SideBySide<T, kExtremeWidth>;
  using V = typename Wide::Register;
  return [&]<size_t... k>(std::index_sequence<k...>) {
    ask_ahead(a, 0, ahead);
    V most[] = {loaded<V>(a + int64_t(k) * Wide::kLanes)...};
    auto nans = most[0] != most[0];
    ((nans |= most[k] != most[k]), ...);
    for (int64_t i = kExtremeWidth; i < n; i += kExtremeWidth) {
      ask_ahead(a, i, ahead);
      const T* at = a + (i + kExtremeWidth <= n ? i : n - kExtremeWidth);
      const V x[] = {loaded<V>(at + int64_t(k) * Wide::kLanes)...};
      ((most[k] = further<F>(most[k], x[k])), ...);
      if constexpr (Floating<T>) ((nans |= x[k] != x[k]), ...);
    }
    uint64_t words[sizeof nans / sizeof(uint64_t)], any = 0;
    std::memcpy(words, &nans, sizeof nans);
    for (const uint64_t word : words) any |= word;
    const T value = merged_registers<T>(most, [](auto a, auto b) { return further<F>(a, b); });
    return Extreme<T>{value, any != 0};
  }
  (typename Wide::Indices{});
}

/// The first of n elements for which `is` holds, in blocks whose search is a reduction; n if there is none.
template <class T, class Is> int64_t first_where(const T* a, int64_t n, Is&& is) {
  constexpr int64_t kBlock = kHere.search_block;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int found = 0;
    for (int64_t j = 0; j < kBlock; ++j) found |= is(a[i + j]);
    if (found) break;
  }
  while (i < n && !is(a[i])) ++i;
  return i;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
