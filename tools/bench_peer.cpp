// A child process and two pipes; one line of JSON each way.
#include "bench_peer.h"

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/core/check.h"

namespace lamella::tools::bench {

using nlohmann::json;

namespace {
constexpr const char* kInstall =
    "python3 -m pip install torch --index-url https://download.pytorch.org/whl/cpu";

/// In the child: the ends become standard input and output.
[[noreturn]] void become_peer(int in, int out, const std::string& script) {
  ::dup2(in, STDIN_FILENO), ::dup2(out, STDOUT_FILENO);
  ::execlp("python3", "python3", "-B", "-c", script.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}
}  // namespace

Peer::Peer(const std::string& name) {
  LAMELLA_CHECK(name == "torch", Usage, "bench: --peer {}: there is no such peer; expected torch", name);
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has ended is noticed where it is read from
  int there[2] = {-1, -1}, back[2] = {-1, -1};
  LAMELLA_CHECK(::pipe(there) == 0 && ::pipe(back) == 0, Internal, "bench: no pipe");
  const std::string script(kPeerScript);
  pid_ = ::fork();
  LAMELLA_CHECK(pid_ >= 0, Internal, "bench: no process");
  if (pid_ == 0) {
    ::close(there[1]), ::close(back[0]);
    become_peer(there[0], back[1], script);
  }
  ::close(there[0]), ::close(back[1]);
  to_ = there[1], from_ = back[0];
  const std::optional<std::string> answer = ask("");
  const json hello = answer ? json::parse(*answer, nullptr, false) : json();
  if (hello.is_object() && hello.contains("version")) {
    version_ = hello["version"].get<std::string>();
    return;
  }
  const std::string why = hello.is_object() ? hello.value("error", "") : "python3 did not answer";
  fail(ErrorCode::Usage, "bench: --peer torch: {}; to install it (no CUDA packages are needed):\n  {}", why,
       kInstall);
}

Peer::~Peer() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

/// Writes a line, unless it is empty, and reads one. None when the peer has ended.
std::optional<std::string> Peer::ask(const std::string& line) {
  const std::string whole = line.empty() ? "" : line + "\n";
  for (size_t done = 0; done < whole.size();) {
    const ssize_t n = ::write(to_, whole.data() + done, whole.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += size_t(n);
  }
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string out = read_.substr(0, end);
      read_.erase(0, end + 1);
      return out;
    }
    char piece[4096];
    const ssize_t n = ::read(from_, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    read_.append(piece, size_t(n));
  }
}

std::string Peer::prepare(const PeerText& text, int threads) {
  if (text.call.empty()) return "the peer has nothing like it";
  const auto answer =
      ask(json{{"setup", text.setup}, {"call", text.call}, {"into", text.into}, {"threads", threads}}.dump());
  if (!answer) return "the peer has ended";
  const json read = json::parse(*answer, nullptr, false);
  return read.is_object() ? read.value("error", "") : "the peer's answer cannot be read: " + *answer;
}

std::optional<Timing> Peer::time(int64_t calls, double seconds) {
  const auto answer = ask(json{{"calls", calls}, {"seconds", seconds}}.dump());
  const json read = answer ? json::parse(*answer, nullptr, false) : json();
  if (!read.is_object() || !read.contains("cpu_ns")) return std::nullopt;
  return Timing{read.value("cpu_ns", 0.0), read.value("real_ns", 0.0), read.value("calls", int64_t{0})};
}

void Peer::drop() { ask(json{{"drop", true}}.dump()); }

}  // namespace lamella::tools::bench
