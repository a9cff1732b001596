// A function of tensors as one of real numbers, on the column it is asked for; and its slopes by differences,
// each with its error and how smooth the function is there.
#pragma once

#include <algorithm>
#include <functional>

#include "lamella/transforms/grad.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/oracle.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Where an entry of a derivative stands.
enum class Kink : uint8_t {
  Smooth,            ///< one-sided slopes agree
  OneSided,          ///< they exist and differ: any value between them is accepted
  NotDifferentiable  ///< a jump, an infinite slope, or no value on one side
};
std::string_view name(Kink k);

/// What the derivatives are compared with.
enum class OracleKind : uint8_t {
  Reference,   ///< differences of the function in f128 on the Reference column
  Differences  ///< differences of the function in its own dtype
};
std::string_view name(OracleKind k);

/// Writes real parts from `from` on into a tensor of any strides, rounded to its dtype.
void write_parts(const Tensor& t, const f128* from);

class RealFunction {
 public:
  /// `f` takes all of `inputs`, returns inexact tensors; the parts of inexact inputs are the variables.
  RealFunction(const Function& f, const Tensors& inputs, OracleKind kind);

  const Reals& point() const { return x_; }
  const Reals& values() const;
  Reals operator()(const Reals& x) const;
  /// Likewise with operands shaken, by shake_size() or `size`: see NOTE: [shaking].
  Reals shaken(const Reals& x, size_t sample, double size) const;
  Reals shaken(const Reals& x, size_t sample) const { return shaken(x, sample, shake_); }
  double shake_size() const { return shake_; }
  /// What variable j can hold.
  f128 representable(size_t j, f128 v) const;
  double roundoff() const { return u_; }
  /// Of variable j, or of f where that is coarser.
  double roundoff(size_t j) const { return std::max(u_, unit_roundoff(dtypes_[j])); }
  /// f rounds so, where it is known; else it is taken to round as the coarsest input.
  void set_roundoff(double u);
  OracleKind kind() const { return kind_; }
  /// How far each value may be off, by roundoff: the condition of the whole program, times the roundoff.
  /// Finite where the value is: a sample that overflows or leaves the domain does not count.
  const Reals& noise() const;

 private:
  void place(const Reals& x) const;
  Reals evaluate(const Reals& x) const;

  Function f_;
  Tensors inputs_;  ///< own copies, overwritten by each evaluation
  OracleKind kind_;
  Reals x_;
  std::vector<DType> dtypes_;  ///< of each variable
  double u_, shake_;
  mutable Reals y_, noise_;
};

/// One column of a Jacobian (or J d), entry by entry.
struct Slope {
  Reals value, error;  ///< |value - exact| <= error where smooth
  Reals low, high;     ///< one-sided slopes, widened by their error
  std::vector<Kink> kink;
  f128 step = 0;  ///< the last tried
};
/// The slope in variable j. Steps are halved twice and extrapolated, and shortened until the estimate of the
/// error is small: there is no fixed step.
Slope slope(const RealFunction& g, size_t j);

/// sum of |g'(x) d| over what roundoff inside g may make of it: |slope| + |change of the slope when shaken| /
/// shake size, by differences over `step`. Not finite where x +- step d has no finite value.
inline constexpr size_t kShakes = 4;
Reals conditions(const RealFunction& g, const Reals& direction, f128 step, size_t shakes = kShakes);
/// g(x + h d) and g(x - h d).
std::pair<Reals, Reals> sides(const RealFunction& g, const Reals& direction, f128 h);

/// What rounding to a dtype may change: relatively, and in what underflows.
struct Rounding {
  double u = 0, tiny = 0;
};
Rounding rounding_of(DType d);
Rounding coarser(Rounding a, Rounding b);
/// The coarsest dtype in which an operator of f leaves its result. Views do not round.
Rounding rounding_inside(const Function& f, const Tensors& inputs);

}  // namespace lamella::verify
LAMELLA_API_END
