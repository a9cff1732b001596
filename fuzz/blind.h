// Fuzzing where there is no libFuzzer: random edits of a corpus, without looking at what they reach.
#pragma once

#include <string>

#include "target.h"

namespace lamella::fuzz {

/// Runs edits of `corpus` for so many seconds; returns how many. What ends the process, or takes longer than
/// 10 s, is first written to `finding-TARGET` in the working folder.
uint64_t run_blindly(const Target& target, const std::vector<std::string>& corpus, double seconds,
                     uint64_t seed);

}  // namespace lamella::fuzz
