// Two programs, since their libraries know nothing of each other: the peer's figures come through a pipe.
#include "support/figures.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench {

Figures measure(const Rows& rows, const std::string& title, const std::string& isa, bool counted) {
  const Counts counts = counted ? count_rows(rows) : Counts{std::vector<double>(rows.size(), -1), isa, ""};
  const std::vector<Times> times = time_rows(rows);
  Figures figures{title, isa, counts.why_not, {}};
  for (size_t i = 0; i < rows.size(); ++i)
    figures.rows.push_back({rows[i].name, times[i], counts.per_call[i]});
  return figures;
}

void write_figures(const Figures& figures) {
  std::printf("%s\t%s\t%s\n", figures.title.c_str(), figures.isa.c_str(), figures.why_not.c_str());
  for (const Figure& f : figures.rows)
    std::printf("%s\t%.4f\t%.4f\t%.4f\t%.4f\t%.2f\n", f.name.c_str(), f.times.least, f.times.p25,
                f.times.median, f.times.p75, f.instructions);
}

Figures read_figures(const std::string& command) {
  Figures figures;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return figures.why_not = "it could not be started", figures;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe)) {
    std::istringstream line(std::string(buffer, std::string(buffer).find_last_not_of('\n') + 1));
    if (figures.title.empty()) {
      std::getline(line, figures.title, '\t');
      std::getline(line, figures.isa, '\t');
      std::getline(line, figures.why_not, '\t');
      continue;
    }
    Figure f;
    std::getline(line, f.name, '\t');
    if (line >> f.times.least >> f.times.p25 >> f.times.median >> f.times.p75 >> f.instructions)
      figures.rows.push_back(std::move(f));
  }
  if (pclose(pipe) != 0) return {"", "", "its program failed", {}};
  return figures;
}

}  // namespace bench
