// A run in several processes: each sends snapshots of its report through a pipe; the parent outlives their
// crashes.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <new>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "lamella/core/guard.h"
#include "lamella/verify/run/record.h"
#include "lamella/verify/run/wire.h"
#include "lamella/verify/run/worker.h"

namespace lamella::verify {

namespace {

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
  bool done = false;           ///< it has said so
  std::string received;
  Report last, earlier;  ///< of this process, and of those it replaces
};

/// Memory that processes share; pages that nobody touches cost nothing.
void* shared_pages(size_t bytes) {
  void* shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  LAMELLA_CHECK(shared != MAP_FAILED, OutOfMemory, "verify: no shared memory of {} bytes", bytes);
  return shared;
}
/// Checks start threads and processes of their own; one that cannot would be the failure of an operator.
/// Error usage.
void check_room_for_threads(size_t processes) {
  // A worker itself and a check apart; one of them at a time the threads of kernels and of a law.
  const size_t wanted = std::max<size_t>(24, 3 * processes);
  std::vector<std::thread> started;
  started.reserve(wanted);
  std::string refused;
  std::promise<void> all;
  const std::shared_future<void> wait = all.get_future().share();
  try {
    while (started.size() < wanted) started.emplace_back([wait] { wait.wait(); });
  } catch (const std::system_error& e) { refused = e.what(); }
  all.set_value();
  for (std::thread& t : started) t.join();
  LAMELLA_CHECK(
      refused.empty(), Usage,
      "verify: {} threads or processes could be started, expected {} for {} workers ({}; see ulimit -u)",
      started.size(), wanted, processes, refused);
}

constexpr size_t kBursts = size_t{1} << 20;  ///< kept of a process: those of a quarter of an hour or more

class Processes {
 public:
  Processes(const RunOptions& options, const volatile std::sig_atomic_t& stop,
            const std::function<void(const Progress&)>& progress)
      : options_(options),
        stop_(stop),
        progress_(progress),
        start_(Clock::now()),
        children_(size_t(options.processes)) {
    positions_ = new (shared_pages(sizeof(Position) * children_.size())) Position[children_.size()];
    ran_ = static_cast<Burst*>(shared_pages(sizeof(Burst) * kBursts * children_.size()));
    workers_stop_ = new (shared_pages(sizeof *workers_stop_)) std::sig_atomic_t(0);
  }
  ~Processes() {
    ::munmap(positions_, sizeof(Position) * children_.size());
    ::munmap(ran_, sizeof(Burst) * kBursts * children_.size());
    ::munmap(const_cast<std::sig_atomic_t*>(workers_stop_), sizeof *workers_stop_);
  }
  Processes(const Processes&) = delete;

