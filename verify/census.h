// What laws count beside cases: kinds of statements in programs, what engines refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lamella::verify {

/// By words, in the order in which they are printed.
using Counts = std::map<std::string, uint64_t>;

/// Of the case that is being checked on this thread; added to its law's when it is no discard.
Counts& counts_of_case();

}  // namespace lamella::verify
