// A folder for a while.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lamella::tools {

/// Where temporary files go; empty where TMPDIR names no directory.
inline std::filesystem::path temporary() {
  std::error_code none;
  const std::filesystem::path path = std::filesystem::temp_directory_path(none);
  return none ? std::filesystem::path() : path;
}

/// A directory of its own, gone with this object; an empty path where none could be made.
struct Scratch {
  std::filesystem::path path;
  explicit Scratch(const std::filesystem::path& in = temporary()) {
    if (in.empty()) return;
    std::string name = (in / "lamella-XXXXXX").string();
    if (const char* made = ::mkdtemp(name.data())) path = made;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

}  // namespace lamella::tools
