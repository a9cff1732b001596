// What the rows of core/thresholds.h are to kernels, which operators name.
#pragma once

#include "lamella/core/thresholds.h"

LAMELLA_API_BEGIN
namespace lamella {

/// The kernels that read a row of all_thresholds(), with blanks between: "pointwise" and "all" stand for
/// many, and a ~ behind one says that it rounds in another order on the two sides.
std::string_view readers_of(const Threshold& row);
/// Whether the kernel is among them. "pointwise" asks for all pointwise ones.
bool concerns(const Threshold& row, std::string_view kernel);
/// Whether the kernel's results may be rounded in another order on the two sides.
bool rounds(const Threshold& row, std::string_view kernel);

}  // namespace lamella
LAMELLA_API_END
