// Output that is there as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace lamella::tools {

/// Writes beside `path` and renames, so that neither an interrupt nor a full disk leaves half a file; what
/// was there before stays until then, and its permissions after. Devices and pipes are written to directly.
/// Error usage.
void write_whole_file(const std::string& path, std::string_view bytes);

/// A whole file, or standard output for "-". Error usage when it cannot.
void write_output(const std::string& path, std::string_view bytes);

/// Whether everything that was printed has arrived; says so on stderr, as `who`, if not.
bool output_arrived(const char* who);

/// First of all: where a standard file is closed (`>&-`) something is opened that fails when it is written
/// to, or the next file that is opened would be standard output.
void hold_closed_files();

/// While one lives, what is printed goes to stderr: `-` was given as the file of the data, which
/// write_output() still sends to standard output.
class TextAside {
 public:
  explicit TextAside(bool aside);
  ~TextAside();
  TextAside(const TextAside&) = delete;
};

}  // namespace lamella::tools
