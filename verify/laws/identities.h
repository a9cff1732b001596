// Identities between operators, as data: two ways to write one value.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// What the letters of an identity stand for.
enum class Letters : uint8_t {
  Alike,      ///< x, y and z of one shape
  Table,      ///< x of rank 2 without empty dims; y a row of it, z a column
  Block,      ///< x of rank 3
  Dense,      ///< x of rank 2, contiguous
  Matrices,   ///< x, y and z can be multiplied in this order
  Vector,     ///< x a matrix, y a vector it can be multiplied with
  Definite,   ///< x symmetric (Hermitian) positive definite
  Triangular  ///< tril(x) well conditioned, y a matrix with as many rows
};

/// How far the two sides may be apart.
enum class Sides : uint8_t {
  Equal,         ///< bit by bit
  EqualNumbers,  ///< bit by bit, but -0 is 0: which zero wins is nobody's business
  Rounded,       ///< within roundings of both sides, by their conditions
  SamePlace      ///< the same elements of the same storage in the same strides
};

struct Identity {
  std::string_view left, right;  ///< C++ of x, y and z
  Sides sides;
  Letters letters;
  DTypeMask dtypes;
  Domain domain;  ///< of all letters
  using Side = Tensor (*)(const Tensor& x, const Tensor& y, const Tensor& z);
  Side lhs, rhs;
};
const std::vector<Identity>& identities();
/// Fails where x and y of equal sizes (z is x) break one of the operator's identities of equal sides.
Verdict broken_identity(const Op& op, const Tensor& x, const Tensor& y);

}  // namespace lamella::verify
LAMELLA_API_END
