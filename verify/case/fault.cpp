// The list of bugs that may be planted in the harness.
#include "lamella/verify/case/fault.h"

namespace lamella::verify {

const std::vector<FaultInfo>& faults() {
  static const std::vector<FaultInfo> all = {
      {Fault::NanIgnored, "nan_ignored", "A NaN equals everything."},
      {Fault::SignOfZeroIgnored, "sign_of_zero_ignored", "-0 equals 0 bit by bit."},
      {Fault::DTypeIgnored, "dtype_ignored", "Results of different dtypes may be equal."},
      {Fault::LastEntryIgnored, "last_entry_ignored", "The last entry is not compared."},
      {Fault::NanWithinBounds, "nan_within_bounds", "A NaN lies within every bound."},
      {Fault::BoundsTooWide, "bounds_too_wide", "Bounds are a thousand times what was computed."},
      {Fault::RoundingTooWide, "rounding_too_wide", "A thousand times as many roundings are let pass."},
      {Fault::OracleOnCpu, "oracle_on_cpu", "The oracle asks the kernels under test."},
      {Fault::OracleStepTooLong, "oracle_step_too_long", "The oracle's differences are taken too far apart."},
      {Fault::GeneratorConstant, "generator_constant", "Every case is the first."},
      {Fault::LanesConstant, "lanes_constant", "Every batch has two lanes."},
      {Fault::AlwaysAllMapped, "always_all_mapped", "All arguments are mapped, always."},
      {Fault::ExceptionsPass, "exceptions_pass", "A law that raises passes."},
      {Fault::ErrorsDiscard, "errors_discard", "A law that raises discards its case."},
      {Fault::DiscardsPass, "discards_pass", "A discarded case counts as passed."},
      {Fault::StateNotCompared, "state_not_compared", "Nobody looks what a check leaves behind."},
      {Fault::CodesIgnored, "codes_ignored", "All errors are the same error."},
      {Fault::FailuresNotCounted, "failures_not_counted", "Failures are not counted."},
      {Fault::ProcessesAlike, "processes_alike", "All processes check the same cases."},
      {Fault::OutDimsNotNegative, "out_dims_not_negative", "Dims of results are never counted from the end."},
  };
  return all;
}

}  // namespace lamella::verify
