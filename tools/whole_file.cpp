// Write, rename; signals wait meanwhile.
#include "whole_file.h"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unistd.h>

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

/// A link stays, and what it leads to is replaced.
fs::path behind_links(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? fs::path(path) : target;
}

int real_stdout = -1;  ///< while a TextAside lives
}  // namespace

void write_whole_file(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const fs::path target = behind_links(path);
  const bool there = fs::exists(target, error);
  const bool special = there && !fs::is_regular_file(target, error);
  const fs::path partial = special ? target : fs::path(target.string() + format(".{}.partial", ::getpid()));
  const SignalsWait waiting;
  bool written = write_to(partial, bytes);
  if (written && !special) {
    if (there) fs::permissions(partial, fs::status(target).permissions(), error);
    fs::rename(partial, target, error);
    written = !error;
  }
  if (!written && !special) fs::remove(partial, error);
  LAMELLA_CHECK(written, Usage, "cannot write \"{}\"", path);
}

void write_output(const std::string& path, std::string_view bytes) {
  if (path != "-") return write_whole_file(path, bytes);
  std::cout.flush();
  std::fflush(stdout);
  const int out = real_stdout >= 0 ? real_stdout : STDOUT_FILENO;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(out, bytes.data() + at, bytes.size() - at);
    LAMELLA_CHECK(n > 0 || errno == EINTR, Usage, "cannot write to standard output");
    if (n > 0) at += size_t(n);
  }
}

bool output_arrived(const char* who) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good()) return true;
  std::fprintf(stderr, "lamella %s: cannot write to standard output\n", who);
  return false;
}

void hold_closed_files() {
  // Each gets the lowest number that is free: its own. Reading alone, so that to write to it fails.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (::fcntl(file, F_GETFD) < 0) (void)::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

TextAside::TextAside(bool aside) {
  if (!aside) return;
  std::fflush(stdout);
  real_stdout = ::dup(STDOUT_FILENO);
  LAMELLA_CHECK(real_stdout >= 0, Usage, "cannot write to standard output");
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

TextAside::~TextAside() {
  if (real_stdout < 0) return;
  std::cout.flush();
  std::fflush(stdout);
  ::dup2(real_stdout, STDOUT_FILENO);
  ::close(real_stdout);
  real_stdout = -1;
}

}  // namespace lamella::tools
