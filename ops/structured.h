// Running operators on backends from their one definition.
#pragma once

#include "lamella/dispatch/call.h"

namespace lamella::ops {

/// Gives dispatch the cells of backends; called once before the built-in operators are added.
void install_class_hooks();

/// Shape, dtype and attributes of the results of a (functional) frame, from logical sizes: raises what the
/// operator would raise for these shapes. Not for views and composites.
void infer_frame(const Frame& frame, Inferred& out);

}  // namespace lamella::ops
