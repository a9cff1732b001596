// Where a plug-in was loaded operators are first asked in processes of their own which laws apply to them.
#pragma once

#include <vector>

#include "lamella/verify/case/law.h"

namespace lamella::verify {

/// Some laws call an operator with drawn arguments to know whether they apply to it, and whoever plans a run
/// asks them. A kernel that ends its process, never returns or raises would end the plan without a word, or
/// with the status of a run that found nothing. Error usage, which names the operator, the law that asked and
/// what happened; `seconds` of processor time are as long as one operator may take.
void ask_apart(const std::vector<const Op*>& ops, const std::vector<const Law*>& laws, double seconds = 5);

}  // namespace lamella::verify
