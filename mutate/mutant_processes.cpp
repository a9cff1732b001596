// Planted bugs in processes of their own, several at once.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/mutate/mutant_run.h"

namespace lamella::verify {

namespace {

/// Where each process says what it tries, without a call of the system.
class Board {
 public:
  explicit Board(size_t n) : bytes_(n * sizeof(std::string_view)) {
    void* shared = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    LAMELLA_CHECK(shared != MAP_FAILED, OutOfMemory, "mutate: no shared memory for {} processes", n);
    at_ = static_cast<std::string_view*>(shared);
  }
  ~Board() { munmap(at_, bytes_); }
  Board(const Board&) = delete;
  std::string_view* slot(size_t k) { return at_ + k; }

 private:
  size_t bytes_;
  std::string_view* at_;  ///< of texts that are in all processes: ids of laws
};

struct Child {
  size_t index;
  size_t slot;
  pid_t pid;
  int fd;
  std::string said;
};

Child start(const Planted& p, size_t index, size_t slot, Board& board, const MutantOptions& options) {
  int ends[2];
  LAMELLA_CHECK(pipe(ends) == 0, Usage, "mutate: no pipe: {}", std::strerror(errno));
  *board.slot(slot) = "start";
  const pid_t pid = fork();
  if (pid < 0) close(ends[0]), close(ends[1]);
  LAMELLA_CHECK(pid >= 0, Usage, "mutate: no process: {}", std::strerror(errno));
  if (pid != 0) {
    close(ends[1]);
    return {index, slot, pid, ends[0], {}};
  }
  close(ends[0]);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) signal(s, SIG_IGN);  // the parent says when it is over
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, 1), dup2(nowhere, 2);  // a broken heap has much to say
  const rlimit none{0, 0}, most{rlim_t{8} << 30, rlim_t{8} << 30};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_AS, &most);
  hunt(p, options, {ends[1], board.slot(slot)});
  _exit(0);
}

void parse(const std::string& said, MutantResult& r, bool& ended) {
  std::istringstream lines(said);
  std::string line;
  int64_t reached = 0, laws = 0, checks = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "caught") {
      Kill k;
      int64_t at = 0;
      words >> k.law >> k.cases >> at;
      std::getline(words >> std::ws, k.message);
      if (r.kills.empty()) r.checks = at;
      r.kills.push_back(k);
    } else if (word == "reached") {
      words >> reached >> laws >> checks;
      r.checks = checks;
      r.reason = reached < 0 ? format("{} checks of {} laws", checks, laws)
                             : format("ran {} times in {} checks", reached, checks);
    } else if (word == "equal" || word == "differs") {
      int64_t cases = 0;
      words >> cases;
      std::string difference;
      std::getline(words >> std::ws, difference);
      r.equivalent = word == "equal" && cases >= 100000;
      r.reason += word == "equal" ? format("; equal bits in {} cases", cases)
                                  : format("; differs in case {}: {}", cases, difference);
    } else if (word == "end") ended = true;
  }
}

MutantResult finish(const Child& c, const Planted& p, std::string_view last) {
  MutantResult r;
  r.id = p.id, r.group = p.group, r.what = p.what;
  int status = 0;
  rusage used{};
  wait4(c.pid, &status, 0, &used);
  const auto ms = [](const timeval& t) { return double(t.tv_sec) * 1e3 + double(t.tv_usec) * 1e-3; };
  r.cpu_ms = ms(used.ru_utime) + ms(used.ru_stime);
  bool ended = false;
  parse(c.said, r, ended);
  if (ended) return r;
  const bool hung = WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
  if (last == kComparison)
    r.reason = std::string(hung ? "hangs" : "dies") + " where it is compared with the right one";
  else r.kills.push_back({std::string(last), 0, hung ? "hangs" : "crash", {}});
  return r;
}

/// Whether the process has ended; keeps what it says.
bool read_some(Child& c) {
  char buffer[4096];
  const ssize_t n = read(c.fd, buffer, sizeof buffer);
  if (n > 0) c.said.append(buffer, size_t(n));
  return n == 0 || (n < 0 && errno != EINTR);
}

void give_up(const std::vector<Child>& children) {
  for (const Child& c : children) kill(c.pid, SIGKILL);
  for (const Child& c : children) close(c.fd), waitpid(c.pid, nullptr, 0);
}

}  // namespace

std::vector<MutantResult> run_mutants(const std::vector<Planted>& planted, const MutantOptions& options,
                                      const std::function<void(const MutantResult&)>& done) {
  std::vector<MutantResult> results(planted.size());
  std::vector<Child> children;
  std::vector<size_t> slots(size_t(std::max(1, options.processes)));
  for (size_t k = 0; k < slots.size(); ++k) slots[k] = k;
  Board board(slots.size());
  size_t next = 0;
  while ((next < planted.size() || !children.empty()) && !(options.stop && *options.stop)) {
    for (; next < planted.size() && !slots.empty(); ++next) {
      children.push_back(start(planted[next], next, slots.back(), board, options));
      slots.pop_back();
    }
    std::vector<pollfd> fds;
    for (const Child& c : children) fds.push_back({c.fd, POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0) continue;  // interrupted
    for (size_t k = fds.size(); k-- > 0;) {
      if (!fds[k].revents || !read_some(children[k])) continue;
      const Child& c = children[k];
      close(c.fd);
      MutantResult& r = results[c.index];
      r = finish(c, planted[c.index], *board.slot(c.slot));
      slots.push_back(c.slot);
      children.erase(children.begin() + long(k));
      if (done) done(r);
    }
  }
  give_up(children);
  std::erase_if(results, [](const MutantResult& r) { return r.id.empty(); });
  return results;
}

}  // namespace lamella::verify
