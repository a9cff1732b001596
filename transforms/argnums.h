// Which arguments a derivative is taken in.
#pragma once

#include <string_view>
#include <vector>

#include "lamella/dispatch/value.h"

namespace lamella {

/// Errors: undefined, and dtype when an input is neither floating nor complex.
void check_inputs(const Tensors& inputs, std::string_view what);

}  // namespace lamella
