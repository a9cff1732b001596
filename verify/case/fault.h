// Planted bugs of the harness itself: what compares, bounds, draws and counts, made wrong on purpose.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lamella/verify/case/context.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One at a time, in RunContext: `lamella mutate` forks before it plants one.
enum class Fault : uint8_t {
  None,
  NanIgnored,
  SignOfZeroIgnored,
  DTypeIgnored,
  LastEntryIgnored,
  NanWithinBounds,
  BoundsTooWide,
  RoundingTooWide,
  OracleOnCpu,
  OracleStepTooLong,
  GeneratorConstant,
  LanesConstant,
  AlwaysAllMapped,
  ExceptionsPass,
  ErrorsDiscard,
  DiscardsPass,
  StateNotCompared,
  CodesIgnored,
  FailuresNotCounted,
  ProcessesAlike,
  OutDimsNotNegative
};

/// Read on paths that are slow anyway, or where something differs.
inline bool faulty(Fault f) { return run_context().fault == f; }

struct FaultInfo {
  Fault fault;
  std::string_view id, what;
};
const std::vector<FaultInfo>& faults();

}  // namespace lamella::verify
LAMELLA_API_END
