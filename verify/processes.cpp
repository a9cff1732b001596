// A run in several processes: each sends snapshots of its report through a pipe; the parent outlives their
// crashes.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/record.h"
#include "lamella/verify/worker.h"

namespace lamella::verify {

namespace {

// The wire: records of length-prefixed text. A snapshot replaces the one before.
void put(std::string& out, const std::string& s) { out += std::to_string(s.size()) + ':' + s; }

std::string encode(const Report& r) {
  std::string out;
  put(out, std::to_string(r.tallies.size()));
  for (const auto& [key, t] : r.tallies) {
    put(out, key.first), put(out, key.second);
    put(out, format("{} {} {} {} {}", t.cases, t.failures, t.discards, t.deep, t.seconds));
    put(out, t.strata.bytes());
  }
  put(out, std::to_string(r.failures.size()));
  for (const Failure& f : r.failures) {
    put(out, f.op), put(out, f.law), put(out, f.message), put(out, f.program),
        put(out, std::to_string(f.depth));
    put(out, f.kind), put(out, f.blob), put(out, f.free);
    put(out, format("{} {} {}", int(f.flaky), f.executions, f.milliseconds));
  }
  put(out, std::to_string(r.coverage.size()));
  for (const auto& [op, c] : r.coverage) put(out, op), put(out, c.text());
  put(out, std::to_string(r.counts.size()));
  for (const auto& [law, counted] : r.counts) {
    put(out, law), put(out, std::to_string(counted.size()));
    for (const auto& [what, n] : counted) put(out, what), put(out, std::to_string(n));
  }
  put(out, std::to_string(r.seconds));
  return out;
}

struct Reader {
  const std::string& text;
  size_t at = 0;
  std::string next() {
    const size_t colon = text.find(':', at);
    const size_t n = std::stoul(text.substr(at, colon - at));
    at = colon + 1 + n;
    return text.substr(colon + 1, n);
  }
};

Report decode(const std::string& text) {
  Reader in{text};
  Report r;
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    const std::string op = in.next(), law = in.next();
    std::istringstream numbers(in.next());
    Tally& t = r.tallies[{op, law}];
    numbers >> t.cases >> t.failures >> t.discards >> t.deep >> t.seconds;
    t.strata = Strata::parse(in.next());
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    Failure f;
    f.op = in.next(), f.law = in.next(), f.message = in.next(), f.program = in.next();
    f.depth = std::stoi(in.next());
    f.kind = in.next(), f.blob = in.next(), f.free = in.next();
    std::istringstream(in.next()) >> f.flaky >> f.executions >> f.milliseconds;
    r.failures.push_back(std::move(f));
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    const std::string op = in.next();
    r.coverage[op] = Coverage::parse(in.next());
  }
  for (size_t n = std::stoul(in.next()); n > 0; --n) {
    Counts& counted = r.counts[in.next()];
    for (size_t k = std::stoul(in.next()); k > 0; --k) {
      const std::string what = in.next();
      counted[what] = std::stoull(in.next());
    }
  }
  r.seconds = std::stod(in.next());
  return r;
}

void write_all(int fd, const std::string& s) {
  for (size_t at = 0; at < s.size();) {
    const ssize_t n = ::write(fd, s.data() + at, s.size() - at);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) at += size_t(n);
  }
}

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  int index = 0;
  Position* position = nullptr;
  uint64_t seen = 0;           ///< its number of cases
  double since = 0, used = 0;  ///< since when it is that: on the clock, and of its own processor time
  std::string received;
  Report last, earlier;  ///< of this process, and of those it replaces
};

class Processes {
 public:
  Processes(const RunOptions& options, const volatile std::sig_atomic_t& stop,
            const std::function<void(const Progress&)>& progress)
      : options_(options),
        stop_(stop),
        progress_(progress),
        start_(Clock::now()),
        children_(size_t(options.processes)) {
    void* shared = ::mmap(nullptr, sizeof(Position) * children_.size(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    LAMELLA_CHECK(shared != MAP_FAILED, OutOfMemory, "verify: no shared memory for {} processes",
                  children_.size());
    positions_ = new (shared) Position[children_.size()];
  }

  Report run() {
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i].index = int(i);
      children_[i].position = positions_ + i;
      start(children_[i]);
    }
    while (alive()) {
      receive();
      if (stop_ && !told_) tell_all(SIGINT);
      if (stop_ && elapsed() > stopped_at_ + kGrace) tell_all(SIGKILL);
      if (options_.cases || elapsed() > options_.deadline()) end_stuck();
      if (progress_) progress_(now());
    }
    Report all;
    for (const Child& c : children_) {
      all.merge(c.earlier);
      all.merge(c.last);
    }
    all.merge(crashes_);
    all.seconds = elapsed();
    std::stable_sort(all.failures.begin(), all.failures.end(), [](const Failure& a, const Failure& b) {
      return std::pair(a.depth, a.program.size()) < std::pair(b.depth, b.program.size());
    });
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Seconds until a process that does not answer is killed: of processor time, as others may have the
  /// machine, and on the clock for one that waits and uses none.
  static constexpr double kGrace = 20, kStill = 120;
  static constexpr size_t kMostCrashes = 20;
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool alive() const {
    for (const Child& c : children_)
      if (c.pid > 0) return true;
    return false;
  }

  void start(Child& c) {
    int ends[2];
    LAMELLA_CHECK(::pipe(ends) == 0, Usage, "verify: no pipe: {}", std::strerror(errno));
    c.received.clear();
    c.seen = ~uint64_t{0};
    c.pid = ::fork();
    LAMELLA_CHECK(c.pid >= 0, Usage, "verify: no process: {}", std::strerror(errno));
    if (c.pid == 0) {
      ::close(ends[0]);
      serve(c, ends[1]);
    }
    ::close(ends[1]);
    c.pipe = ends[0];
  }

  [[noreturn]] void serve(const Child& c, int fd) {
    RunOptions mine = options_;
    mine.seconds = std::max(0.0, options_.seconds - elapsed());
    Worker worker(mine, c.index, c.position);
    worker.resume(c.earlier);
    for (const auto& [op, law] : skipped_) worker.skip(op, law);
    const auto send = [&] {
      const std::string text = encode(worker.report());
      std::string framed;
      put(framed, text);
      write_all(fd, framed);
    };
    worker.run(stop_, send);
    send();
    ::close(fd);
    ::_exit(0);
  }

  void receive() {
    std::vector<pollfd> fds;
    for (const Child& c : children_)
      if (c.pid > 0) fds.push_back({c.pipe, POLLIN, 0});
    ::poll(fds.data(), fds.size(), 100);
    size_t k = 0;
    for (Child& c : children_) {
      if (c.pid <= 0) continue;
      if (fds[k++].revents) read_some(c);
    }
  }

  void read_some(Child& c) {
    char buffer[65536];
    const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return;
    if (n > 0) {
      c.received.append(buffer, size_t(n));
      take_snapshots(c);
      return;
    }
    ::close(c.pipe);
    int status = 0;
    ::waitpid(c.pid, &status, 0);
    c.pid = -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) died(c, status);
  }

