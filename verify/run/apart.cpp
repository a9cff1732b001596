// Processes for single checks, and which earlier cases a failure needs.
#include "lamella/verify/run/apart.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/core/guard.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/wire.h"

namespace lamella::verify {

FailureKind end_of(int status) {
  if (!WIFSIGNALED(status)) return {What::Exited, std::to_string(WEXITSTATUS(status))};
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return {What::NeverEnded};
  return {What::Crashed, format("{} (signal {})", ::strsignal(signal), signal)};
}

bool is_end(const FailureKind& kind) {
  return kind.what == What::Crashed || kind.what == What::Exited || kind.what == What::NeverEnded;
}

double processor_time(int pid) {
  clockid_t clock = 0;
  timespec t = {};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

bool wants_to_run(int pid) {
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(format("/proc/{}/task", pid), gone)) {
    std::ifstream in(thread.path() / "stat"), children(thread.path() / "children");
    std::string line;
    std::getline(in, line);
    const size_t name_ends = line.rfind(')');
    if (name_ends != std::string::npos && line.size() > name_ends + 2 && line[name_ends + 2] != 'S')
      return true;
    for (int child; children >> child;)
      if (wants_to_run(child)) return true;
  }
  return false;
}

namespace {
using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Beside which block a process read or wrote that has ended so: memory that it shares with this one.
constexpr size_t kFaultText = 120;
char* fault_text() {
  static void* const page =
      ::mmap(nullptr, kFaultText, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : static_cast<char*>(page);
}

[[noreturn]] void answer(const std::function<Verdict()>& check, int fd) {
  if (fault_text()) describe_faults(fault_text(), kFaultText);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const std::string text = encode(check()) + '\n';
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) break;
    at += size_t(std::max<ssize_t>(n, 0));
  }
  ::_exit(0);
}

/// What it says until it ends; it is killed when it takes too long.
std::string heard(pid_t pid, int fd, double seconds) {
  std::string out;
  const auto begin = Clock::now();
  for (char buffer[4096];;) {
    pollfd one{fd, POLLIN, 0};
    if (::poll(&one, 1, 50) > 0) {
      const ssize_t n = ::read(fd, buffer, sizeof buffer);
      if (n == 0) return out;
      if (n > 0) out.append(buffer, size_t(n));
    }
    if (processor_time(pid) > seconds || (since(begin) > 2 * seconds && !wants_to_run(pid)))
      ::kill(pid, SIGKILL);
  }
}
}  // namespace

Verdict check_apart(const std::function<Verdict()>& check, double seconds) {
  int ends[2];
  LAMELLA_CHECK(::pipe(ends) == 0, Usage, "verify: no pipe: {}", std::strerror(errno));
  char* const fault = fault_text();
  if (fault) fault[0] = 0;
  const pid_t pid = ::fork();
  LAMELLA_CHECK(pid >= 0, Usage, "verify: no process: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    answer(check, ends[1]);
  }
  ::close(ends[1]);
  std::string said = heard(pid, ends[0], seconds);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (said.ends_with('\n')) {
    said.pop_back();
    return decode_verdict(said);
  }
  const FailureKind ended = end_of(status);  // also where it exited in the middle with status 0
  Finding wrong(ended, str(ended));
  if (fault && fault[0]) wrong += format(": {}", static_cast<const char*>(fault));
  return Verdict::fail(wrong);
}

namespace {

constexpr double kPatience = 2;       ///< processor seconds for one case: most take a thousandth of that
constexpr double kImpatience = 0.25;  ///< likewise while one that does not end is made smaller
constexpr size_t kMostNamed = 4096;   ///< cases before a failure that are kept by name
constexpr size_t kOneByOne = 256;     ///< as many are left out one by one

class Settler {
 public:
  Settler(Failure& f, const RunOptions& o, double seconds)
      : f_(f), o_(o), seconds_(seconds), record_(from_blob(f.blob)), begin_(Clock::now()) {
    for (const Law* law : o.laws)
      if (law->id == f.law) law_ = law;
    for (const Op* op : o.ops)
      if (op->name == f.op) op_ = op;
  }

  void run(std::vector<Burst> ran) {
    if (!law_ || !op_) return;
    const Verdict alone = after({});
    if (alike(alone)) {
      const bool was_shrunk = !f_.flaky && !is_end(f_.kind);
      f_.flaky = false;
      if (!was_shrunk) shorten(alone);
      return;
    }
    f_.flaky = true;
    if (f_.program.empty()) f_.program = program_of(record_.choices);
    if (!alike(after(ran))) {
      f_.needs = format(
          "it did not fail again: neither alone nor after the {} cases before it in its process", count(ran));
      return;
    }
    keep_few(ran);
    name(ran);
  }

 private:
  double left() const { return seconds_ - since(begin_); }
  bool alike(const Verdict& v) const { return v.kind == Verdict::Fail && v.failure == f_.kind; }
  static size_t count(const std::vector<Burst>& ran) {
    size_t n = 0;
    for (const Burst& b : ran) n += b.count;
    return n;
  }
  Verdict check(const Choices& choices) const { return run_check(*law_, *op_, choices, record_.decoding); }

