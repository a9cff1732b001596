// checkpoint: memory for time. What a function would save for its derivatives is computed again when needed.
#pragma once

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// f, of which tapes (of grad levels and of base autograd, under any other levels) keep the arguments only,
/// and the graph. When backward comes to a value that f's operators saved, f runs again on the same
/// arguments, under the levels, default dtype and randomness it ran under: what it draws is the same, bit by
/// bit. Values and gradients are those of f itself, at any order, for captured values as well. f may call
/// checkpointed functions.
///
/// f must do the same each time it runs: what it captures may not change before backward. Errors when
/// backward finds otherwise: value (an argument or captured value was written in place, f saved other
/// values). Memory of values computed again is freed as backward uses them.
Function checkpoint(Function f);

}  // namespace lamella
LAMELLA_API_END
