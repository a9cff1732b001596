// The matrix and the column as text.
#include "lamella/mutate/mutant_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "lamella/mutate/calibration.h"

namespace lamella::verify {

double Score::rate() const {
  return mutants == equivalent ? 1 : double(killed) / double(mutants - equivalent);
}

Score score_of(const std::vector<MutantResult>& results, std::string_view group) {
  Score s;
  for (const MutantResult& r : results) {
    if (!group.empty() && r.group != group) continue;
    ++s.mutants;
    s.killed += r.killed();
    s.equivalent += !r.killed() && r.equivalent;
  }
  return s;
}

namespace {
/// The entry below which `twentieths` of 20 lie.
double quantile(std::vector<double> v, size_t twentieths) {
  if (v.empty()) return 0;
  const size_t at = v.size() * twentieths / 20;
  std::nth_element(v.begin(), v.begin() + ptrdiff_t(at), v.end());
  return v[at];
}
double median(const std::vector<double>& v) { return quantile(v, 10); }
}  // namespace

std::vector<MatrixRow> matrix_of(const std::vector<MutantResult>& results) {
  std::vector<std::string> names;
  for (const Law& law : laws()) names.emplace_back(law.id);
  for (const Calibration& c : calibrations()) names.emplace_back(c.id);
  std::vector<MatrixRow> rows;
  for (const std::string& name : names) {
    MatrixRow row{name, {}, 0, 0, 0};
    for (const std::string_view group : kGroups) row.kills.emplace_back(std::string(group), 0);
    std::vector<double> cases;
    for (const MutantResult& r : results) {
      const auto kill = std::ranges::find(r.kills, name, &Kill::law);
      if (kill == r.kills.end()) continue;
      ++row.total;
      row.alone += r.kills.size() == 1;
      if (kill->how.empty()) cases.push_back(kill->cases);
      for (auto& [group, n] : row.kills) n += group == r.group;
    }
    row.median_cases = median(cases);
    rows.push_back(row);
  }
  return rows;
}

std::string matrix_text(const std::vector<MatrixRow>& matrix) {
  std::ostringstream out;
  const auto cell = [&](const std::string& text, int width) {
    out << std::string(size_t(std::max(1, width - int(text.size()))), ' ') << text;
  };
  out << "law                        ";
  for (const std::string_view group : kGroups) cell(std::string(group), 9);
  cell("all", 7), cell("alone", 7), cell("cases", 7);
  out << '\n';
  for (const MatrixRow& row : matrix) {
    out << row.law << std::string(row.law.size() < 27 ? 27 - row.law.size() : 1, ' ');
    for (const auto& [group, n] : row.kills) cell(n ? std::to_string(n) : ".", 9);
    cell(std::to_string(row.total), 7), cell(std::to_string(row.alone), 7);
    cell(format("{}", int(row.median_cases)), 7);
    out << '\n';
  }
  return out.str();
}

ChecksToKill checks_to_kill(const std::vector<MutantResult>& results, std::string_view group) {
  std::vector<double> checks;
  for (const MutantResult& r : results)
    if (r.killed() && r.checks > 0 && (group.empty() || r.group == group)) checks.push_back(double(r.checks));
  return {checks.size(), median(checks), quantile(checks, 19)};
}

std::map<std::string, std::vector<std::string>> witnesses(const std::vector<MutantResult>& results) {
  std::map<std::string, std::vector<const MutantResult*>> by_law;
  for (const MutantResult& r : results)
    for (const Kill& k : r.kills)
      if (k.how.empty()) by_law[k.law].push_back(&r);
  std::map<std::string, std::vector<std::string>> out;
  for (auto& [law, found] : by_law) {
    std::ranges::stable_sort(found, [&law = law](const MutantResult* a, const MutantResult* b) {
      const auto cases = [&](const MutantResult* r) {
        return std::ranges::find(r->kills, law, &Kill::law)->cases;
      };
      if (a->kills.size() != b->kills.size()) return a->kills.size() < b->kills.size();
      return cases(a) != cases(b) ? cases(a) < cases(b) : a->id < b->id;
    });
    std::set<std::string> groups;
    for (const MutantResult* r : found) {
      if (groups.size() >= 2 || !groups.insert(r->group).second) continue;
      out[law].push_back(r->id);
    }
  }
  return out;
}

namespace {
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '|');) out.push_back(cell);
  return out;
}
/// What stands between backquotes.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = text.find('`'); at != text.npos;) {
    const size_t end = text.find('`', at + 1);
    if (end == text.npos) break;
    out.push_back(text.substr(at + 1, end - at - 1));
    at = text.find('`', end + 1);
  }
  return out;
}
/// The laws of a row of the table: its second column; none for other lines.
std::vector<std::string> laws_of_line(const std::string& line) {
  const std::vector<std::string> cells = cells_of(line);
  return line.starts_with("| ") && cells.size() >= 5 ? quoted(cells[2]) : std::vector<std::string>{};
}
}  // namespace

std::string with_column(const std::string& markdown,
                        const std::map<std::string, std::vector<std::string>>& by_law) {
  std::istringstream in(markdown);
  std::ostringstream out;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> ids = laws_of_line(line);
    if (ids.empty()) {
      out << line << '\n';
      continue;
    }
    std::string column;
    for (const std::string& law : ids)
      if (const auto found = by_law.find(law); found != by_law.end())
        for (const std::string& id : found->second)
          if (column.find('`' + id + '`') == column.npos) column += (column.empty() ? "`" : ", `") + id + "`";
    const std::vector<std::string> cells = cells_of(line);
    out << '|' << cells[1] << '|' << cells[2] << '|' << cells[3] << "| " << column << " |\n";
  }
  return out.str();
}

std::map<std::string, std::vector<std::string>> read_column(const std::string& markdown) {
  std::map<std::string, std::vector<std::string>> out;
  std::istringstream in(markdown);
  for (std::string line; std::getline(in, line);)
    for (const std::string& law : laws_of_line(line)) out[law] = quoted(cells_of(line)[4]);
  return out;
}

}  // namespace lamella::verify
