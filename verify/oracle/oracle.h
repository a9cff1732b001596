// The oracle: the operator's forward in f128 on the reference column, its derivatives by differences, and how
// far rounding may move them.
#pragma once

#include <initializer_list>
#include <optional>

#include "lamella/core/visit.h"
#include "lamella/verify/case/case.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// In [-1, 1), fixed: of sample and place.
f128 unit_noise(size_t sample, size_t i);

/// Real numbers in a row: every real and imaginary part of a list of tensors.
using Reals = std::vector<f128>;
/// Magnitudes: only their order matters.
using Bounds = std::vector<double>;

/// While alive, integers promote to f128.
class WideDefault {
 public:
  WideDefault() : saved_(dispatch_state().default_dtype) { dispatch_state().default_dtype = DType::F128; }
  ~WideDefault() { dispatch_state().default_dtype = saved_; }
  WideDefault(const WideDefault&) = delete;

 private:
  DType saved_;
};

/// `t` on the reference column: floating becomes f128, complex c256, the rest keeps its dtype.
Tensor to_reference(const Tensor& t);
/// Of integers, as f128 and not as what they are.
Tensor integers_as_numbers(const Tensor& t);
/// All arguments so; dtypes among them widen likewise.
Values to_reference(const Values& args);
Reals flatten(const Tensors& ts);
/// Real numbers in a tensor: two for each complex one.
size_t part_count(const Tensor& t);
/// Real parts of `flat` from `at` on as an f128/c256 tensor like `like`; moves `at` on.
Tensor unflatten(const Reals& flat, size_t& at, const Tensor& like);
/// Like `like`, one f64 per element (the larger of both parts), times `factor`.
Tensor unflatten(const Bounds& flat, size_t& at, const Tensor& like, double factor);

/// NOTE: [input spaces] `reference_args` with (x + x^H) / 2 for the x of a kSymmetricInput operator: there a
/// derivative is one along symmetric directions, whichever triangle the operator reads.
Values symmetrised(const Op& op, Values reference_args);

/// Rounds f128 to a floating dtype and c256 to a complex one; others are copied.
Tensor narrow(const Tensor& wide, DType dtype);

/// m x n, row by row.
struct Matrix {
  size_t rows = 0, columns = 0;
  Reals entries;
  f128 operator()(size_t i, size_t j) const { return entries[i * columns + j]; }
};

/// f as a real function of all parts of the tensors in `slots`; its values are the parts of all inexact
/// results. The other inexact arguments are fixed, but count where kinks are looked for.
class Oracle {
 public:
  Oracle(const Case& c, std::vector<Case::Slot> slots);

  /// Results in order, integer ones too, exact up to f128.
  const Tensors& values() const { return values_; }
  /// |y| + sum_i |dy/dx_i| |x_i| for each part of the inexact results, by steps of a few `u`: a jump nearby
  /// counts.
  /// Of more than kMostMoved numbers, which are too many to move one by one, an estimate by signs.
  Bounds value_bounds(double u);
  static constexpr size_t kMostMoved = 384;
  /// Whether arguments that are some of 8 `u` away, in sixteen drawn places, give other results by this much
  /// at that part: value_bounds() asks the ends alone, and of a number that turns with them (3^(1 + 1e138i))
  /// two may lie near by chance.
  bool turns(double u, size_t part, f128 by);
  /// value_bounds() times what the operator is allowed of them in the coarsest dtype `d` of the results: k
  /// roundings; for sums in a row what their additions take, where that is more (see NOTE: [numerics]).
  Bounds tolerances(const Bounds& conditions, DType d) const;

  /// The operator at |x|, at least 1, in each part, and of integers that `dtype` makes numbers first: where
  /// it adds and multiplies, no partial result of any order is larger than this one.
  Reals reach();
  /// NOTE: [underflow inside] What a value, or a derivative along these directions, may lose where partial
  /// results in `d` underflow: each loses less than the smallest number, and is multiplied by what comes
  /// later: directions, arguments, logarithms of them (|log x| < 16 for x within 2^+-20), products of many
  /// (reach()). 0 where none can underflow: where the operator at min(1, |x|), in a product the least of any
  /// order, does not.
  double lost_to_underflow(DType d, std::initializer_list<const Reals*> directions);

  const Matrix& jacobian();
  /// The largest entry; where there are more than kMostMoved parts an estimate, by what results move when all
  /// arguments do, in four patterns of signs.
  f128 steepest();
  /// Whether one-sided differences agree at this point; operators without kinks are smooth. A kink within the
  /// steps counts.
  bool smooth() { return smooth_within(kFirstStep); }
  /// Likewise for the wider steps of second derivatives.
  bool twice_smooth() { return smooth_within(kWideStep); }
  /// Least and greatest Jacobians at so many points nearby, entry by entry, widened by their spread: where a
  /// derivative at a kink may lie. Three numbers that tie have six orders, of which one may be the only one
  /// with that derivative: eight points miss it in a quarter of the cases, 64 in one of 10^5.
  std::pair<Matrix, Matrix> hull(size_t samples);
  static constexpr size_t kFewSamples = 8, kManySamples = 64;

