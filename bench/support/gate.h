// The gate: instructions per call against the figures that are committed.
#pragma once

#include "support/instructions.h"

namespace bench {

/// Prints each gated row beside its figure. 0: none needs over 3 % more instructions; 1: one
/// does, or the file and the rows do not match; 77: nothing to compare (no valgrind, another compiler or
/// instruction set).
int check_instructions(const Rows& rows, const std::string& path);

/// Counts and rewrites the file.
int update_instructions(const Rows& rows, const std::string& path);

}  // namespace bench
