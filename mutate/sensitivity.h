// How sharp is the oracle? Errors of a known size, put into results and derivatives, and how many the laws
// see; and how much of its tolerance each operator needs.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// The laws that compare with the oracle within a bound: of values, jvp, vjp.
const std::vector<std::string_view>& bounded_laws();

struct SensitivityOptions {
  int cases = 200;      ///< of each operator and law
  double seconds = 10;  ///< for each operator and law, at most
  uint64_t seed = 1;
  double factor = 4;  ///< the error put in, in bounds
};

/// One operator under one law.
struct Sensitivity {
  std::string op;
  std::string_view law;
  int cases = 0;     ///< passed as they are, and have an entry with a finite bound
  int caught = 0;    ///< fail with one entry off by factor x its bound
  int sized = 0;     ///< of these, the entry is not zero
  int relative = 0;  ///< fail with that entry off by factor x k roundings of its own size
  int unbounded =
      0;  ///< passed without: kinks, exact results, no elements, nothing finite, absent derivatives
  int passed() const { return cases + unbounded; }  ///< 0: nothing was asked, and nothing is known
  uint64_t missed = 0;  ///< index of a case whose error was not seen, for choices_of
};

/// Plants the error through a replaced row of the table: the value of a result, the tangent of a result, or
/// the cotangent of an input.
Sensitivity sensitivity(const Op& op, const Law& law, const SensitivityOptions& options);

/// How much of the bound was used: the largest |error| / bound over the cases that pass.
struct ToleranceUse {
  int passed = 0;  ///< cases; 0: nothing was asked, and nothing is known
  int cases = 0;   ///< of these, those that compared numbers
  double largest = 0;
  uint64_t at = 0;  ///< index of that case
};
ToleranceUse tolerance_use(const Op& op, const Law& law, const SensitivityOptions& options);

}  // namespace lamella::verify
LAMELLA_API_END
