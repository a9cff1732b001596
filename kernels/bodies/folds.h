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

// clang-format off
inline constexpr auto kFolds = std::tuple{
    FoldRow{"sum", Of<Add>{}, Takes::All, Order::Pairs, 0},
    FoldRow{"prod", Of<Mul>{}, Takes::All, Order::AsTheyCome, 1},
    FoldRow{"amax", Of<Maximum>{}, Takes::Real, Order::AsTheyCome},
    FoldRow{"amin", Of<Minimum>{}, Takes::Real, Order::AsTheyCome},
};
// clang-format on

}  // namespace lamella::kernels::LAMELLA_BACKEND
