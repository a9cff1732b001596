// Laws 130 and 131, of the harness itself: they ask wrong answers and calibrations, which verify knows
// nothing of.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Adds both to laws(); once, however often it is called. Whoever runs all laws calls it, before laws are
/// used (add_law): the program and proptests. A user's program, which links lamella::verify alone, goes
/// without.
void install_harness_laws();

/// NOTE: [wrong answers to the harness] Beneath law 130 are laws, beneath law 131 calibrations, in place of
/// operators' cells. What these may answer wrongly is a law that passes a kind of wrong answer which it is
/// known to refuse, each kind once; and a calibration that finds something, raises, or ends its process.
struct ToldWrongly {
  int number;
  std::string_view law;
  std::string told;  ///< what is wrong beneath it
  Verdict verdict;   ///< of the law; it must fail
};
std::vector<ToldWrongly> told_wrongly();

}  // namespace lamella::verify
LAMELLA_API_END
