// Which version these headers are of: for #if, for people, and for the linker.
#pragma once

#include "lamella/core/export.h"

#define LAMELLA_VERSION_MAJOR 0
#define LAMELLA_VERSION_MINOR 1
#define LAMELLA_VERSION_PATCH 0
/// 100 for 0.1.0: #if LAMELLA_VERSION_NUMBER >= 200
#define LAMELLA_VERSION_NUMBER \
  (LAMELLA_VERSION_MAJOR * 10000 + LAMELLA_VERSION_MINOR * 100 + LAMELLA_VERSION_PATCH)
#define LAMELLA_VERSION "0.1.0"

/// NOTE: [versions] Headers and library are of one version, or objects are laid out differently and nobody is
/// told. So each file that includes the headers asks for a symbol named after their version, which this
/// version's library alone defines. Another library does not link, a plug-in does not load, and the linker's
/// line is a sentence: undefined reference to `lamella_linked_here_is_not_version_0_2_0_of_the_headers'.
/// cmake/install.cmake compares the four lines above with the version of the project.
#define LAMELLA_VERSION_SYMBOL lamella_linked_here_is_not_version_0_1_0_of_the_headers

LAMELLA_API_BEGIN
extern "C" const char LAMELLA_VERSION_SYMBOL;

namespace lamella {

/// The version of the library that is linked, "0.1.0".
const char* version();

namespace {
/// Kept though nobody reads it, or the file would ask for nothing.
[[gnu::used]] const char* const kVersionOfHeaders = &LAMELLA_VERSION_SYMBOL;
}  // namespace

}  // namespace lamella
LAMELLA_API_END
