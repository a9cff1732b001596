// Stores that pass the caches: for results so large that none is left there when somebody reads them. A plain
// store fetches the line that it overwrites, a third of the traffic of a sum of two tensors.
#pragma once

#include <cstdint>

#include "lamella/core/plan.h"

namespace lamella::kernels {

/// Whether a call's operands, of so many bytes together, fill the last-level cache and so pass through no
/// cache of this machine. Under lowered thresholds always, so that small cases go this way, too.
bool passes_caches(int64_t bytes);
/// Whether it is so much, a quarter of that cache, that what others do may have put it out: then it pays to
/// ask for it ahead. Under lowered thresholds always.
bool shares_caches(int64_t bytes);
/// Bytes of the plan's operands, broadcast ones once; 0 where an input lies where the result does: its lines
/// are fetched as it is.
int64_t bytes_of_plan(const IterPlan& plan);

/// Copies `bytes` of a buffer; call end_streams before anybody else may look.
void stream(char* to, const char* from, int64_t bytes);
void end_streams();

/// Asks for so many bytes while something else is computed: memory works meanwhile. Of many, for the first.
void ask_for(const char* next, int64_t bytes);

}  // namespace lamella::kernels