  /// The case behind those of `ran`, in a fresh process.
  Verdict after(const std::vector<Burst>& ran) const {
    const double enough = ran.empty() ? kPatience : std::max(kPatience, left());
    return check_apart(
        [&] {
          for (const Burst& b : ran)
            for (uint64_t k = 0; k < b.count; ++k) run_one(b, k);
          return check(record_.choices);
        },
        enough);
  }
  void run_one(const Burst& b, uint64_t k) const {
    const Law& law = *o_.laws[b.law];
    const Op& op = *o_.ops[b.op];
    (void)run_check(law, op, choices_of(o_.seed, law, op, b.first + k * uint64_t(o_.processes)));
  }

  void shorten(const Verdict& alone) {
    const bool hangs = f_.kind.what == What::NeverEnded;
    const double patience = hangs ? kImpatience : kPatience;  // a hang costs as much each time
    const ShrinkLimits limits{.milliseconds = int(1000 * std::clamp(left(), 0.05, 4.0)),
                              .executions = hangs ? int(std::clamp(left() / patience, 1.0, 24.0)) : 160,
                              .explaining = 0};
    const auto apart = [&](const Choices& c) {
      Verdict v = check_apart([&] { return check(c); }, patience);
      if (is_end(v.failure)) v.used = c.size();  // nobody could say how many words were read
      return v;
    };
    const Shrunk s = shrink_by(apart, *law_, *op_, record_.choices, limits, record_.decoding);
    f_.executions = s.executions, f_.milliseconds = s.milliseconds;
    const bool holds = s.verdict.kind == Verdict::Fail && (!hangs || alike(apart_again(s.choices)));
    take(holds ? s.choices : record_.choices, holds ? s.verdict : alone);
  }
  Verdict apart_again(const Choices& c) const {
    return check_apart([&] { return check(c); }, kPatience);
  }
  void take(const Choices& choices, const Verdict& v) {
    Record r = record_;
    r.choices = choices;
    f_.blob = to_blob(r);
    f_.message = v.message + (is_end(f_.kind) ? f_.where : "");
    f_.program = v.program.empty() ? program_of(choices) : v.program;
    f_.depth = v.depth;
  }
  /// The plain call: drawing it may be what ends the process.
  std::string program_of(const Choices& choices) const {
    const Verdict v = check_apart(
        [&] { return Verdict::fail("", cpp_plain_call(*law_, *op_, choices, record_.decoding)); }, kPatience);
    return v.program.empty() ? "  // the arguments cannot be drawn\n" : v.program;
  }

  /// Leaves out what the failure does not need: from the front first, then piece by piece.
  void keep_few(std::vector<Burst>& ran) const {
    for (size_t last = 1; last < ran.size() && left() > 0; last *= 2) {
      const std::vector<Burst> tail(ran.end() - long(last), ran.end());
      if (!alike(after(tail))) continue;
      ran = tail;
      break;
    }
    leave_out(ran);
    if (count(ran) > kOneByOne) return;
    std::vector<Burst> single;
    for (const Burst& b : ran)
      for (uint64_t k = 0; k < b.count; ++k)
        single.push_back({b.op, b.law, 1, b.first + k * uint64_t(o_.processes)});
    ran = single;
    leave_out(ran);
  }
  void leave_out(std::vector<Burst>& ran) const {
    for (size_t piece = std::max<size_t>(ran.size() / 2, 1);; piece /= 2) {
      for (size_t at = 0; at < ran.size() && left() > 0;) {
        std::vector<Burst> fewer = ran;
        fewer.erase(fewer.begin() + long(at), fewer.begin() + long(std::min(at + piece, ran.size())));
        if (alike(after(fewer))) ran = fewer;
        else at += piece;
      }
      if (piece <= 1 || left() <= 0) return;
    }
  }

  void name(const std::vector<Burst>& ran) {
    const size_t n = count(ran);
    f_.needs = format("it fails after {} other cases in one process", n);
    if (n > kMostNamed) f_.needs += format(", of which the last {} are named", kMostNamed);
    size_t skipped = n > kMostNamed ? n - kMostNamed : 0;
    for (const Burst& b : ran)
      for (uint64_t k = 0; k < b.count; ++k) {
        if (skipped > 0) {
          --skipped;
          continue;
        }
        const Law& law = *o_.laws[b.law];
        const Op& op = *o_.ops[b.op];
        f_.before.push_back(to_blob(
            record_of(law, op, choices_of(o_.seed, law, op, b.first + k * uint64_t(o_.processes)), {})));
      }
  }

  Failure& f_;
  const RunOptions& o_;
  double seconds_;
  Record record_;
  const Law* law_ = nullptr;
  const Op* op_ = nullptr;
  Clock::time_point begin_;
};

}  // namespace

void settle(Failure& f, const RunOptions& options, std::vector<Burst> ran, double seconds) {
  if (!f.blob.empty()) Settler(f, options, seconds).run(std::move(ran));
}

}  // namespace lamella::verify
