// Comparing tensors: bitwise where results are exact, within a computed bound elsewhere.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lamella/core/tensor.h"
#include "lamella/core/visit.h"
#include "lamella/verify/case/finding.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Empty when shapes, dtypes and every element agree bit by bit (NaN equals NaN); else names the first
/// difference.
Finding differs(const Tensor& got, const Tensor& want);
/// Likewise; -0 equals 0 unless `signed_zero`.
Finding differs(const Tensor& got, const Tensor& want, bool signed_zero);
Finding differs(const Tensors& got, const Tensors& want);
/// Nan where `got` is that alone, else Value: of two numbers that differ.
inline What number_kind(f128 got, f128 want) { return got != got && want == want ? What::Nan : What::Value; }
/// What is wrong where `got` has more or fewer than `want`.
Finding other_number(const Tensors& got, const Tensors& want);
/// Shape, or DType where sizes agree: of two tensors that differ in one of them.
What type_kind(const Tensor& got, const Tensor& want);

inline constexpr f128 kInfinity = std::numeric_limits<double>::infinity();

/// Empty when |got - want| <= bound element by element (NaN and infinities must agree in place and sign);
/// `want` may be f128/c256 on the reference column and `bound` an f64 tensor of the same sizes. Names the
/// worst entry, both numbers in hex and decimal, and the bound.
Finding outside(const Tensor& got, const Tensor& want, const Tensor& bound);

/// Whether a gap is within a bound. An infinite one is within none, and NaN is not: equal infinities are
/// asked for first.
inline bool within(f128 gap, f128 bound) { return gap - gap == 0 && gap <= bound; }

/// Bounds that are all larger by `more`.
Tensor plus(const Tensor& bound, double more);

/// One call of outside(): what it compared, and the largest |got - want| / bound of its finite parts.
struct Comparison {
  Tensor got, want, bound;
  double largest = 0;
};
/// While alive on this thread, keeps what outside() compares: how tight are the bounds, how sensitive the
/// laws? What it keeps outlives the case, so that nobody asks then whether the case leaks.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  /// Whether one is alive on this thread.
  static bool alive();
  std::vector<Comparison> made;

 private:
  Recording* saved_;
};
/// This thread's, or null: NOTE: [context].
Recording*& recording();

/// Unit roundoff of a dtype's arithmetic plus one output rounding: 2^-53, 2^-24, 2^-11, 2^-8; 0 for integers.
double unit_roundoff(DType d);
/// x rounded once to a floating dtype, to nearest, ties to even, by the definition of its numbers (IEEE
/// 754-2019, 4.3.1).
f128 rounded_to(f128 x, DType d);
/// The dtype of the largest unit roundoff among these.
DType coarsest_dtype(const Tensors& ts);
/// The smallest positive number of a floating or complex dtype, and the largest one.
double smallest_number(DType d);
double largest_number(DType d);
/// 2^(half the exponent range): beyond it, sums and products inside may overflow although the result does
/// not.
double half_range(DType d);

}  // namespace lamella::verify
LAMELLA_API_END
