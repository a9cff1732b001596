// Checks in processes of their own: of cases that end their process, that never end, or that fail only after
// others have run.
#pragma once

#include "lamella/verify/run/runner.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Cases of one pair that a process ran one after the other: `count` of them from index `first` on, as many
/// apart as there are processes. `op` and `law` are positions in RunOptions.
struct Burst {
  uint16_t op, law;
  uint32_t count;
  uint64_t first;
};

/// Crashed, Exited or NeverEnded.
FailureKind end_of(int status);
/// Whether a failure is that of a process that ended so.
bool is_end(const FailureKind& kind);

/// Processor time that a process has used, in seconds.
double processor_time(int pid);
/// Whether one of its threads, or of the processes it has started, runs or wants to; false when all wait.
bool wants_to_run(int pid);

/// Runs `check` in a fork of this process. One that kills its process, or takes more than `seconds` of
/// processor time, or waits for twice as long using none, fails: the kind is end_of(), and the message says
/// it, with the fault beside a guarded block, if it was one.
Verdict check_apart(const std::function<Verdict()>& check, double seconds);

/// shrink() with `check`, if there is one, in the place of run_check(law, op, …).
Shrunk shrink_by(const std::function<Verdict(const Choices&)>& check, const Law& law, const Op& op,
                 Choices choices, ShrinkLimits limits, const Decoding& decoding);

/// Finds out in fresh processes what a failure needs, for `seconds` at most, and completes it: one that
/// repeats alone is shrunk; one that needs cases before it gets as few of them as do, in `before`; one that
/// does not repeat even after all of `ran`, the cases of its process, says so.
void settle(Failure& f, const RunOptions& options, std::vector<Burst> ran, double seconds);

}  // namespace lamella::verify
LAMELLA_API_END
