// Which branches of the library a case has taken: counted where calls, plans and errors are made.
#pragma once

#include <bitset>
#include <string>

#include "lamella/core/error_watch.h"
#include "lamella/core/plan_watch.h"
#include "lamella/dispatch/state.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [branches] A run gives time to pairs whose cases go where no case has gone before. The library is
/// not compiled a second time for that: it decides by calls, and those have an observer in every build. A
/// branch is one of
/// - a call at a place: from which rule, what that had called last, and to which cell the call goes;
/// - an alternative of a kernel: dtypes, ranks, dense or not, offsets and empty operands;
/// - a loop plan: dims, which operands have no gaps or repeat, and where its run lies among the thresholds;
/// - a refusal: its code and its words.
/// What it does not tell apart: branches within a rule or kernel that change none of these
/// (docs/decisions/0016-branches.md).
class Branches {
 public:
  static constexpr size_t kBits = size_t{1} << 18;

  /// Whether it is new.
  bool add(uint64_t branch) {
    const size_t at = branch % kBits;
    const bool is_new = !taken_[at];
    taken_.set(at);
    return is_new;
  }
  size_t count() const { return taken_.count(); }
  void merge(const Branches& other) { taken_ |= other.taken_; }
  /// For a pipe between processes of one program.
  std::string bytes() const;
  static Branches parse(const std::string& bytes);

 private:
  std::bitset<kBits> taken_;
};

/// Counts what this thread does, for a scope. It holds all its memory itself and never raises: laws count
/// objects and refuse allocations meanwhile.
class CountBranches final : public Observer {
 public:
  explicit CountBranches(Branches& into);
  ~CountBranches() override;
  /// Branches that `into` did not have.
  size_t fresh() const { return fresh_; }

  void on_call(const Frame& frame, KeySet keys, int chosen) override;
  void on_return(const Frame& frame) override;

 private:
  struct Call {
    uint64_t what = 0;  ///< operator and cell; 0: none, the law itself
    uint64_t last = 0;  ///< the call that it made before
  };
  static constexpr int kMostCalls = 128;  ///< those nested deeper are not told apart

  static void on_plan(IterPlan& plan);
  static void on_error(ErrorCode code, std::string_view text);
  Call& innermost() { return calls_[depth_ < kMostCalls ? depth_ : kMostCalls - 1]; }
  void add(uint64_t branch) { fresh_ += into_.add(branch); }

  Branches& into_;
  CountBranches* const outer_;
  size_t fresh_ = 0;
  int depth_ = 0;
  Call calls_[kMostCalls] = {};
  const ScopedObserver observing_;
  const WatchPlans plans_;
  const WatchErrors errors_;
};

}  // namespace lamella::verify
LAMELLA_API_END
