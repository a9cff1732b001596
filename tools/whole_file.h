// Writing files that are there as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace lamella::tools {

/// Writes beside `path` and renames, so that neither an interrupt nor a full disk leaves half a file; what
/// was there before stays until then. Devices and pipes are written to directly. Error usage.
void write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace lamella::tools
