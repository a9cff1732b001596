// Folds: how elements of a reduction become one. A fold has a state, which one element makes (`first`), which
// takes another element (`step`), which two of make one (`merge`), and which ends as a result: any executor
// may cut the elements as it likes.
#pragma once

#include "lamella/kernels/bodies/arithmetic.h"

namespace lamella::kernels::LAMELLA_BACKEND {

/// The state is an element, which a body of two elements carries on.
template <class B> struct Of {
  template <class T> using State = T;
  static constexpr bool kPlain = true;
  template <class T> LAMELLA_FN static T first(T x) { return x; }
  template <class T> LAMELLA_FN static T step(T state, T x) { return B{}(state, x); }
  template <class T> LAMELLA_FN static T merge(T a, T b) { return B{}(a, b); }
  template <class T> LAMELLA_FN static T result(T state) { return state; }
};

/// log sum exp(x) = m + log1p(r), m the greatest element and r the sum of exp(x - m) over all others: 1 + r
/// would lose what is far below m. Equal elements, infinite ones too, are e^0 of each other.
struct LogSumExp {
  template <class T> struct State { T most, rest; };
  static constexpr bool kPlain = false;
  template <class T> LAMELLA_FN static State<T> first(T x) { return {x, T(0)}; }
  template <class T> LAMELLA_FN static State<T> step(State<T> state, T x) { return merge(state, first(x)); }
  template <class T> LAMELLA_FN static State<T> merge(State<T> a, State<T> b) {
    return b.most > a.most || b.most != b.most ? into(b, a) : into(a, b);
  }
  template <class T> LAMELLA_FN static State<T> into(State<T> a, State<T> b) {
    const T scale = a.most == b.most ? T(1) : library::exp(b.most - a.most);
    return {a.most, a.rest + (1 + b.rest) * scale};
  }
  template <class T> LAMELLA_FN static T result(State<T> state) {
    return state.most + library::log1p(state.rest);
  }
};

// clang-format off
inline constexpr auto kFolds = std::tuple{
    FoldRow{"sum", Of<Add>{}, Takes::All, Order::Pairs, 0},
    FoldRow{"prod", Of<Mul>{}, Takes::All, Order::AsTheyCome, 1},
    FoldRow{"amax", Of<Maximum>{}, Takes::Real, Order::AsTheyCome},
    FoldRow{"amin", Of<Minimum>{}, Takes::Real, Order::AsTheyCome},
    FoldRow{"logsumexp", LogSumExp{}, Takes::Floating, Order::Pairs, kMinusInfinity},
};
// clang-format on

}  // namespace lamella::kernels::LAMELLA_BACKEND
