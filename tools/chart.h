// Drawings for pages: lines over a logarithmic scale, and bars; inline SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "markup.h"

namespace lamella::tools {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< positive; in order of x
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
  bool log_y = true;
  double guide = 0;  ///< a dashed line at this y; 0: none
};
/// Nothing where no line has two points.
void write_chart(Markup& out, const Chart& chart);

/// Bars to both sides of 1 on a logarithmic scale: "how often as fast".
struct Bar {
  std::string name;
  double ratio = 1;
};
void write_bars(Markup& out, const std::string& title, const std::vector<Bar>& bars);

/// Colours of lines, for the page's style sheet.
extern const std::string_view kChartStyle;

}  // namespace lamella::tools
