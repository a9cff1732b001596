// The loop over lanes, beside the rules.
#pragma once

#include <cstdint>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// While alive on this thread, vmap runs every operator but views as a loop over lanes instead of its batch
/// rule: the oracle. A view takes its rule, for what is written to it has to reach what it shows.
class ForceLoop {
 public:
  ForceLoop();
  ~ForceLoop();
  ForceLoop(const ForceLoop&) = delete;

 private:
  bool saved_;
};

/// Calls that fell back to the loop on this thread since it started.
int64_t loop_fallbacks();

struct BatchCall;
/// Whether a ForceLoop is alive on this thread.
inline thread_local constinit bool force_loop = false;

/// Lane by lane, stacked.
void call_lanes(BatchCall& b);
/// Likewise, total: counted, shown by `lamella explain`, and of an empty batch zeros of no lanes.
void loop_over_lanes(BatchCall& b);

}  // namespace lamella
LAMELLA_API_END
