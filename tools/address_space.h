// Whether the program's libraries start at all.
#pragma once

namespace lamella::tools {

/// Called first of all: they have. Where they have not within some seconds, and the address space is limited,
/// that is said and the program ends with 2.
void libraries_started();

}  // namespace lamella::tools
