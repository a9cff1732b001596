// What the process of one planted bug does, and tells its parent.
#pragma once

#include "lamella/verify/mutants.h"

namespace lamella::verify {

/// Lines to the parent: "try LAW", "caught LAW CASES CHECKS message", "reached TIMES LAWS CHECKS",
/// "equal CASES", "differs CASES difference", "end". Each gives the process another 10 s of processor time.
struct Say {
  int fd;
  void line(const std::string& text) const;
};

void hunt(const Planted& p, const MutantOptions& options, const Say& say);

}  // namespace lamella::verify
