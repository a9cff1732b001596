// Bodies of comparisons and logic, and the choice between two elements.
#pragma once

#include <tuple>

#include "lamella/kernels/bodies/body.h"

namespace lamella::kernels::LAMELLA_BACKEND {

struct LogicalNot {
  template <class T> LAMELLA_FN bool operator()(T x) const { return x == T(0); }
};
struct IsNan {
  template <class T> LAMELLA_FN bool operator()(T x) const {
    if constexpr (Complex<T>) return x.real() != x.real() || x.imag() != x.imag();
    else return x != x;
  }
};
struct Eq {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a == b; }
};
struct Ne {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a != b; }
};
struct Lt {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a < b; }
};
struct Le {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a <= b; }
};
struct Gt {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a > b; }
};
struct Ge {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return a >= b; }
};
struct LogicalAnd {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return (a != T(0)) & (b != T(0)); }
};
struct LogicalOr {
  template <class T> LAMELLA_FN bool operator()(T a, T b) const { return (a != T(0)) | (b != T(0)); }
};
/// The condition is a byte of a bool tensor.
struct Where {
  template <class T> LAMELLA_FN T operator()(uint8_t condition, T a, T b) const { return condition ? a : b; }
};

inline constexpr auto kComparisons = std::tuple{
    Row{"logical_not", LogicalNot{}, Takes::All, Gives::Bool},
    Row{"isnan", IsNan{}, Takes::All, Gives::Bool},
    Row{"eq", Eq{}, Takes::All, Gives::Bool},
    Row{"ne", Ne{}, Takes::All, Gives::Bool},
    Row{"lt", Lt{}, Takes::Real, Gives::Bool},
    Row{"le", Le{}, Takes::Real, Gives::Bool},
    Row{"gt", Gt{}, Takes::Real, Gives::Bool},
    Row{"ge", Ge{}, Takes::Real, Gives::Bool},
    Row{"logical_and", LogicalAnd{}, Takes::All, Gives::Bool},
    Row{"logical_or", LogicalOr{}, Takes::All, Gives::Bool},
    Row{"where", Where{}, Takes::Bits, Gives::Same},
};

}  // namespace lamella::kernels::LAMELLA_BACKEND
