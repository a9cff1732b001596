// What the process of one planted bug does, and tells its parent.
#pragma once

#include "lamella/mutate/mutants.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Tried while no law is: the comparison with the right operator.
inline constexpr std::string_view kComparison = "comparison";

/// What the process tells. Lines to the parent: "caught LAW CASES CHECKS message", "reached TIMES LAWS
/// CHECKS", "equal CASES", "differs CASES difference", "end".
struct Say {
  int fd;
  std::string_view* at;  ///< in memory that the parent shares: what is tried now
  int left = 0;
  void line(const std::string& text) const;
  /// Gives the process another 10 s of processor time, now and then.
  void trying(std::string_view id);
  void comparing();
};

void hunt(const Planted& p, const MutantOptions& options, Say say);

}  // namespace lamella::verify
LAMELLA_API_END
