// The file: comments, the terms under which its figures hold, then one row a line.
#include "support/gate.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

namespace bench {
namespace {

constexpr int kSkipped = 77;
/// What a rebuild may move by inlining. No row is too small for it: counts are exact (a program gives the
/// same each time, but for a few instructions in the rows of thousands, where addresses are hashed), and
/// calls are made of such rows.
constexpr double kPart = 0.03;

/// Counts compare only if they were made by the same compiler, for the same instruction set.
std::string terms(const Counts& counts) { return "g++ " + std::to_string(__GNUC__) + ", " + counts.isa; }

struct Committed {
  std::string terms;
  std::map<std::string, double> per_call;
};

std::optional<Committed> read_committed(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  Committed committed;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) committed.terms = line;
    else committed.per_call[line.substr(tab + 1)] = std::atof(line.c_str());
  }
  return committed;
}

bool is_more(double now, double then) { return now > then * (1 + kPart); }

/// One line of the table; false if the row holds the test up.
bool print_row(const std::string& name, double now, const Committed& committed) {
  const auto at = committed.per_call.find(name);
  if (at == committed.per_call.end()) {
    std::printf("%-50s %12.1f %12s  no committed figure\n", name.c_str(), now, "-");
    return false;
  }
  const double then = at->second;
  const char* verdict = is_more(now, then) ? "MORE" : is_more(then, now) ? "less: --update keeps it" : "";
  const double percent = 100 * (now / then - 1);
  std::printf("%-50s %12.1f %12.1f %+7.1f %%  %s\n", name.c_str(), now, then,
              std::abs(percent) < 0.05 ? 0.0 : percent, verdict);
  return !is_more(now, then);
}

bool is_gated(const Rows& rows, const std::string& name) {
  for (const Row& row : rows)
    if (row.name == name) return row.count == Count::Gated;
  return false;
}

}  // namespace

int check_instructions(const Rows& rows, const std::string& path) {
  const Counts counts = count_rows(rows);
  if (!counts.why_not.empty()) return std::printf("skipped: %s\n", counts.why_not.c_str()), kSkipped;
  const std::optional<Committed> committed = read_committed(path);
  if (!committed) return std::printf("%s cannot be read\n", path.c_str()), 1;
  if (committed->terms != terms(counts)) {
    std::printf("skipped: the figures are for %s, this program is %s\n", committed->terms.c_str(),
                terms(counts).c_str());
    return kSkipped;
  }
  std::printf("%-50s %12s %12s\n", ("instructions per call, " + terms(counts)).c_str(), "now", "committed");
  bool good = true;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].count == Count::Gated) good &= print_row(rows[i].name, counts.per_call[i], *committed);
  for (const auto& [name, then] : committed->per_call) {
    if (is_gated(rows, name)) continue;
    std::printf("%-50s %12s %12.1f  no such row\n", name.c_str(), "-", then);
    good = false;
  }
  if (!good)
    std::printf(
        "a row needs over %.0f %% more, or the rows differ: make it cheaper, or say why not in the commit "
        "that "
        "runs `./run bench overhead --update`\n",
        100 * kPart);
  return good ? 0 : 1;
}

int update_instructions(const Rows& rows, const std::string& path) {
  const Counts counts = count_rows(rows);
  if (!counts.why_not.empty()) return std::printf("not updated: %s\n", counts.why_not.c_str()), 1;
  std::ofstream out(path);
  out << "# Instructions per call, held by the test bench.instructions. Written by `./run bench overhead "
         "--update`.\n"
      << terms(counts) << '\n';
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].count != Count::Gated) continue;
    char figure[32];
    std::snprintf(figure, sizeof figure, "%.1f", counts.per_call[i]);
    out << figure << '\t' << rows[i].name << '\n';
  }
  out.flush();
  if (!out) return std::printf("%s cannot be written\n", path.c_str()), 1;
  std::printf("%s is rewritten\n", path.c_str());
  return 0;
}

}  // namespace bench
