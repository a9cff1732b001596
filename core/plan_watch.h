// Experiments with loop plans: planted bugs see and change each plan of this thread.
#pragma once

#include "lamella/core/plan.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Costs nothing while nobody watches: make_plan compares the rank with a limit anyway, and watching lowers
/// that limit.
using PlanWatcher = void (*)(IterPlan&);

class WatchPlans {
 public:
  explicit WatchPlans(PlanWatcher watcher);
  ~WatchPlans();
  WatchPlans(const WatchPlans&) = delete;

 private:
  PlanWatcher saved_;
};

}  // namespace lamella
LAMELLA_API_END
