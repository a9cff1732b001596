// Folds as loops over contiguous elements.
#pragma once

#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {

template <class F, class T> auto fold_in_a_row(const T* a, int64_t n) {
  auto state = F::first(a[0]);
  for (int64_t i = 1; i < n; ++i) state = F::step(state, a[i]);
  return state;
}

/// A fold's three ways and its end as bodies, for the loops of lines.h.
template <class F> struct First {
  template <class T> auto operator()(T x) const { return F::first(x); }
};
template <class F> struct Step {
  template <class S, class T> S operator()(S state, T x) const { return F::step(state, x); }
};
template <class F> struct Merge {
  template <class S> S operator()(S a, S b) const { return F::merge(a, b); }
};
template <class F> struct Result {
  template <class S> auto operator()(S state) const { return F::result(state); }
};

/// Eight rows into one, each element alone and in the order of the rows: states are loaded and stored once
/// for all of them.
template <class F, class T> void line_of_rows(void* out, const void* const* ins, int64_t n) {
  static_assert(kRowsAtOnce == 8);
  const auto row = [ins](int k) { return static_cast<const T*>(ins[k]); };
  T* o = static_cast<T*>(out);
  const T *a = row(0), *b = row(1), *c = row(2), *d = row(3), *e = row(4), *f = row(5), *g = row(6),
          *h = row(7);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T state = a[i];
    for (const T x : {b[i], c[i], d[i], e[i], f[i], g[i], h[i]}) state = F::step(state, x);
    o[i] = state;
  }
}

/// `Run` folds contiguous elements into one state.
template <class Run, size_t kRow, class T> constexpr FoldLines fold_lines_of() {
  constexpr auto kFold = std::get<kRow>(kFolds);
  if constexpr (!takes<T>(kFold.takes)) return {};
  else {
    using F = FoldOf<kRow>;
    using State = decltype(F::first(T{}));
    static_assert(sizeof(State) <= kMaxFoldState);
    const FoldFn fold = [](void* out, const void* in, int64_t n, int64_t ahead) {
      *static_cast<State*>(out) = Run::template fold<F, kFold.order>(static_cast<const T*>(in), n, ahead);
    };
    constexpr LineFn kMerge = line_of_two<Merge<F>, State>;
    if constexpr (F::kPlain)
      return {fold, nullptr, kMerge, kMerge, nullptr, sizeof(State), line_of_rows<F, State>};
    else
      return {fold,   line_of_one<First<F>, T>,      line_of_two<Step<F>, State, T>,
              kMerge, line_of_one<Result<F>, State>, sizeof(State)};
  }
}
template <class Run, size_t kRow, class... T> constexpr Folds folds_of_row() {
  Folds folds{};
  ((folds[size_t(dtype_of<T>)] = fold_lines_of<Run, kRow, T>()), ...);
  return folds;
}
/// Of all rows, for these types.
template <class Run, class... T> constexpr std::array<Folds, kFoldRows> folds_of_rows() {
  return []<size_t... kRow>(std::index_sequence<kRow...>) {
    return std::array{folds_of_row<Run, kRow, T...>()...};
  }
  (std::make_index_sequence<kFoldRows>{});
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
