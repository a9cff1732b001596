// Changing what a tensor is: strided, or of a type that keeps data of its own.
#pragma once

#include "lamella/dispatch/types.h"
#include "lamella/ops/operators.h"

LAMELLA_API_BEGIN
namespace lamella {

/// "strided", or the name of the type that the tensor itself has, below all levels that wrap it.
std::string_view layout_of(const Tensor& x);

}  // namespace lamella
LAMELLA_API_END
