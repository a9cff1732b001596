// Running many checks: which case comes next, what was found, and several processes at once.
#pragma once

#include <csignal>
#include <functional>
#include <map>

#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/law.h"
#include "lamella/verify/case/series.h"
#include "lamella/verify/case/strata.h"
#include "lamella/verify/programs/census.h"
#include "lamella/verify/run/branches.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Counts of one operator under one law. A case is one that was executed and compared; discards are not.
struct Tally {
  uint64_t cases = 0, failures = 0, discards = 0, deep = 0;  ///< deep: two or more transforms nested
  double seconds = 0;
  Strata strata;
};

struct Failure {
  std::string op, law, message, program;
  int depth = 0;
  FailureKind kind;    ///< what went wrong
  std::string blob;    ///< the case, for --replay
  std::string free;    ///< parts of the case that may be anything, separated by commas
  bool flaky = false;  ///< it needs more than its case: cases that ran before it, threads, time
  int executions = 0;  ///< checks that shrinking took
  double milliseconds = 0;
  uint64_t index = 0;               ///< of the case as it was drawn, among those of its pair and seed
  int process = 0;                  ///< that met it
  uint64_t ran = 0;                 ///< bursts of cases that this process had begun by then
  uint64_t checks = 0;              ///< and cases that it had judged, this one among them
  std::string where;                ///< " (case 17 of seed 5)"
  std::string needs;                ///< of a flaky one: what it needs, in words
  std::vector<std::string> before;  ///< of a flaky one: blobs of the cases to run first, in one process
};

struct Report {
  std::map<std::pair<std::string, std::string>, Tally> tallies;  ///< by operator and law
  std::vector<Failure> failures;             ///< the first of each operator, law and kind, shrunk
  std::map<std::string, Coverage> coverage;  ///< by operator
  std::map<std::string, Counts> counts;      ///< by law: what it counts beside cases
  Branches branches;                         ///< that one case in sixteen has taken
  double seconds = 0;

  Tally total() const;
  void merge(const Report& other);
};

/// Of processor time, for one check: most take a thousandth of a second, and none of two million took one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSecondsOfACheck = 20;
#else
inline constexpr double kSecondsOfACheck = 5;
#endif

struct RunOptions {
  std::vector<const Op*> ops;
  std::vector<const Law*> laws;
  double seconds = 60;
  uint64_t seed = 0;
  int processes = 1;
  int shard = 0, shards = 1;  ///< only the pairs of shard `shard`, counted from 0
  /// If not 0: so many cases of each pair, discards too, however long that takes. What is counted then
  /// depends neither on the time nor on the number of processes or shards.
  uint64_t cases = 0;
  /// Seconds of processor time until a check counts as one that does not end; four times as many on
  /// the clock for one whose threads all wait.
  double patience = kSecondsOfACheck;
  bool settle = true;  ///< repeats failures in fresh processes, and shrinks there what ends a process
  /// Until when, in seconds of the run: years if cases are counted.
  double deadline() const { return cases ? 1e9 : seconds; }
};

/// What is going on, for a progress bar.
struct Progress {
  double seconds;
  uint64_t cases, failures;
  uint64_t ended = 0;  ///< of the failures: processes that crashed, exited or did not end
};

/// Runs until the time is over, all cases are done or `stop` is set. A check that crashes or hangs ends its
/// process, is reported as a failure, and the others go on without it. Then every failure is repeated in
/// fresh processes, for a third of the time at most: those that end their process are shrunk, those that need
/// cases before them name these. Error usage where threads and processes cannot be started, a dozen for each.
/// Workers hear no signals: `stop` ends them.
Report run(const RunOptions& options, const volatile std::sig_atomic_t& stop,
           const std::function<void(const Progress&)>& progress = {});

/// One process, this one: no isolation.
Report run_here(const RunOptions& options, const volatile std::sig_atomic_t& stop);

}  // namespace lamella::verify
LAMELLA_API_END
