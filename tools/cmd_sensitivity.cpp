// `lamella sensitivity`: how many errors of a known size the laws see; `lamella tolerances`: how much of its
// tolerance each operator needs.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

#include "lamella/dispatch/table.h"
#include "lamella/ops/all.h"
#include "lamella/verify/runner.h"
#include "lamella/verify/sensitivity.h"
#include "lamella/verify/tolerances.h"

#include "commands.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct CalibrationOptions {
  std::vector<std::string> ops;
  SensitivityOptions run;
  double target = 99;
};

void add_options(CLI::App& app, CalibrationOptions& o) {
  app.add_option("--op", o.ops, "operators (default: all)")->delimiter(',');
  app.add_option("--cases", o.run.cases, "cases of each operator and law")->capture_default_str();
  app.add_option("--most-seconds", o.run.seconds, "for each operator and law")->capture_default_str();
  app.add_option("--seed", o.run.seed, "seed of the cases")->capture_default_str();
}

std::vector<const Op*> chosen(const CalibrationOptions& o) {
  install_operators();
  if (o.ops.empty()) return all_operators();
  std::vector<const Op*> out;
  for (const std::string& name : o.ops) {
    const Op* op = OpTable::current().find(name);
    LAMELLA_CHECK(op, UnknownOperator, "there is no operator \"{}\"", name);
    out.push_back(op->base);
  }
  return out;
}

double percent(int part, int whole) { return whole ? 100.0 * part / whole : 100; }

/// One law's cell: "99.7 / 98.0 (200)".
std::string cell(const Sensitivity& s) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f / %.1f (%d)", percent(s.caught, s.cases),
                percent(s.relative, s.sized), s.cases);
  return s.cases ? text : s.unbounded ? "exact" : "-";
}

/// "8 x 0.31": k, and the largest error seen in units of the bound.
std::string cell(const ToleranceUse& use, double k, bool& loose) {
  if (use.cases == 0) return "";
  const bool four_times_too_large = use.largest < 0.25;
  loose = loose || four_times_too_large;
  char text[64];
  std::snprintf(text, sizeof text, "%g | %.3g%s (%d)", k, k * use.largest, four_times_too_large ? " !" : "",
                use.cases);
  return text;
}
}  // namespace

int main_sensitivity(int argc, char** argv) {
  CLI::App app(
      "Puts an error of FACTOR times the law's own bound into one entry of results, tangents and cotangents "
      "of every operator, through a replaced row of the table, and counts how many the laws see. The second "
      "number: errors of FACTOR times k roundings of the entry itself",
      "lamella sensitivity");
  CalibrationOptions o;
  add_options(app, o);
  app.add_option("--factor", o.run.factor, "error, in bounds")->capture_default_str();
  app.add_option("--target", o.target, "percent that must be seen, per operator")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  int below = 0, cases = 0, caught = 0;
  std::printf("%-24s %-24s %-24s %-24s\n", "percent seen (cases)", "values", "jvp", "vjp");
  for (const Op* op : chosen(o)) {
    int op_cases = 0, op_caught = 0;
    std::string line, missed;
    for (const std::string_view id : bounded_laws()) {
      const Law& law = *find_law(id);
      Sensitivity s{op->name, id};
      if (law.applies(*op)) s = sensitivity(*op, law, o.run);
      char column[64];
      std::snprintf(column, sizeof column, " %-24s", cell(s).c_str());
      line += column;
      op_cases += s.cases, op_caught += s.caught;
      if (s.caught < s.cases) missed += format(" {} case {}", id, s.missed);
    }
    const bool good = percent(op_caught, op_cases) >= o.target;
    std::printf("%-24s%s%s%s\n", op->name.c_str(), line.c_str(),
                good ? "" : " BELOW TARGET:", missed.c_str());
    std::fflush(stdout);
    below += !good, cases += op_cases, caught += op_caught;
  }
  std::printf("%d of %d errors of %g bounds seen (%.2f %%); %d operators below %g %%\n", caught, cases,
              o.run.factor, percent(caught, cases), below, o.target);
  return below ? 1 : 0;
}

int main_tolerances(int argc, char** argv) {
  CLI::App app(
      "Prints, as Markdown, each operator's k and the largest error seen in the same unit (k is in roundings "
      "times condition); ! where k is more than 4 times that",
      "lamella tolerances");
  CalibrationOptions o;
  o.run.cases = 10000;
  add_options(app, o);
  CLI11_PARSE(app, argc, argv);
  int too_large = 0, rows = 0;
  std::printf(
      "| operator | k of values | largest (cases) | k of jvp | largest (cases) | k of vjp | largest "
      "(cases) | k of second order | largest (cases) |\n| --- | --- | --- | --- | --- | --- | --- | "
      "--- | --- |\n");
  for (const Op* op : chosen(o)) {
    const Tolerance& tol = tolerance(op->name);
    std::string line;
    bool loose = false;
    const std::pair<std::string_view, double> all[] = {{bounded_laws()[0], tol.value},
                                                       {bounded_laws()[1], tol.derivative},
                                                       {bounded_laws()[2], tol.derivative},
                                                       {"second_derivatives_agree", tol.second}};
    for (const auto& [id, k] : all) {
      const Law& law = *find_law(id);
      const std::string text = law.applies(*op) ? cell(tolerance_use(*op, law, o.run), k, loose) : "";
      line += " " + (text.empty() ? std::string("- | -") : text) + " |";
    }
    std::printf("| %s |%s\n", op->name.c_str(), line.c_str());
    std::fflush(stdout);
    too_large += loose, ++rows;
  }
  std::printf("\n%d of %d operators have a k above 4 times the largest error seen.\n", too_large, rows);
  return 0;
}
