// Why factories have no derivative: what they declare, and others may ask for.
#pragma once

#include <string_view>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella::ops {

inline constexpr std::string_view kConstant = "the result does not depend on any element";

}  // namespace lamella::ops
LAMELLA_API_END
