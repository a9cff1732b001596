// What somebody may have meant by a name that is none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// `; the nearest is "exp"` or `; the nearest are "sin", "sinh"`: those of `names`, three at most, that are a
/// few letters from `name`, begin with it or contain it. Empty when none is near.
std::string nearest_text(std::string_view name, const std::vector<std::string_view>& names);

/// Likewise of the operators of the current table, without their forms, and of `others`.
std::string nearest_operators(std::string_view name, std::span<const std::string_view> others = {});

}  // namespace lamella
LAMELLA_API_END
