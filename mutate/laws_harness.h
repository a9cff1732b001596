// Laws 130 and 131, of the harness itself: they ask wrong answers and calibrations, which verify knows
// nothing of.
#pragma once

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Adds both to laws(); once, however often it is called. Whoever runs all laws calls it, before laws are
/// used (add_law): the program and proptests. A user's program, which links lamella::verify alone, goes
/// without.
void install_harness_laws();

}  // namespace lamella::verify
LAMELLA_API_END
