// Laws that need neither oracle nor loop: one computation in two ways that must give the same bits.
#pragma once

#include "lamella/verify/law.h"

namespace lamella::verify {

void add_repeat_laws(std::vector<Law>& laws);     ///< laws_repeat.cpp: 10 14 16 64
void add_linear_laws(std::vector<Law>& laws);     ///< laws_linear.cpp: 24 29 34 47 69 70
void add_direction_laws(std::vector<Law>& laws);  ///< laws_directions.cpp: 27

}  // namespace lamella::verify
