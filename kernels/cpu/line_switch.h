// From an Op to its line for one real type: the one list, used by every file that instantiates lines.
#pragma once

#include "lamella/kernels/cpu/bodies.h"

namespace lamella::kernels::LAMELLA_BACKEND {

template <class T> LineFn common_line(Op op) {
  switch (op) {
    case Op::copy:
    case Op::conj: return unary_line<T, Copy>;
    case Op::neg: return unary_line<T, Neg>;
    case Op::abs: return unary_line<T, Abs>;
    case Op::sign: return unary_line<T, Sign>;
    case Op::logical_not: return unary_line<T, LogicalNot>;
    case Op::isnan: return unary_line<T, IsNan>;
    case Op::add: return binary_line<T, Add>;
    case Op::sub: return binary_line<T, Sub>;
    case Op::mul: return binary_line<T, Mul>;
    case Op::div_floor: return binary_line<T, DivFloor>;
    case Op::div_trunc: return binary_line<T, DivTrunc>;
    case Op::maximum: return binary_line<T, Maximum>;
    case Op::minimum: return binary_line<T, Minimum>;
    case Op::eq: return binary_line<T, Eq>;
    case Op::ne: return binary_line<T, Ne>;
    case Op::lt: return binary_line<T, Lt>;
    case Op::le: return binary_line<T, Le>;
    case Op::gt: return binary_line<T, Gt>;
    case Op::ge: return binary_line<T, Ge>;
    case Op::logical_and: return binary_line<T, LogicalAnd>;
    case Op::logical_or: return binary_line<T, LogicalOr>;
    default: return nullptr;
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
