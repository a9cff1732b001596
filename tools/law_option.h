// --law of several commands: laws by id, number or group.
#pragma once

#include <string>
#include <vector>

#include "lamella/verify/case/law.h"

namespace lamella::tools {

/// The laws that `words` name, in their order. Error usage for a word that names none, with what is near.
std::vector<const verify::Law*> laws_named(const std::vector<std::string>& words);

}  // namespace lamella::tools
