// Questions about standard output and signals: slow pipes, interruptions, output that is lost, nohup.
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "calibration_aids.h"
#include "calibrations.h"
#include "interrupt.h"
#include "whole_file.h"

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;

volatile std::sig_atomic_t interruptions = 0;
void on_alarm(int) { interruptions = interruptions + 1; }

/// SIGALRM five thousand times a second; calls of the system that wait are not begun again by themselves.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = on_alarm;
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &often, &timer_);
  }
  ~Interruptions() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
    ::setitimer(ITIMER_REAL, &timer_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  struct sigaction before_ {};
  itimerval timer_{};
};

/// Takes what a pipe has: a page or less each time the writer has been interrupted thrice, or 3 ms later. The
/// first ends a write that had begun; only the next finds one of which nothing has gone through.
std::string read_slowly(int fd) {
  std::string out;
  for (char page[4096];;) {
    const auto seen = interruptions;
    for (int k = 0; k < 60 && interruptions < seen + 3; ++k) ::usleep(50);
    const ssize_t n = ::read(fd, page, sizeof page);
    if (n <= 0) return out;
    out.append(page, size_t(n));
  }
}

/// What arrives at the end of a narrow pipe that is standard output meanwhile.
std::string arrived(const std::string& bytes, bool aside, std::string& raised) {
  int ends[2];
  LAMELLA_CHECK(::pipe2(ends, O_CLOEXEC) == 0, Usage, "no pipe");
  ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  sigset_t alarms, before;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarms, &before);
  std::string got;
  std::thread reader([&] { got = read_slowly(ends[0]); });  // the alarms are this thread's
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::fflush(stdout);
  const int out = ::dup(STDOUT_FILENO);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  {
    const TextAside text(aside);
    const Interruptions often;
    raised = raised_by([&] { write_output("-", bytes); });
  }
  ::dup2(out, STDOUT_FILENO);
  ::close(out);
  reader.join();
  ::close(ends[0]);
  return got;
}

std::string slow_pipes_get_all() {
  Dice dice(4);
  for (const size_t size : {0, 1, 4096, 4097, 30000})
    for (const bool aside : {false, true}) {
      const std::string bytes = dice.bytes(size);
      std::string raised;
      const std::string got = arrived(bytes, aside, raised);
      if (!raised.empty()) return format("{} bytes into a slow pipe: {}", size, raised);
      if (const std::string d = first_difference(got, bytes); !d.empty()) return d;
    }
  return "";
}

std::string lost_output_is_an_error() {
  const Folder scratch;
  struct Run {
    std::vector<std::string> words;
    rlim_t room;
  };
  const Run runs[] = {{{"lamella", "--version"}, 3},
                      {{"lamella", "ops", "--help"}, 0},
                      {{"lamella", "verify", "--help"}, 700},
                      {{"lamella", "merge", "--help"}, 1 << 20}};
  for (const Run& r : runs) {
    const int status = status_of_program(r.words, scratch.path / "output", r.room);
    if (status != (r.room > 9999 ? 0 : 2))
      return format("lamella {} ends with {} when {} bytes of its output arrive", r.words[1], status, r.room);
  }
  return "";
}

constexpr int kAsking[] = {SIGINT, SIGTERM, SIGHUP};

/// With those of `ignored` ignored before, the others ask to stop, and none of them ends the process.
std::string after_signals(unsigned ignored) {
  ::setpgid(0, 0);  // from here on nobody else's signals
  for (size_t k = 0; k < 3; ++k) std::signal(kAsking[k], ignored & (1u << k) ? SIG_IGN : SIG_DFL);
  const volatile std::sig_atomic_t& stop = stop_on_signals();
  if (stop) return "";  // this run is about to end
  for (const bool others : {false, true})
    for (size_t k = 0; k < 3; ++k) {
      const bool is_ignored = ignored & (1u << k);
      if (is_ignored == others) continue;
      ::raise(kAsking[k]);
      if (others != (stop != 0))
        return format("{} {} stop", ::strsignal(kAsking[k]),
                      others ? "does not ask to" : "was ignored before and asks to");
    }
  return "";
}

std::string signals_ask_to_stop() {
  for (unsigned ignored = 0; ignored < 8; ++ignored)
    if (const std::string wrong = said_apart([ignored] { return after_signals(ignored); }, 1); !wrong.empty())
      return wrong;
  return "";
}
}  // namespace

Calibrations calibrations_of_output() {
  return {
      {"slow_pipes_get_all",
       "What is written to a pipe arrives whole and in order, however little it takes at once and however "
       "often signals interrupt.",
       guarded<slow_pipes_get_all>},
      {"lost_output_is_an_error", "A command whose output does not arrive ends with status 2.",
       guarded<lost_output_is_an_error>},
      {"signals_ask_to_stop",
       "Interrupt, termination and hangup ask a run to stop, except those that were ignored before.",
       guarded<signals_ask_to_stop>},
  };
}

}  // namespace lamella::tools
