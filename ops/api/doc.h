// What stands above a typed function: the row's doc, and what schema and row say of shapes, dtypes, errors.
#pragma once

#include "function.h"

namespace lamella::api {

/// Lines that begin with `///` and end with a line break.
std::string doc_of(const Function& f);
/// A text as such lines.
std::string doc_lines(const std::string& text);

}  // namespace lamella::api
