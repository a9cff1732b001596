// Tables for people: the times with their spread, the instructions, the target, and the peer with the ratio.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

#include "support/figures.h"

namespace bench {
namespace {

/// Four digits and more only before the point.
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x < 1000 ? "%.1f" : "%.0f", x);
  return text;
}

std::string count_text(double x) { return x < 0 ? "-" : number(x); }

const Figure* find(const Figures& figures, const std::string& name) {
  const auto at =
      std::find_if(figures.rows.begin(), figures.rows.end(), [&](const Figure& f) { return f.name == name; });
  return at == figures.rows.end() ? nullptr : &*at;
}

void print_cells(const Figure& f, const std::string& target) {
  std::printf("%-40s %9s %9s %9s %9s %8s %9s", f.name.c_str(), number(f.times.least).c_str(),
              number(f.times.p25).c_str(), number(f.times.median).c_str(), number(f.times.p75).c_str(),
              target.c_str(), count_text(f.instructions).c_str());
}

void print_peer(const Figure& f, const Figure* ours) {
  std::printf(" | %9s %9s %9s", number(f.times.least).c_str(), number(f.times.median).c_str(),
              count_text(f.instructions).c_str());
  if (ours) std::printf(" %6.1fx", f.times.least / ours->times.least);
}

std::string target_of(const Row& row, const Figure& f) {
  if (row.target_ns <= 0) return "-";
  return number(row.target_ns) + (f.times.median > row.target_ns ? "!" : " ");
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown processor";
}

std::string commit() {
  char text[64] = "";
  FILE* pipe = popen("git -C '" LAMELLA_SOURCE_DIR "' describe --always --dirty 2>/dev/null", "r");
  if (pipe) {
    if (!std::fgets(text, sizeof text, pipe)) text[0] = 0;
    pclose(pipe);
  }
  const std::string line(text);
  return line.empty() ? "no commit" : line.substr(0, line.find('\n'));
}

void print_parts_of_loops(const Rows& rows, const Figures& ours) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const Figure* loop = rows[i].loop.empty() ? nullptr : find(ours, rows[i].loop);
    if (!loop) continue;
    const double speed = speed_beside(ours.rows[i].times, loop->times);
    std::printf("%s: %.2f of the speed of the %s", rows[i].name.c_str(), speed, rows[i].loop.c_str());
    if (rows[i].target_of_loop > 0)
      std::printf(" (target %.2f%s)", rows[i].target_of_loop, speed < rows[i].target_of_loop ? "!" : "");
    std::printf("\n");
  }
}

}  // namespace

void print_machine(const std::string& isa) {
  char date[32];
  const time_t now = time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", std::gmtime(&now));
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = -1;
  std::printf("%s, %ld cores, %s; g++ %s; %s UTC, %s; load %.1f\n", cpu_name().c_str(),
              sysconf(_SC_NPROCESSORS_ONLN), isa.c_str(), __VERSION__, date, commit().c_str(), load);
}

void print_table(const Rows& rows, const Figures& ours, const Figures& peer) {
  const bool beside = !peer.rows.empty();
  std::printf("%-40s %9s %9s %9s %9s %8s %9s", "ns per call, one thread", "least", "p25", "median", "p75",
              "target", "instr");
  if (beside) std::printf(" | %9s %9s %9s %7s", "peer", "median", "instr", "ratio");
  std::printf("\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    print_cells(ours.rows[i], target_of(rows[i], ours.rows[i]));
    if (const Figure* other = find(peer, rows[i].name)) print_peer(*other, &ours.rows[i]);
    std::printf("\n");
  }
  for (const Figure& other : peer.rows) {
    if (find(ours, other.name)) continue;
    std::printf("%-40s %9s %9s %9s %9s %8s %9s", other.name.c_str(), "-", "-", "-", "-", "-", "-");
    print_peer(other, nullptr);
    std::printf("\n");
  }
  print_parts_of_loops(rows, ours);
  std::printf("! is over the target; instr is counted under valgrind, where kernels are at most AVX2's\n");
  if (beside) std::printf("peer: %s, %s; ratio of the least\n", peer.title.c_str(), peer.isa.c_str());
  if (!ours.why_not.empty()) std::printf("no instructions: %s\n", ours.why_not.c_str());
}

}  // namespace bench