  Reals pushforward(const Reals& t);
  Reals pullback(const Reals& u);
  /// sum_j |J_ij| |t_j| + sum_m |d(Jt)_i/dx_m| |x_m|, and likewise for the transpose; normwise for linear
  /// algebra.
  Bounds pushforward_bounds(const Reals& t);
  Bounds pullback_bounds(const Reals& u);
  /// How far the oracle itself may be off, by its own roundoff: to be added to k u times the bounds above.
  Bounds pushforward_noise(const Reals& t);
  Bounds pullback_noise(const Reals& u);

  /// <u, J t> by differences along `t` alone, for what is too large for a Jacobian; the magnitudes it is a
  /// sum of, and how far the oracle itself may be off. Nothing at a kink within the steps, where a result is
  /// not finite, and for what is right normwise only.
  struct Along {
    f128 value, size, noise;
  };
  std::optional<Along> along(const Reals& t, const Reals& u);
  /// How far a roundoff of 1 may move it: see NOTE: [one direction].
  f128 along_bound(const Reals& t, const Reals& u);
  /// How far its own roundoff may move along(), where partial results are larger than its noise assumes.
  f128 along_noise(const Reals& t, const Reals& u);

  /// H_ij = sum_k u_k d2 y_k / dx_i dx_j, and the sum of magnitudes with the sensitivity to x in each entry.
  Matrix hessian(const Reals& u);
  Matrix hessian_bounds(const Reals& u);
  Matrix hessian_noise(const Reals& u);

 private:
  Reals slope(const Reals& x, const Reals& direction, f128 h);
  /// `out` and for each result the estimate of NOTE: [one direction] for sum_j |J_ij x_j|, by steps of
  /// `step`.
  Bounds estimated_bounds(Bounds out, f128 step);
  /// The second difference by the step goes with the step where the function is smooth, and stays at a kink.
  bool bends(const Reals& right, const Reals& left, const Reals& far_right, const Reals& far_left,
             f128 h) const;
  f128 size_along(Reals d, const Reals& u) const;  ///< sum |d_i u_i|, complex ones by their moduli
  static constexpr int kFirstStep = -38, kSecondStep = -20, kWideStep = -16;  ///< exponents
  bool smooth_within(int step_exponent);
  Tensors forward() const;
  Reals evaluate(const Reals& x);
  /// see NOTE: [dtype=]; nothing if its elements are numbers anyway.
  Tensor converted_integers() const;
  Matrix jacobian_at(const Reals& x, int step_exponent);
  std::vector<Matrix> jacobians_nearby();
  /// Magnitude of what results are computed from: |y_i| + sum_j |J_ij x_j|.
  Reals magnitudes();
  template <class Numbers> void make_normwise(Numbers& bounds, const Tensors& of) const;
  /// d2 y_k / dx_i dx_j by the four points x +- h e_i +- h e_j: for each pair j <= i, all k. Error h^2.
  using Seconds = std::vector<Reals>;
  Seconds seconds_at(const Reals& x, int step_exponent);
  /// At the point itself with the step 2^exponent h, h = 2^kSecondStep: kept.
  const Seconds& seconds(size_t exponent);
  /// NOTE: [second differences] (4 D(h) - D(2 h)) / 3: error h^4 (decision 0006).
  Seconds combined(size_t exponent);
  /// sum_k u_k d_k, or of magnitudes, as a symmetric matrix.
  Matrix weighted(const Seconds& d, const Reals& u, bool magnitudes = false) const;

  const Op& op_;
  Values args_;
  Tensors inputs_, values_;
  size_t active_ = 0;  ///< parts of `slots`; the rest of x_ are other inexact arguments
  Reals x_, y_;
  std::vector<int>
      terms_;  ///< parts of the arguments that each part of the results moves with: value_bounds()
  Matrix jacobian_;
  std::vector<Matrix> nearby_;
  std::vector<Seconds> seconds_;
};

/// The oracle's results for a whole case, without derivatives. Of a composite those of its definition.
Tensors reference_forward(const Op& op, const Values& reference_args);
/// Whether a kernel may come by an infinity on its way to a finite result in `d`: squares of what is very
/// sensitive, by the `conditions`, or partial products (2^150 times the 0 that comes last).
bool overflows_inside(Oracle& oracle, const Bounds& conditions, const Op& op, DType d);

}  // namespace lamella::verify
LAMELLA_API_END
