// Reports of `lamella verify` with drawn counts: for questions about what is made of them.
#pragma once

#include <nlohmann/json.hpp>

#include "calibration_aids.h"

namespace lamella::tools {

/// A report that check_run() accepts, of one shard: up to four operators and laws; pairs that passed, failed,
/// were only discarded, or had no case at all; texts with characters that markup must escape.
nlohmann::json drawn_report(Dice& dice);
/// Text of printable characters, quotes, brackets, line ends, controls, and UTF-8 right and wrong.
std::string drawn_text(Dice& dice);

}  // namespace lamella::tools
