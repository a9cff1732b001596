// Write, rename; signals wait meanwhile.
#include "whole_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include "lamella/core/check.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;

/// An interrupt between writing and renaming would leave the partial file.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigemptyset(&all);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, s);
    ::sigprocmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

bool write_to(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  out.close();
  return bool(out);
}
}  // namespace

void write_whole_file(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const bool special = fs::exists(path, error) && !fs::is_regular_file(path, error);
  const fs::path partial = special ? path : path + ".partial";
  const SignalsWait waiting;
  bool written = write_to(partial, bytes);
  if (written && !special) {
    fs::rename(partial, path, error);
    written = !error;
  }
  if (!written && !special) fs::remove(partial, error);
  LAMELLA_CHECK(written, Usage, "cannot write \"{}\"", path);
}

}  // namespace lamella::tools
