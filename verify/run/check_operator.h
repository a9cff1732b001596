// check_operator: all laws of one operator, from a program of one's own.
#pragma once

#include "lamella/verify/gradcheck/gradcheck.h"
#include "lamella/verify/run/runner.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct CheckOptions {
  double seconds = 2;  ///< for all laws together, when `cases` is 0
  int cases = 0;       ///< of each law that applies, discards too
  uint64_t seed = 1;
};

struct OperatorReport {
  std::string op;
  size_t laws = 0;  ///< how many apply
  Report report;    ///< tallies by law, shrunk failures with their programs
  /// For each failure of a law of derivatives what gradcheck finds in its shrunk case: input, entry, both
  /// numbers, bound and smoothness.
  std::vector<std::optional<GradcheckReport>> derivatives;
  /// Not without a case: nothing was checked then.
  bool passed() const { return report.failures.empty() && report.total().cases > 0; }
  explicit operator bool() const { return passed(); }
  std::string text() const;
};

/// Errors: unknown_operator; usage when the operator has no samples.
OperatorReport check_operator(std::string_view name, const CheckOptions& options = {});
OperatorReport check_operator(const Op& op, const CheckOptions& options = {});

}  // namespace lamella::verify
LAMELLA_API_END
