// Checks of the harness on questions whose answers are known: what a wrong harness gets wrong.
#pragma once

#include <string>

#include "lamella/verify/fault.h"

namespace lamella::verify {

struct Calibration {
  std::string_view id;
  std::string_view statement;  ///< one sentence that can be false
  std::string (*check)();      ///< empty when it holds; else what is wrong
  bool slow = false;           ///< takes seconds: not asked by every run
};
const std::vector<Calibration>& calibrations();
/// Those of a leaf, behind the others. REQUIRES: before the first is asked, on one thread.
void add_calibrations(const std::vector<Calibration>& of_leaf);

}  // namespace lamella::verify