  Report run() {
    check_room_for_threads(children_.size());
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i].index = int(i);
      children_[i].position = positions_ + i;
      start(children_[i]);
    }
    LAMELLA_CHECK(alive(), Usage, "verify: no process: {}", std::strerror(refused_));
    while (alive()) {
      receive();
      if (stop_ && !*workers_stop_) *workers_stop_ = 1, stopped_at_ = elapsed();
      if (stop_ && elapsed() > stopped_at_ + kGrace) given_up_ = true, kill_all();
      end_stuck();
      if (progress_) progress_(now());
    }
    Report all;
    for (const Child& c : children_) all.merge(c.earlier);
    all.merge(crashes_);
    all.seconds = elapsed();
    if (options_.settle) settle_all(all);
    std::ranges::sort(all.failures, [](const Failure& a, const Failure& b) {
      const auto place = [](const Failure& f) {  // the simplest first, which is nearest to the cause
        return std::tuple(f.depth, f.program.size(), std::string_view(f.law), std::string_view(f.op),
                          str(f.kind), f.index, f.process, std::string_view(f.blob));
      };
      return place(a) < place(b);
    });
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Seconds until a process is killed that was told to stop, or whose count stands still, whatever it does.
  static constexpr double kGrace = 20, kForever = 600;
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
    c.seen = ~uint64_t{0}, c.done = false;
    *c.position = {};
    c.position->ran = ran_ + kBursts * size_t(c.index), c.position->room = kBursts;
    const pid_t parent = ::getpid();
    c.pid = ::fork();
    if (c.pid < 0) {  // the others go on: what was found is not lost
      refused_ = errno;
      std::fprintf(stderr, "verify: a process could not be started, the others go on: %s\n",
                   std::strerror(refused_));
      ::close(ends[0]), ::close(ends[1]);
      return;
    }
    if (c.pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what it finds
      if (::getppid() != parent) ::_exit(0);
      ::close(ends[0]);
      serve(c, ends[1]);
    }
    ::close(ends[1]);
    c.pipe = ends[0];
  }

  [[noreturn]] void serve(const Child& c, int fd) {
    // The parent says when it is over. A check that waits for a program of its own would be woken by a signal
    // to the group, or the program ended, and count as failed.
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
    RunOptions mine = options_;
    mine.seconds = std::max(0.0, options_.seconds - elapsed());
    describe_faults(c.position->fault, sizeof c.position->fault);
    Worker worker(mine, c.index, c.position);
    worker.resume(c.earlier);
    for (const auto& [op, law] : skipped_) worker.skip(op, law);
    const auto send = [&] {
      const std::string text = encode(worker.report());
      std::string framed;
      put(framed, text);
      write_all(fd, framed);
    };
    worker.run(*workers_stop_, send);
    send();
    std::string nothing_more;
    put(nothing_more, "");
    write_all(fd, nothing_more);
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
    keep_what_ran(c);
    c.earlier.merge(c.last);
    c.last = {};
    if (!c.done) died(c, status);  // a check may also exit with status 0
  }

  /// What its failures may need is kept before another process takes the place.
  void keep_what_ran(Child& c) {
    for (const Failure& f : c.last.failures) ran_before_[id_of(f)] = bursts_before(c, f.ran);
  }
  static std::string id_of(const Failure& f) {
    return format("{} {} {} {} {}", f.op, f.law, f.process, f.index, str(f.kind));
  }
  /// The first `n` of them, without the case that came last.
  std::vector<Burst> bursts_before(const Child& c, uint64_t n) const {
    std::vector<Burst> out(c.position->ran, c.position->ran + std::min(n, c.position->bursts));
    if (!out.empty() && --out.back().count == 0) out.pop_back();
    return out;
  }

  void take_snapshots(Child& c) {
    for (;;) {
      const size_t colon = c.received.find(':');
      if (colon == std::string::npos) return;
      const size_t n = std::stoul(c.received.substr(0, colon));
      if (c.received.size() < colon + 1 + n) return;
      const std::string text = c.received.substr(colon + 1, n);
      c.received.erase(0, colon + 1 + n);
      if (text.empty()) c.done = true;
      else c.last = decode_report(text);
    }
  }

  /// The check that was running is a failure; another process goes on without its pair. A process that ends
  /// before its first case would end again: error usage.
  void died(Child& c, int status) {
    const Position at = *c.position;
    if (given_up_) return;
    if (at.op < 0) {
      if (stop_) return;
      kill_all();
      fail(ErrorCode::Usage, "verify: a process {} before its first case", str(end_of(status)));
    }
    const Op& op = *options_.ops[size_t(at.op)];
    const Law& law = *options_.laws[size_t(at.law)];
    const Choices choices = choices_of(options_.seed, law, op, at.index);
    Failure crash;
    crash.op = op.name;
    crash.law = law.id;
    crash.kind = end_of(status);
    crash.where = format(" (case {} of seed {})", at.index, options_.seed);
    crash.message = str(crash.kind) + (at.fault[0] ? format(": {}", at.fault) : "") + crash.where;
    crash.blob = to_blob(record_of(law, op, choices, {}));
    crash.index = at.index, crash.process = c.index, crash.checks = at.cases + 1;
    ran_before_[id_of(crash)] = bursts_before(c, at.bursts);
    crashes_.failures.push_back(std::move(crash));
    Tally& t = crashes_.tallies[{op.name, std::string(law.id)}];
    ++t.cases, ++t.failures;
    skipped_.emplace_back(at.op, at.law);
    if (!stop_ && options_.deadline() - elapsed() > 0.2 && skipped_.size() < kMostCrashes) start(c);
  }

  /// Every failure once more, in fresh processes: the shared third of the time, and a second more.
  void settle_all(Report& all) {
    const double until = elapsed() + std::min(options_.seconds, 60.0) / 3 + 2;
    for (Failure& f : all.failures) {
      if (stop_ || elapsed() >= until) break;
      const std::vector<Burst> ran = ran_before_[id_of(f)];
      if (f.where.empty()) f.where = format(" (case {} of seed {})", f.index, options_.seed);
      settle(f, options_, ran, std::min(4.0, until - elapsed()));
    }
  }

  /// A check that does not end is seen by the count that stands still while processor time goes on, or by
  /// threads that all wait.
  void end_stuck() {
    for (Child& c : children_) {
      if (c.pid <= 0) continue;
      const uint64_t now = c.position->cases + c.position->index;
      const double used = processor_time(c.pid);
      if (now != c.seen) c.seen = now, c.since = elapsed(), c.used = used;
      // A check may wait for a process of its own, which a busy machine delays: longer than it may compute.
      const bool waits =
          used - c.used < 0.1 && elapsed() - c.since > 4 * options_.patience && !wants_to_run(c.pid);
      if (used - c.used > options_.patience || waits || elapsed() - c.since > kForever)
        ::kill(c.pid, SIGKILL);
    }
  }

  void kill_all() {
    for (const Child& c : children_)
      if (c.pid > 0) ::kill(c.pid, SIGKILL);
  }

  Progress now() const {
    const Tally ended = crashes_.total();
    Progress p{elapsed(), ended.cases, ended.failures, ended.failures};
    for (const Child& c : children_) {
      const Tally before = c.earlier.total();
      p.cases += before.cases + (c.pid > 0 ? c.position->cases : 0);
      p.failures += before.failures + (c.pid > 0 ? c.position->failures : 0);
    }
    return p;
  }

  const RunOptions& options_;
  const volatile std::sig_atomic_t& stop_;
  const std::function<void(const Progress&)>& progress_;
  Clock::time_point start_;
  std::vector<Child> children_;
  Position* positions_;
  Burst* ran_;
  std::map<std::string, std::vector<Burst>> ran_before_;  ///< by failure
  std::vector<std::pair<int, int>> skipped_;
  Report crashes_;
  /// Shared with the workers: they do not hear the signals, nor would those of a shell's background job.
  volatile std::sig_atomic_t* workers_stop_;
  bool given_up_ = false;  ///< the workers did not stop in time; that they were killed says nothing of laws
  int refused_ = 0;        ///< why a process could not be started, as errno says it
  double stopped_at_ = 0;
};

}  // namespace

Report run(const RunOptions& options, const volatile std::sig_atomic_t& stop,
           const std::function<void(const Progress&)>& progress) {
  return Processes(options, stop, progress).run();
}

}  // namespace lamella::verify
