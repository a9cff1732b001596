// Operators across devices: what a device's column does not serve runs on the CPU.
#pragma once

#include "lamella/dispatch/frame.h"
#include "lamella/ops/operators.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [fallback of a device] For OpTable::set_fallback: makes every operator work on a device that has
/// hooks, slowly. What the tensor arguments span of their storages is copied to the CPU (those that share
/// memory share the copy), the operator runs there, and results, or what it wrote, are copied back; counted.
/// A random operator without a key gets one of the device's generator first.
void cpu_fallback(Frame& frame, int key);
/// How many calls did so since the program began, on this thread.
int64_t cpu_fallbacks();

namespace ops {
/// Of an operator that names a device or takes tensors of several: whether the call was another device's, and
/// has been made there. Error device for out= on another one than device=.
bool sent_across(Frame& frame, int key);
}  // namespace ops

}  // namespace lamella
LAMELLA_API_END
