// Plain ways, by which the program's own are measured.
#include "calibration_aids.h"

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/run/apart.h"

namespace lamella::tools {

namespace fs = std::filesystem;

uint64_t Dice::next() {  // SplitMix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string Dice::bytes(size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = char(next() >> 32);
  return out;
}

Folder::Folder() : Scratch(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path()) {
  LAMELLA_CHECK(!path.empty(), Usage, "no temporary folder");
}

std::string read_plainly(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_plainly(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Listing listing_of(const fs::path& folder) {
  Listing out;
  for (const fs::directory_entry& e : fs::directory_iterator(folder)) {
    std::string& text = out[e.path().filename().string()];
    if (e.is_symlink()) {
      text = "link to " + fs::read_symlink(e.path()).string();
      continue;
    }
    char mode[8];
    std::snprintf(mode, sizeof mode, "%o", unsigned(e.status().permissions()));
    text = std::string(e.is_regular_file() ? "file " : e.is_fifo() ? "pipe " : "other ") + mode;
  }
  return out;
}

std::string str(const Listing& listing) {
  std::string out;
  for (const auto& [name, what] : listing) out += (out.empty() ? "" : ", ") + name + ": " + what;
  return "{" + out + "}";
}

Caught::Caught(const fs::path& file) {
  std::cout.flush();
  std::fflush(nullptr);
  out_ = ::dup(STDOUT_FILENO), err_ = ::dup(STDERR_FILENO);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::close(fd);
}

Caught::~Caught() {
  std::cout.flush();
  std::fflush(nullptr);
  ::dup2(out_, STDOUT_FILENO);
  ::dup2(err_, STDERR_FILENO);
  ::close(out_);
  ::close(err_);
}

std::string said_apart(const std::function<std::string()>& f, double seconds) {
  const auto check = [&] {
    std::string said;
    try {
      said = f();
    } catch (const std::exception& e) { said = std::string("raised ") + e.what(); }
    return said.empty() ? verify::Verdict::pass() : verify::Verdict::fail(said);
  };
  const verify::Verdict v = verify::check_apart(check, seconds);
  return v.kind == verify::Verdict::Fail ? v.message : "";
}

int status_of_program(std::vector<std::string> words, const std::filesystem::path& output, size_t room) {
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  LAMELLA_CHECK(pid >= 0, Usage, "no process");
  if (pid == 0) {
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int nowhere = ::open("/dev/null", O_RDWR);
    const rlimit limit{rlim_t(room), rlim_t(room)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::dup2(nowhere, STDIN_FILENO), ::dup2(fd, STDOUT_FILENO), ::dup2(nowhere, STDERR_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string raised_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return std::string(name(e.code())) + ": " + e.what(); }
  return "";
}

std::string first_difference(std::string_view got, std::string_view want) {
  if (got == want) return "";
  size_t at = 0;
  while (at < got.size() && at < want.size() && got[at] == want[at]) ++at;
  const size_t from = at - std::min<size_t>(at, 16);
  const auto around = [&](std::string_view text) {
    std::string out;
    for (const char c : text.substr(std::min(from, text.size()), 48))
      if (c >= 0x20 && c < 0x7F) out += c;
      else {
        char hex[8];
        std::snprintf(hex, sizeof hex, "\\x%02x", unsigned(uint8_t(c)));
        out += hex;
      }
    return out;
  };
  return format("at byte {} got \"{}\" ({} bytes), expected \"{}\" ({} bytes)", at, around(got), got.size(),
                around(want), want.size());
}

}  // namespace lamella::tools
