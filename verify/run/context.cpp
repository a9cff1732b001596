// What runs choose, checks note and all checks share: all that cases, comparisons and the oracle look up.
#include "lamella/verify/run/context.h"

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/decoder.h"
#include "lamella/verify/case/series.h"
#include "lamella/verify/case/strata.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/modes.h"
#include "lamella/verify/oracle/overrides.h"
#include "lamella/verify/programs/census.h"

namespace lamella::verify {

namespace {
constinit RunContext context_of_run;

/// Of the check that runs on a thread.
struct CheckContext {
  Observation* observed = nullptr;
  Recording* recording = nullptr;
  Stratum stratum;
  Counts counts;
};
CheckContext& check_context() {
  static thread_local CheckContext context;
  return context;
}
}  // namespace

const RunContext& run_context() { return context_of_run; }
void change_context(const std::function<void(RunContext&)>& change) { change(context_of_run); }

Observation*& observed() { return check_context().observed; }
Recording*& recording() { return check_context().recording; }
Stratum& stratum_of_case() { return check_context().stratum; }
Counts& counts_of_case() { return check_context().counts; }
Unplaced& unplaced_elements() {
  static thread_local Unplaced kept;
  return kept;
}

StatedTolerances& stated_tolerances() {
  static StatedTolerances stated;
  return stated;
}
DTypeWords& dtype_words() {
  static DTypeWords words;
  return words;
}
ReferenceTables& reference_tables() {
  static ReferenceTables tables;
  return tables;
}
std::atomic<OverridesHeld*>& overrides_held() {
  static constinit std::atomic<OverridesHeld*> held{nullptr};
  return held;
}

}  // namespace lamella::verify
