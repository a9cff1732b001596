// Why factories have no derivative: what they declare, and others may ask for.
#pragma once

#include <string_view>

namespace lamella::ops {

inline constexpr std::string_view kConstant = "the result does not depend on any element";

}  // namespace lamella::ops
