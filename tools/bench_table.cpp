// The table for people.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <unistd.h>

#include "lamella/core/version.h"
#include "lamella/kernels/kernels.h"

#include "bench_report.h"

namespace lamella::tools::bench {

namespace {
std::string printed(const char* how, double x) {
  char text[64];
  std::snprintf(text, sizeof text, how, x);
  return text;
}

std::string three_digits(double x) { return printed(x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x); }

std::string first_line_of(const char* command) {
  std::string out;
  if (FILE* const pipe = ::popen(command, "r")) {
    char text[128] = "";
    if (std::fgets(text, sizeof text, pipe)) out = text;
    ::pclose(pipe);
  }
  return out.substr(0, out.find('\n'));
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

void print_wrong(const Entry& e) {
  std::printf("  %-20s WRONG\n", e.kernel.c_str());
  std::string rest = e.wrong;
  const size_t end = rest.find('\n');
  print_wrapped(rest.substr(0, end), "    ");
  if (end != std::string::npos) std::printf("%s\n", rest.substr(end + 1).c_str());
}

std::string quartiles(const Spread& s) {
  const double unit = s.median < 1e3 ? 1 : s.median < 1e6 ? 1e3 : s.median < 1e9 ? 1e6 : 1e9;
  return three_digits(s.p25 / unit) + "-" + three_digits(s.p75 / unit) + (s.share() > kNoisy ? "~" : "");
}

void print_entry(const Result& r, const std::string& label, const std::vector<Timing>& rounds,
                 double roundings, double instructions, const RunSettings& settings) {
  if (rounds.empty()) return;
  const Spread s = spread_of(shown_times(rounds, settings.real_time));
  const double limit = limit_of(r, settings.real_time);
  const double peer = r.peer.empty() ? 0 : spread_of(shown_times(r.peer, settings.real_time)).least;
  const std::string error = roundings < 0 ? "" : three_digits(roundings);
  std::printf("  %-20.20s %8s %8s %-15s %10s %6s %6s %7s %8s\n", label.c_str(), time_text(s.least).c_str(),
              time_text(s.median).c_str(), quartiles(s).c_str(), rate_text(r, s.least).c_str(),
              limit > 0 ? printed("%.2f", limit / s.least).c_str() : "",
              peer > 0 ? printed("%.2f", peer / s.least).c_str() : "", error.c_str(),
              instructions < 0 ? "" : printed("%.3g", instructions).c_str());
}

int print_work(const Result& r, const RunSettings& settings) {
  std::printf("%s\n", r.name.c_str());
  if (!r.failed.empty()) {
    print_wrapped("not run: " + r.failed, "  ");
    return 0;
  }
  int wrong = 0;
  for (const Entry& e : r.entries) {
    if (!e.wrong.empty()) {
      print_wrong(e), ++wrong;
      continue;
    }
    const std::string label =
        (e.kernel.empty() ? "lamella" : e.kernel) + (e.is_default && r.entries.size() > 1 ? " *" : "");
    print_entry(r, label, e.rounds, e.roundings, e.instructions, settings);
  }
  std::string which;
  if (limit_of(r, settings.real_time, &which) > 0)
    print_entry(r, "(" + which + ")", r.limits.at(which), -1, -1, settings);
  print_entry(r, "torch", r.peer, -1, -1, settings);
  if (!settings.peer.empty() && r.peer.empty() && !r.no_peer.empty())
    print_wrapped("torch: " + r.no_peer, "  ");
  return wrong;
}

/// Rows that are to be read beside another one: the times' ratio.
void print_pairs(const Results& results, bool real_time) {
  const auto least = [&](const Result& r) {
    return r.entries.empty() ? 0.0 : spread_of(shown_times(r.entries[0].rounds, real_time)).least;
  };
  for (const Result& r : results.works)
    for (const Result& other : results.works)
      if (!r.against.empty() && r.against == other.name && least(r) > 0)
        std::printf("%s takes %.2f of the time of %s\n", r.name.c_str(),
                    least(r) / std::max(least(other), 1e-9), other.name.c_str());
}
}  // namespace

void print_wrapped(const std::string& text, const std::string& indent) {
  constexpr size_t kColumns = 100;
  std::string line = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      std::printf("%s\n", line.c_str());
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
    at = end + 1;
  }
  std::printf("%s\n", line.c_str());
}

std::string time_text(double ns) {
  if (ns < 1e3) return three_digits(ns) + " ns";
  if (ns < 1e6) return three_digits(ns / 1e3) + " us";
  return ns < 1e9 ? three_digits(ns / 1e6) + " ms" : three_digits(ns / 1e9) + " s";
}

std::string rate_text(const Result& r, double ns) {
  if (ns <= 0 || (r.flops <= 0 && r.bytes <= 0)) return "";
  return r.flops > 0 ? three_digits(r.flops / ns) + " GF/s" : three_digits(r.bytes / ns) + " GB/s";
}

Machine this_machine() {
  Machine m;
  char text[128] = "";
  const time_t now = std::time(nullptr);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", std::gmtime(&now));
  m.date = text;
  m.processor = processor_name(), m.isa = kernels::cpu_isa(), m.compiler = __VERSION__;
  m.version = LAMELLA_VERSION;
  m.commit = first_line_of("git -C '" LAMELLA_SOURCE_DIR "' describe --always --dirty 2>/dev/null");
  m.cores = int(::sysconf(_SC_NPROCESSORS_ONLN));
  if (::getloadavg(&m.load, 1) != 1) m.load = -1;
  return m;
}

int print_results(const Results& results, const RunSettings& settings) {
  std::printf("  %-20s %8s %8s %-15s %10s %6s %6s %7s %8s\n", "kernel", "least", "median", "quartiles",
              "rate", "limit", "torch", "error", "instr");
  int wrong = 0;
  bool noisy = false;
  for (const Result& r : results.works) {
    wrong += print_work(r, settings);
    noisy |= is_noisy(r, settings.real_time);
  }
  print_pairs(results, settings.real_time);
  std::printf("\n%s. rate, limit and torch go by the least.\n",
              settings.real_time ? "Times are the clock's" : "Times are the thread's own");
  std::printf(
      "* is what calls run; limit: share of the speed of the loop in brackets, in the same rounds;\n"
      "torch: how often as fast; error: the largest, in roundings; instr: instructions of a call.\n");
  if (!results.peer.empty())
    std::printf("torch is %s, called from Python: some 0.1 us of each call are Python's.\n",
                results.peer.c_str());
  if (noisy)
    print_wrapped(
        "~ Noisy: the middle half of the rounds is spread over more than 10 % of the median. Other work "
        "was on the machine; trust the least, and measure again.",
        "");
  if (results.interrupted) std::printf("Interrupted: this is what was measured.\n");
  if (wrong) std::printf("%d WRONG\n", wrong);
  return wrong;
}

}  // namespace lamella::tools::bench
