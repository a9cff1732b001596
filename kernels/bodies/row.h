// What a row of bodies says of its kernel besides the arithmetic.
#pragma once

#include <cstdint>
#include <limits>

namespace lamella::kernels {

/// The dtypes a body is for. f16 and bf16 pass as f32.
enum class Takes : uint8_t {
  All,
  Numbers,      ///< no bool
  Real,         ///< no complex
  RealNumbers,  ///< neither
  Inexact,
  Floating,
  Words,  ///< u64
  Bits    ///< moved, not computed with: all, by their size
};
/// The dtype of its results.
enum class Gives : uint8_t {
  Same,
  Bool,
  Parts,   ///< of complex numbers the dtype of their parts
  Complex  ///< numbers of the parts it takes
};
/// What the loop over elements sees to besides.
enum class Also : uint8_t {
  Nothing,
  MovesBits,     ///< elements that keep their dtype, or change it once, are moved
  ChecksDivisor  ///< an integer 0 as the second operand is an error before anything is written
};

/// One pointwise body: {"tanh", Tanh{}, Takes::Inexact, Gives::Same}.
template <class B> struct Row {
  const char* name;
  B body;
  Takes takes;
  Gives gives;
  Also also = Also::Nothing;
};
template <class B> Row(const char*, B, Takes, Gives, Also = Also::Nothing) -> Row<B>;

/// The order in which a fold takes its terms: sums in pairs, lest roundings add up in one direction.
enum class Order : uint8_t { AsTheyCome, Pairs };

inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
/// One fold: {"sum", Of<Add>{}, Takes::All, Order::Pairs, 0}. `over_nothing` is the result of no element.
template <class F> struct FoldRow {
  const char* name;
  F fold;
  Takes takes;
  Order order;
  double over_nothing = 0;
};
template <class F> FoldRow(const char*, F, Takes, Order, double = 0) -> FoldRow<F>;

}  // namespace lamella::kernels
