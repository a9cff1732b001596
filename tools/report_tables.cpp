// Heat tables: what is in a cell, and how it looks.
#include "report_tables.h"

#include <algorithm>
#include <cmath>

#include "lamella/core/dtype.h"

namespace lamella::tools {

using nlohmann::json;

void CellCounts::add(const CellCounts& other) {
  cases += other.cases, failures += other.failures, discards += other.discards, seconds += other.seconds;
}

std::string short_number(double n) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  for (; n >= 999.5 && unit < 4; ++unit) n /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit && n < 9.95 ? "%.1f%s" : "%.0f%s", n, kUnits[unit]);
  return text;
}

Grid grid_of_laws(const json& run) {
  Grid grid;
  grid.rows_are = "operator", grid.absent = "the law does not apply", grid.gaps = true;
  for (const json& law : run["laws"])
    grid.columns.emplace_back(law["id"], law["number"].dump() + ": " + law["statement"].get<std::string>());
  for (const auto& [op, cells] : run["operators"].items())
    for (const auto& [law, cell] : cells.items())
      grid.cells[op][law] = {cell["cases"], cell["failures"], cell["discards"], cell["seconds"]};
  return grid;
}

namespace {
/// Dtypes as the library lists them; stacks by depth.
std::pair<int, std::string> rank_of(Facet facet, const std::string& name) {
  if (facet == Facet::DType)
    for (int d = 0; d < kDTypeCount; ++d)
      if (lamella::name(DType(d)) == name) return {d, name};
  if (facet != Facet::Stack) return {kDTypeCount, name};
  if (name == "none") return {-1, name};
  if (name.rfind("depth ", 0) == 0) return {0, name};
  return {1 + int(std::count(name.begin(), name.end(), '(')), name};
}
}  // namespace

Grid grid_of(const json& run, Facet rows, Facet columns) {
  static constexpr const char* kNames[] = {"operator", "law", "dtype", "stack"};
  Grid grid;
  grid.rows_are = kNames[int(rows)], grid.absent = "no case";
  std::map<std::pair<int, std::string>, bool> seen;
  const auto add = [&](const json& cell, const char* key, const std::string& op, const std::string& law) {
    if (!cell.contains(key)) return;
    for (const auto& [dtype, stacks] : cell[key].items())
      for (const auto& [stack, n] : stacks.items()) {
        const std::string names[] = {op, law, dtype, stack};
        CellCounts& counts = grid.cells[names[int(rows)]][names[int(columns)]];
        (std::string_view(key) == "strata" ? counts.cases : counts.failures) += n.get<uint64_t>();
        seen[rank_of(columns, names[int(columns)])] = true;
      }
  };
  for (const auto& [op, cells] : run["operators"].items())
    for (const auto& [law, cell] : cells.items()) {
      add(cell, "strata", op, law);
      add(cell, "failed_strata", op, law);
    }
  for (const auto& [rank, unused] : seen) grid.columns.emplace_back(rank.second, "");
  return grid;
}

namespace {
/// Shades are decades of cases.
std::string shade(uint64_t cases) {
  return "h" + std::to_string(std::clamp(int(std::log10(double(std::max<uint64_t>(cases, 1)))), 0, 6));
}

void write_cell(Markup& out, const Grid& grid, const std::string& where, const CellCounts* counts) {
  if (!counts) {
    out.element("td", "·", {{"class", "na"}, {"data-v", "-1"}});
    return;
  }
  std::string title = where + ": " + std::to_string(counts->cases) + " cases, " +
                      std::to_string(counts->failures) + " failed";
  if (counts->discards) title += ", " + std::to_string(counts->discards) + " discarded";
  if (counts->seconds > 0) title += ", " + short_number(double(counts->cases) / counts->seconds) + "/s";
  std::string text = short_number(double(counts->cases)), look = shade(counts->cases);
  if (counts->failures) text += " !" + short_number(double(counts->failures)), look = "bad";
  else if (counts->cases == 0 && grid.gaps) look = "gap", text = "0", title += ": a gap";
  out.element("td", text, {{"class", look}, {"data-v", std::to_string(counts->cases)}, {"title", title}});
}

void write_heading(Markup& out, const Grid& grid) {
  out.open("thead").open("tr").element("th", grid.rows_are, {{"scope", "col"}});
  for (const auto& [name, explanation] : grid.columns) {
    out.open("th", {{"scope", "col"}, {"title", explanation.empty() ? name : name + "\n" + explanation}});
    out.element("span", name, {{"class", "up"}}).close();
  }
  out.element("th", "sum", {{"scope", "col"}}).close().close();
}
}  // namespace

void write_grid(Markup& out, const Grid& grid) {
  out.open("div", {{"class", "wide"}}).open("table", {{"class", "heat"}});
  write_heading(out, grid);
  out.raw("\n").open("tbody");
  for (const auto& [row, cells] : grid.cells) {
    CellCounts sum;
    out.open("tr").element("th", row, {{"scope", "row"}});
    for (const auto& [column, explanation] : grid.columns) {
      const auto at = cells.find(column);
      write_cell(out, grid, row + ", " + column, at == cells.end() ? nullptr : &at->second);
      if (at != cells.end()) sum.add(at->second);
    }
    write_cell(out, Grid{}, row + ", all", &sum);
    out.close().raw("\n");
  }
  out.close().close();
  out.element("p", "· " + grid.absent + "; n !f: f of n cases failed; shades are powers of ten",
              {{"class", "note"}});
  out.close().raw("\n");
}

void write_table(Markup& out, const std::vector<std::string>& heading,
                 const std::vector<std::vector<std::string>>& rows) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  };
  out.open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  for (const std::string& h : heading) out.element("th", h, {{"scope", "col"}});
  out.close().close().raw("\n").open("tbody");
  for (const std::vector<std::string>& row : rows) {
    out.open("tr");
    for (const std::string& text : row)
      if (is_number(text)) out.element("td", text, {{"class", "number"}, {"data-v", text}});
      else out.element("td", text);
    out.close().raw("\n");
  }
  out.close().close().close().raw("\n");
}

}  // namespace lamella::tools
