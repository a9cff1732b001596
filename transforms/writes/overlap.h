// What a write under levels must not do: meet its operands halfway, or race between lanes.
#pragma once

#include "lamella/dispatch/call.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [overlap under levels] A write is refused where the program without levels would refuse it, lane by
/// lane, in the same words: by the memory that wrappers would have (grad and jvp) or have (vmap). Under vmap
/// it is also refused where the lanes, which run at once, would read what another one writes. Error overlap.
void check_overlap(const Frame& base, std::string_view arg, const Tensor& target);

}  // namespace lamella
LAMELLA_API_END
