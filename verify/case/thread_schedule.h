// Threads in drawn orders: what laws on schedules run their cases with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lamella/dispatch/state.h"
#include "lamella/verify/case/finding.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [schedules] Bodies stop at the steps that they mark with Schedule::yield(), at operator calls
/// (YieldingObserver) and at the library's own yield points (core/yield.h). With `turns` one of them runs at
/// a time and a drawn word says who is next, so that a failure comes again; who waits for a lock that another
/// holds is passed over after 100 us. Without, they run at once, and stop for drawn moments: nothing then
/// orders them but what is under test, so a thread sanitizer sees what is not ordered.
class Schedule {
 public:
  Schedule(uint32_t word, bool turns) : word_(word), turns_(turns) {}
  /// Runs each body on a thread of its own, `here`, if any, on this one, and waits for all. What each of them
  /// raised, `here` last; empty where nothing was.
  std::vector<Finding> run(const std::vector<std::function<void()>>& bodies,
                           const std::function<void()>& here = {}) const;
  /// Lets others go; nothing on threads that run no body.
  static void yield();

 private:
  uint32_t word_;
  bool turns_;
};

/// Stops at each call of an operator of its thread.
class YieldingObserver final : public Observer {
 public:
  void on_call(const Frame&, KeySet, int) override { Schedule::yield(); }
  void on_return(const Frame&) override { Schedule::yield(); }
};

}  // namespace lamella::verify
LAMELLA_API_END