  void take_snapshots(Child& c) {
    for (;;) {
      const size_t colon = c.received.find(':');
      if (colon == std::string::npos) return;
      const size_t n = std::stoul(c.received.substr(0, colon));
      if (c.received.size() < colon + 1 + n) return;
      c.last = decode(c.received.substr(colon + 1, n));
      c.received.erase(0, colon + 1 + n);
    }
  }

  /// How a process ended that was not done: sanitizers, and whoever calls exit(), give a status.
  static std::string end_of(int status) {
    if (!WIFSIGNALED(status)) return format("exited with status {}", WEXITSTATUS(status));
    return WTERMSIG(status) == SIGKILL ? "did not end" : format("crashed: {}", ::strsignal(WTERMSIG(status)));
  }

  /// The check that was running is a failure; another process goes on without its pair.
  void died(Child& c, int status) {
    const Position at = *c.position;
    c.earlier.merge(c.last);
    c.last = {};
    if (at.op < 0) return;
    const Op& op = *options_.ops[size_t(at.op)];
    const Law& law = *options_.laws[size_t(at.law)];
    std::string program = "  // the arguments cannot be drawn\n";
    const Choices choices = choices_of(options_.seed, law, op, at.index);
    try {
      const Case decoded(op, choices, law.options);
      program = cpp_declarations(decoded.args) + "  " + cpp_call(op, decoded.args) + ";\n";
    } catch (const std::exception&) {}
    const std::string what = end_of(status);
    Failure crash;
    crash.op = op.name;
    crash.law = law.id;
    crash.message = what + format(" (case {})", at.index);
    crash.program = program;
    crash.kind = what;
    crash.blob = to_blob(record_of(law, op, choices, {}));
    crashes_.failures.push_back(std::move(crash));
    Tally& t = crashes_.tallies[{op.name, std::string(law.id)}];
    ++t.cases, ++t.failures;
    skipped_.emplace_back(at.op, at.law);
    if (!stop_ && options_.deadline() - elapsed() > 0.2 && skipped_.size() < kMostCrashes) start(c);
  }

  static double processor_time(pid_t pid) {
    clockid_t clock = 0;
    timespec t = {};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }

  /// A check that does not end is seen by the count that stands still: from the start where no time is set,
  /// else once time is up.
  void end_stuck() {
    for (Child& c : children_) {
      if (c.pid <= 0) continue;
      const uint64_t now = c.position->cases + c.position->index;
      const double used = processor_time(c.pid);
      if (now != c.seen) c.seen = now, c.since = elapsed(), c.used = used;
      if (used - c.used > kGrace || elapsed() - c.since > kStill) ::kill(c.pid, SIGKILL);
    }
  }

  void tell_all(int signal) {
    told_ = true;
    stopped_at_ = elapsed();
    for (const Child& c : children_)
      if (c.pid > 0) ::kill(c.pid, signal);
  }

  Progress now() const {
    Progress p{elapsed(), 0, 0};
    for (const Child& c : children_) {
      const Tally before = c.earlier.total();
      p.cases += before.cases + (c.pid > 0 ? c.position->cases : c.last.total().cases);
      p.failures += before.failures + (c.pid > 0 ? c.position->failures : c.last.total().failures);
    }
    return p;
  }

  const RunOptions& options_;
  const volatile std::sig_atomic_t& stop_;
  const std::function<void(const Progress&)>& progress_;
  Clock::time_point start_;
  std::vector<Child> children_;
  Position* positions_;
  std::vector<std::pair<int, int>> skipped_;
  Report crashes_;
  bool told_ = false;
  double stopped_at_ = 0;
};

}  // namespace

Report run(const RunOptions& options, const volatile std::sig_atomic_t& stop,
           const std::function<void(const Progress&)>& progress) {
  return Processes(options, stop, progress).run();
}

}  // namespace lamella::verify
