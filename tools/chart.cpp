// Scales, ticks and strokes.
#include "chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report_tables.h"

namespace lamella::tools {

const std::string_view kChartStyle = R"(
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: var(--ink); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; } .bars { max-width: 48rem; }
.grid { stroke: var(--line); stroke-width: 1; } .tick { fill: var(--faint); } .guide { stroke: var(--faint);
  stroke-dasharray: 4 4; } .curve { fill: none; stroke-width: 2; } .c0 { --c: #1f77b4; } .c1 { --c: #d9652b; }
.c2 { --c: #2c9f5f; } .c3 { --c: #a04fb0; } .c4 { --c: #8a7a1f; } .c5 { --c: #c2477f; }
.curve { stroke: var(--c); } .dot, .bar { fill: var(--c); }
)";

namespace {
constexpr double kWidth = 640, kHeight = 340, kLeft = 62, kRight = 150, kTop = 28, kBottom = 44;

std::string figure(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

std::string tick_text(double v) {
  if (v >= 999.5) return short_number(v);
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

/// The least of 1, 2 and 5 times a power of ten that is no less.
double round_step(double least) {
  const double decade = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0})
    if (decade * step >= least) return decade * step;
  return decade * 10;
}

/// Values to places on the paper.
struct Scale {
  double low = 1, high = 10, from = 0, to = 1;
  bool log = true;
  double at(double v) const {
    const double share = log ? (std::log10(v) - std::log10(low)) / (std::log10(high) - std::log10(low))
                             : (v - low) / (high - low);
    return from + share * (to - from);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (!log) {
      const double step = round_step((high - low) / 5);
      for (int i = 0; low + i * step <= high; ++i) out.push_back(low + i * step);
      return out;
    }
    const bool narrow = high / low < 200;
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 1.001; decade *= 10)
      for (const double step : {1.0, 2.0, 5.0})
        if ((step == 1 || narrow) && decade * step >= low * 0.999 && decade * step <= high * 1.001)
          out.push_back(decade * step);
    if (out.size() < 2) out = {low, high};
    return out;
  }
};

Scale scale_of(const std::vector<double>& values, bool log, double from, double to) {
  Scale s{1, 10, from, to, log};
  if (values.empty()) return s;
  s.low = *std::ranges::min_element(values), s.high = *std::ranges::max_element(values);
  if (log) s.low /= 1.15, s.high *= 1.15;
  else s.low = 0, s.high = std::max(s.high * 1.05, 1e-9);
  return s;
}

void stroke(Markup& out, double x1, double y1, double x2, double y2, const char* look) {
  out.open("line",
           {{"x1", figure(x1)}, {"y1", figure(y1)}, {"x2", figure(x2)}, {"y2", figure(y2)}, {"class", look}})
      .close();
}

void words(Markup& out, double x, double y, const std::string& text, const char* anchor,
           const char* look = "tick") {
  out.element("text", text, {{"x", figure(x)}, {"y", figure(y)}, {"text-anchor", anchor}, {"class", look}});
}

void write_scales(Markup& out, const Chart& c, const Scale& x, const Scale& y) {
  for (const double v : x.ticks()) {
    stroke(out, x.at(v), y.from, x.at(v), y.to, "grid");
    words(out, x.at(v), y.from + 15, tick_text(v), "middle");
  }
  for (const double v : y.ticks()) {
    stroke(out, x.from, y.at(v), x.to, y.at(v), "grid");
    words(out, x.from - 6, y.at(v) + 4, tick_text(v), "end");
  }
  if (c.guide > 0 && c.guide >= y.low && c.guide <= y.high)
    stroke(out, x.from, y.at(c.guide), x.to, y.at(c.guide), "guide");
  words(out, (x.from + x.to) / 2, kHeight - 8, c.x_label, "middle");
  words(out, 4, 12, c.y_label, "start");
}

void write_line(Markup& out, const ChartLine& line, size_t index, const Scale& x, const Scale& y) {
  const std::string colour = "c" + std::to_string(index % 6);
  std::string points;
  for (const auto& [a, b] : line.points) points += figure(x.at(a)) + "," + figure(y.at(b)) + " ";
  out.open("polyline", {{"points", points}, {"class", "curve " + colour}}).close();
  for (const auto& [a, b] : line.points) {
    out.open("circle",
             {{"cx", figure(x.at(a))}, {"cy", figure(y.at(b))}, {"r", "3"}, {"class", "dot " + colour}});
    out.element("title", line.name + ": " + tick_text(a) + ", " + tick_text(b)).close();
  }
  const double at = kTop + 8 + 18 * double(index), left = kWidth - kRight + 12;
  out.open("line", {{"x1", figure(left)},
                    {"y1", figure(at)},
                    {"x2", figure(left + 18)},
                    {"y2", figure(at)},
                    {"class", "curve " + colour}})
      .close();
  words(out, left + 24, at + 4, line.name, "start", "name");
}
}  // namespace

void write_chart(Markup& out, const Chart& c) {
  std::vector<double> xs, ys;
  bool drawn = false;
  for (const ChartLine& line : c.lines) {
    drawn |= line.points.size() > 1;
    for (const auto& [x, y] : line.points) xs.push_back(x), ys.push_back(y);
  }
  if (!drawn) return;
  if (c.guide > 0) ys.push_back(c.guide);
  const Scale x = scale_of(xs, true, kLeft, kWidth - kRight);
  const Scale y = scale_of(ys, c.log_y, kHeight - kBottom, kTop);
  out.open("figure").element("figcaption", c.title);
  out.open("svg", {{"viewBox", "0 0 " + figure(kWidth) + " " + figure(kHeight)},
                   {"role", "img"},
                   {"aria-label", c.title + ": " + c.y_label + " against " + c.x_label}});
  write_scales(out, c, x, y);
  for (size_t i = 0; i < c.lines.size(); ++i)
    if (!c.lines[i].points.empty()) write_line(out, c.lines[i], i, x, y);
  out.close().close().raw("\n");
}

void write_bars(Markup& out, const std::string& title, const std::vector<Bar>& bars) {
  if (bars.empty()) return;
  constexpr double kRow = 18, kNames = 400, kNumbers = 60;
  std::vector<double> values{0.5, 2};
  for (const Bar& b : bars) values.push_back(b.ratio);
  const Scale x = scale_of(values, true, kNames, kWidth - kNumbers);
  const double height = kRow * double(bars.size()) + 30;
  out.open("figure", {{"class", "bars"}}).element("figcaption", title);
  out.open(
      "svg",
      {{"viewBox", "0 0 " + figure(kWidth) + " " + figure(height)}, {"role", "img"}, {"aria-label", title}});
  for (size_t i = 0; i < bars.size(); ++i) {
    const double top = kRow * double(i) + 4, one = x.at(1), end = x.at(bars[i].ratio);
    words(out, kNames - 8, top + 11, bars[i].name, "end", "name");
    out.open("rect", {{"x", figure(std::min(one, end))},
                      {"y", figure(top)},
                      {"width", figure(std::abs(end - one))},
                      {"height", "13"},
                      {"class", bars[i].ratio < 1 ? "bar c1" : "bar c0"}})
        .close();
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", bars[i].ratio);
    words(out, kWidth - 4, top + 11, text, "end");
  }
  stroke(out, x.at(1), 0, x.at(1), height - 20, "guide");
  for (const double v : x.ticks()) words(out, x.at(v), height - 6, tick_text(v), "middle");
  out.close().close().raw("\n");
}

}  // namespace lamella::tools
