// Lists of laws beside laws_more.h, which is compiled before all others.
#pragma once

#include "lamella/verify/law.h"

namespace lamella::verify {

void add_half_laws(std::vector<Law>&);       ///< laws_halves.cpp: 107
void add_end_laws(std::vector<Law>&);        ///< laws_ends.cpp: 175
void add_neighbour_laws(std::vector<Law>&);  ///< laws_neighbours.cpp: 63

}  // namespace lamella::verify
