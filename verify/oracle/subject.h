// What laws of derivatives share: an operator as a function of some of its inexact inputs, and directions.
#pragma once

#include "lamella/verify/case/law.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/oracle.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

inline constexpr DTypeMask kWideTypes = kFloat32And64 | kComplex;

/// The function under test.
struct Subject {
  std::vector<Case::Slot> slots;
  Tensors xs, ys;  ///< inputs, and inexact results of the plain call
  Function f;
  double u = 0;  ///< coarsest roundoff in play
};

/// False when there is nothing to differentiate, or a result overflowed: choose, call, give_values.
bool prepare(Case& c, Subject& s);
/// Inputs and function alone, for who has the values from a transform.
bool choose(Case& c, Subject& s);
bool give_values(Subject& s, Tensors ys);
bool finite(const Tensors& ts);
/// Parts as flatten() has them, in numbers of 64 bits: of all dtypes but those of the reference column they
/// are exact.
std::vector<long double> short_parts(const Tensors& ts);
/// Sums over the parts of <a, b> in such numbers: of the products, and of their magnitudes.
struct ShortSums {
  long double sum = 0, size = 0;
  size_t terms = 0;
};
/// Absent where the lists do not have the same number of parts.
std::optional<ShortSums> short_product(const Tensors& a, const Tensors& b);
/// Whether nothing computed of these numbers by a few calls overflows or vanishes on the way: all are of f64
/// or c128, and each part is 0 or within [1/8, 8]. What is not finite then is wrong, if the other way is.
bool far_from_overflow(const Tensors& ts);
/// A drawn tensor of the type of each.
Tensors directions(Case& c, const Tensors& like);
/// Sum of magnitudes.
double total(const Reals& v);
/// The operator's floor of derivatives for these arguments, per unit of its directions.
double derivative_floor(const Case& c);
/// What a floor that is over the result grows by with each order of the derivative: 1 / |y| of the smallest
/// y of `ys` that is not 0; else 1.
double over_results(const Tolerance& tol, const Tensors& ys);
Tensors narrowed(const Tensors& wide, const Tensors& like);

/// "jvp(f, {a0}, {t0})" and "vjp(f, {a0})".
std::string jvp_text(const Case& c, const Subject& s);
std::string vjp_text(const Case& c, const Subject& s);
/// The program that prints the tangents along `ts`, or the pullback of `us`, beside what is wanted.
std::string jvp_program(const Case& c, const Subject& s, const Tensors& ts, const Tensors& want);
std::string vjp_program(const Case& c, const Subject& s, const Tensors& us, const Tensors& want);

/// Compares one image of a derivative with what it must be, within roundings of the terms it is made of.
/// `parts`: what was added to `want`; at a tie the oracle may know no slope.
Finding beyond_rounding(const Op& op, const Subject& s, const Tensors& got, const Reals& want,
                        const Bounds& magnitude, double size, const std::vector<Reals>& parts = {});

bool both_ways(const Op& op);

}  // namespace lamella::verify
LAMELLA_API_END
