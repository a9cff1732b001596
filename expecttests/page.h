// An operator's page: what its row states, in words, and what follows from it.
#pragma once

#include <string>

#include "lamella/dispatch/op.h"

namespace lamella::expect {

/// The schema, its forms, `doc`, class, dtypes, properties, promises, numerics, how it acts on mapped
/// arguments, and its derivatives as formulas. Lines have at most 100 columns.
std::string page(const Op& op);

}  // namespace lamella::expect
