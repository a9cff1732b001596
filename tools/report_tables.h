// The tables of `lamella report`.
#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "markup.h"

namespace lamella::tools {

struct CellCounts {
  uint64_t cases = 0, failures = 0, discards = 0;
  double seconds = 0;
  void add(const CellCounts& other);
};

/// Counts by row and column. What is not there does not apply, or was not drawn.
struct Grid {
  std::map<std::string, std::map<std::string, CellCounts>> cells;
  std::vector<std::pair<std::string, std::string>> columns;  ///< in order: name, explanation
  std::string rows_are, absent;  ///< heading of the rows; what a missing cell means
  bool gaps = false;             ///< a cell without cases is one, and is marked
};

/// Operators by laws.
Grid grid_of_laws(const nlohmann::json& run);
/// How cases spread. A row is an operator, a law or a dtype; a column a dtype or a stack of transforms.
enum class Facet { Operator, Law, DType, Stack };
Grid grid_of(const nlohmann::json& run, Facet rows, Facet columns);

void write_grid(Markup& out, const Grid& grid);
/// Any table whose cells are texts; those that look like numbers are sorted as such.
void write_table(Markup& out, const std::vector<std::string>& heading,
                 const std::vector<std::vector<std::string>>& rows);

/// 12345 -> "12.3k"
std::string short_number(double n);

}  // namespace lamella::tools
