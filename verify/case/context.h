// What a run has chosen, for cases, comparisons and the oracle, which have no variables of their own.
#pragma once

#include <cstdint>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

enum class Fault : uint8_t;

/// NOTE: [context] What judges may not change unseen between two verdicts. So no variable stands in case/,
/// oracle/ and gradcheck/ (tools/check_globals.py): what a run chooses, what a check notes and what is found
/// once for all checks lie in run/context.cpp, and these rooms ask for it. Only run/context.h changes it.
struct RunContext {
  Fault fault{};                    ///< a planted bug of the harness; none but in tests of it
  int depth = 4;                    ///< deepest stack of transforms that laws draw
  bool default_tolerances = false;  ///< tolerance() gives defaults and floors, whatever was measured before
};
/// All threads see the same.
const RunContext& run_context();

}  // namespace lamella::verify
LAMELLA_API_END
