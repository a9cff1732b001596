// One process's part of a run.
#pragma once

#include <bitset>
#include <chrono>

#include "lamella/verify/run/apart.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Where a worker is and what it has run: read by the parent process when it dies, or meets a failure that
/// its case alone does not explain.
struct Position {
  int op = -1, law = -1;
  uint64_t index = 0, cases = 0, failures = 0;
  uint64_t bursts = 0;  ///< in `ran`, the running one too
  uint64_t room = 0;    ///< of `ran`; what comes later is not kept
  Burst* ran = nullptr;
  char fault[120] = "";  ///< beside which block it read or wrote, when that has ended it
};

/// How much time pairs of a law get, beside others: 1 for the median law, and twice the law's where no other
/// one notices some mutant of the operator.
double sharpness(std::string_view law, std::string_view op = {});

class Worker {
 public:
  /// Worker `index` of options.processes; `position`, if given, is kept up to date.
  Worker(const RunOptions& options, int index, Position* position);
  void run(const volatile std::sig_atomic_t& stop, const std::function<void()>& snapshot);
  Report report() const;
  /// Goes on behind what another process with this index has counted.
  void resume(const Report& earlier);
  /// Leaves a pair out.
  void skip(int op_index, int law_index);

 private:
  using Clock = std::chrono::steady_clock;
  struct Pair {
    const Op* op;
    const Law* law;
    int op_index, law_index;
    uint64_t next;
    uint64_t series = 0;           ///< of choices
    Coverage* coverage = nullptr;  ///< of the operator, once a case has been counted
    Tally tally = {};
    std::vector<Failure> found = {};
    bool retired = false;
    double ms = 0;                ///< of processor time, of its first share
    double weight = 1;            ///< how sharp the law is
    double growth = 1;            ///< more while cases are unlike all of the pair, or branches new
    std::bitset<256> shown = {};  ///< what cases were like: dtype, stack, features, subsets; by hash
  };
  double elapsed() const;
  void work(Pair& p, double seconds, uint64_t most, const volatile std::sig_atomic_t& stop);
  struct Round;
  /// Whether there is time left.
  bool first_shares(const volatile std::sig_atomic_t& stop, const std::function<void()>& snapshot);
  void ask_numbered(Pair* p, double part, const volatile std::sig_atomic_t& stop,
                    const std::function<void()>& snapshot);
  void tell(const std::function<void()>& snapshot);
  void note_position(const Pair& p, bool first);
  /// Whether the case was like none of the pair before.
  bool count(Pair& p, const Verdict& v, const Observation& seen);
  /// The pair has had all its cases.
  bool done(const Pair& p) const { return options_.cases && p.next >= options_.cases; }
  void keep(Pair& p, const Choices& choices, const Verdict& v);

  const RunOptions& options_;
  int index_;
  Position* position_;
  Clock::time_point start_;
  std::vector<Pair> pairs_;
  std::map<std::string, Coverage> coverage_;
  std::map<std::string, Counts> counts_;
  Branches branches_;
  uint64_t cases_ = 0, deep_ = 0, failures_ = 0;
  double shrinking_ = 0, told_ = 0;
  bool found_ = false;  ///< a failure that no snapshot has told of
};

}  // namespace lamella::verify
LAMELLA_API_END
