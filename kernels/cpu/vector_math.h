// exp log sin cos tanh sigmoid sech_squared pow over contiguous runs: our own vector functions, one text for
// every instruction set, see NOTE: [elementary functions]. Every lane, the tail's too, goes through the same
// function: a result does not depend on its place in a run.
#pragma once

#include "lamella/kernels/cpu/elementary_pow.h"
#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {

LAMELLA_LANES auto lanes(Exp, auto x) { return exp_lanes(x); }
LAMELLA_LANES auto lanes(Log, auto x) { return log_lanes(x); }
LAMELLA_LANES auto lanes(Sin, auto x) { return sin_lanes(x); }
LAMELLA_LANES auto lanes(Cos, auto x) { return cos_lanes(x); }
LAMELLA_LANES auto lanes(Tanh, auto x) { return tanh_lanes(x); }
LAMELLA_LANES auto lanes(Sigmoid, auto x) { return sigmoid_lanes(x); }
LAMELLA_LANES auto lanes(SechSquared, auto x) { return sech_squared_lanes(x); }
LAMELLA_LANES auto lanes(Pow, auto x, auto y) { return pow_lanes(x, y); }

/// Whether lines of a body go through vector functions, whose roundings are not the library's.
template <class B, class... Registers>
concept Vectorised = requires(Registers... x) {
  lanes(B{}, x...);
};
template <class B, class T> inline constexpr bool has_lanes = false;
template <class B, Floating T> inline constexpr bool has_lanes<B, T> =
    Vectorised<B, LanesOf<T>> || Vectorised<B, LanesOf<T>, LanesOf<T>>;

/// The `count` elements from `from` on, and 1 in the lanes that are left.
template <class T> LAMELLA_LANES LanesOf<T> loaded_tail(const T* from, int64_t count) {
  T kept[kLanesOf<T>];
  for (int64_t j = 0; j < kLanesOf<T>; ++j) kept[j] = j < count ? from[j] : T(1);
  return load(kept);
}
template <class T> LAMELLA_LANES void store_tail(T* to, LanesOf<T> v, int64_t count) {
  T kept[kLanesOf<T>];
  store(kept, v);
  for (int64_t j = 0; j < count; ++j) to[j] = kept[j];
}

template <class B, class T> void lanes_of_one(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, lanes(B{}, load(a + i)));
  if (i < n) store_tail(o + i, lanes(B{}, loaded_tail(a + i, n - i)), n - i);
}

template <class B, class T> void lanes_of_two(void* out, const void* const* ins, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(ins[0]);
  const T* b = static_cast<const T*>(ins[1]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(o + i, lanes(B{}, load(a + i), load(b + i)));
  if (i < n) store_tail(o + i, lanes(B{}, loaded_tail(a + i, n - i), loaded_tail(b + i, n - i)), n - i);
}

template <class B, class T> constexpr LineFn line_of_lanes() {
  if constexpr (Vectorised<B, LanesOf<T>>) return lanes_of_one<B, T>;
  else return lanes_of_two<B, T>;
}

/// The one place that says which text a body has for T.
template <class B, class T> constexpr LineFn line_of() {
  if constexpr (has_lanes<B, T>) return line_of_lanes<B, T>();
  else return line_of_body<B, T>();
}
/// Null where the row does not take T, and where the lowered text takes the chosen instruction set's.
template <size_t kRow, class T> constexpr LineFn line_of_row() {
  using B = BodyOf<kRow>;
  if constexpr (!takes<T>(std::get<kRow>(kPointwise).takes)) return nullptr;
  else if constexpr (has_lanes<B, T> && kHere.lowered) return nullptr;
  else return line_of<B, T>();
}
template <size_t kRow, class... T> constexpr Lines lines_of_row() {
  Lines lines{};
  ((lines[size_t(dtype_of<T>)] = line_of_row<kRow, T>()), ...);
  return lines;
}
/// Of all rows, for these types.
template <class... T> constexpr std::array<Lines, kPointwiseRows> lines_of_rows() {
  return []<size_t... kRow>(std::index_sequence<kRow...>) {
    return std::array{lines_of_row<kRow, T...>()...};
  }
  (std::make_index_sequence<kPointwiseRows>{});
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
