// Planted bugs in processes of their own, several at once.
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/verify/mutant_run.h"

namespace lamella::verify {

namespace {

struct Child {
  size_t index;
  pid_t pid;
  int fd;
  std::string said;
};

Child start(const Planted& p, size_t index, const MutantOptions& options) {
  int ends[2];
  LAMELLA_CHECK(pipe(ends) == 0, Usage, "mutate: no pipe");
  const pid_t pid = fork();
  LAMELLA_CHECK(pid >= 0, Usage, "mutate: no process");
  if (pid != 0) {
    close(ends[1]);
    return {index, pid, ends[0], {}};
  }
  close(ends[0]);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, 1), dup2(nowhere, 2);  // a broken heap has much to say
  const rlimit none{0, 0}, most{rlim_t{8} << 30, rlim_t{8} << 30};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_AS, &most);
  hunt(p, options, {ends[1]});
  _exit(0);
}

void parse(const std::string& said, MutantResult& r, std::string& last, bool& ended) {
  std::istringstream lines(said);
  std::string line;
  int64_t reached = 0, laws = 0, checks = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "try") words >> last;
    else if (word == "caught") {
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

MutantResult finish(const Child& c, const Planted& p) {
  MutantResult r;
  r.id = p.id, r.group = p.group, r.what = p.what;
  int status = 0;
  rusage used{};
  wait4(c.pid, &status, 0, &used);
  const auto ms = [](const timeval& t) { return double(t.tv_sec) * 1e3 + double(t.tv_usec) * 1e-3; };
  r.cpu_ms = ms(used.ru_utime) + ms(used.ru_stime);
  std::string last;
  bool ended = false;
  parse(c.said, r, last, ended);
  if (ended) return r;
  const bool hung = WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
  r.kills.push_back({last, 0, hung ? "hangs" : "crash", {}});
  return r;
}

}  // namespace

std::vector<MutantResult> run_mutants(const std::vector<Planted>& planted, const MutantOptions& options,
                                      const std::function<void(const MutantResult&)>& done) {
  std::vector<MutantResult> results(planted.size());
  std::vector<Child> children;
  size_t next = 0;
  while (next < planted.size() || !children.empty()) {
    while (next < planted.size() && children.size() < size_t(std::max(1, options.processes))) {
      children.push_back(start(planted[next], next, options));
      ++next;
    }
    std::vector<pollfd> fds;
    for (const Child& c : children) fds.push_back({c.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), -1);
    for (size_t k = fds.size(); k-- > 0;) {
      if (!fds[k].revents) continue;
      char buffer[4096];
      const ssize_t n = read(children[k].fd, buffer, sizeof buffer);
      if (n > 0) {
        children[k].said.append(buffer, size_t(n));
        continue;
      }
      close(children[k].fd);
      MutantResult& r = results[children[k].index];
      r = finish(children[k], planted[children[k].index]);
      children.erase(children.begin() + long(k));
      if (done) done(r);
    }
  }
  return results;
}

}  // namespace lamella::verify
