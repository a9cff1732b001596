// How many units of roundoff times the condition of the result each operator may be off. The one place where
// tolerances live.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// In units of roundoff, times the condition.
struct Tolerance {
  double value = 8, jvp = 16, vjp = 16, hessian = 64;  ///< of laws that compare with the oracle
  double derivative = 16, second = 64;  ///< of laws that compare derivatives with one another, and of jets
  double additions = 0;  ///< values: additions in a row, per input a result depends on: see NOTE: [numerics]
  double transposed_additions = 0;  ///< likewise vjps, per result that depends on an input
  double derivative_floor = 0;  ///< derivatives: plus this many times the sum of magnitudes of the direction,
                                ///< to be multiplied with the derivative's units
  std::string_view floor_times = {};  ///< the parameter whose largest magnitude, if above 1, multiplies it
  bool floor_over_result = false;     ///< of derivatives of order n: over the (n - 1)-th power of the result
};

inline constexpr Tolerance kDefaultTolerance{};

/// NOTE: [k] The first four are kMargin times the largest error seen (measured_errors.inc, by `lamella
/// tolerances --write`), where that is less than the default. A floor has its reason in the
/// operator's row. An operator that was never measured has the default.
inline constexpr double kMargin = 4;
const Tolerance& tolerance(std::string_view op);

/// A plug-in's own operator: k other than the defaults, with the reason, in LAMELLA_PLUGIN(). `lamella
/// tolerances --op NAME --load FILE.so` shows it beside the largest error seen, and the reason. It holds
/// where tolerance() is asked, and changes no other operator's. Errors: usage without a reason, for a k that
/// is negative or above kMostStated (whoever needs more has an error, not a tolerance), for an operator that
/// the library measured, and for one that has stated its own; unknown_operator for one that nobody has added
/// yet, with the nearest names.
inline constexpr double kMostStated = 4096;
void state_tolerance(std::string_view op, const Tolerance& stated, std::string_view reason);
/// "" where none was stated.
std::string_view stated_reason(std::string_view op);
/// What plug-ins have stated, by operator. Entries stay where they are: tolerance() gives references away.
struct StatedTolerance {
  Tolerance k;
  std::string reason;
};
using StatedTolerances = std::map<std::string, StatedTolerance, std::less<>>;
StatedTolerances& stated_tolerances();  ///< NOTE: [context]
/// NOTE: [kernels that add in a row] A second kernel of an operator may add its terms one after another where
/// the first one adds in pairs. It states so where it is registered, and while it is what calls run,
/// tolerance() has its additions: laws hold it to what it states, and `lamella bench` shows the error that it
/// has. How many additions a term of a result takes; 0: the chosen kernel states none.
double additions_of_chosen_kernel(std::string_view op);

/// The largest errors seen when the table was written, in the units of Tolerance; -1: never measured, or the
/// law does not apply.
struct MeasuredErrors {
  std::string_view op;
  double value = -1, jvp = -1, vjp = -1, hessian = -1;
};
const MeasuredErrors& measured_errors(std::string_view op);

}  // namespace lamella::verify
LAMELLA_API_END
