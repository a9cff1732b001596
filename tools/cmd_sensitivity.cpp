// `lamella sensitivity`: how many errors of a known size the laws see; `lamella tolerances`: how much of its
// tolerance each operator needs.
#include <cmath>
#include <iostream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/dispatch/nearest.h"
#include "lamella/dispatch/table.h"
#include "lamella/mutate/sensitivity.h"
#include "lamella/ops/all.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/run/context.h"
#include "lamella/verify/run/runner.h"

#include "command_line.h"
#include "commands.h"
#include "plugin.h"
#include "progress.h"
#include "whole_file.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

struct CalibrationOptions {
  std::vector<std::string> ops, plugins;
  SensitivityOptions run;
  double target = 99;
};

void add_options(tools::CommandLine& app, CalibrationOptions& o) {
  app.add_option("--op", o.ops, "operators (default: all)")->delimiter(',');
  app.add_option("--load", o.plugins, "shared library that defines operators")->allow_extra_args(false);
  app.add_option("--cases", o.run.cases, "cases of each operator and law")->check(CLI::Range(1, 1000000000));
  app.add_option("--most-seconds", o.run.seconds, "for each operator and law")->check(tools::positive());
  app.add_option("--seed", o.run.seed, "seed of the cases");
}

std::vector<const Op*> chosen(const CalibrationOptions& o) {
  install_operators();
  for (const std::string& file : o.plugins) tools::load_plugin(file);
  if (o.ops.empty()) return all_operators();
  std::vector<const Op*> out;
  for (const std::string& name : o.ops) {
    const Op* op = OpTable::current().find(name);
    LAMELLA_CHECK(op, UnknownOperator, "there is no operator \"{}\"{}", name, nearest_operators(name));
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
  return s.cases ? text : s.unbounded ? "exact" : "no case passed";
}

/// Where no case passed nothing was measured, which is no good figure but none. Whether there is such a pair.
bool tell_silent(int pairs) {
  if (pairs)
    std::printf(
        "\nnothing was measured of %d pairs of operator and law: none of their cases passed "
        "(lamella verify says why)\n",
        pairs);
  return pairs > 0;
}

/// What tolerance() has for the four measured laws, in their order.
struct Measurement {
  int op = 0;
  ToleranceUse use[4];
  bool applies[4] = {};
  double before[4] = {-1, -1, -1, -1};  ///< seen by an earlier run, in the unit of k

  /// In the unit of k.
  double largest(int i) const {
    constexpr double k[4] = {kDefaultTolerance.value, kDefaultTolerance.jvp, kDefaultTolerance.vjp,
                             kDefaultTolerance.hessian};
    return applies[i] && use[i].cases ? std::max(before[i], k[i] * use[i].largest) : -1;
  }
};

Measurement measure(const Op& op, int index, const SensitivityOptions& options) {
  const ScopedContext all_alike([](RunContext& c) { c.default_tolerances = true; });
  const std::string_view ids[] = {bounded_laws()[0], bounded_laws()[1], bounded_laws()[2],
                                  "second_derivatives_agree"};
  Measurement m;
  m.op = index;
  for (int i = 0; i < 4; ++i) {
    const Law& law = *find_law(ids[i]);
    if (!law.applies(op)) continue;
    m.applies[i] = true;
    m.use[i] = tolerance_use(op, law, options);
  }
  return m;
}

/// Each operator in one of `processes`; in the order of `ops`.
std::vector<Measurement> measure_all(const std::vector<const Op*>& ops, const SensitivityOptions& options,
                                     int processes) {
  static_assert(std::is_trivially_copyable_v<Measurement> &&
                sizeof(Measurement) < 512);  // written in one piece
  int ends[2];
  LAMELLA_CHECK(pipe(ends) == 0, Internal, "tolerances: no pipe");
  for (int p = 0; p < processes; ++p) {
    const pid_t pid = fork();
    LAMELLA_CHECK(pid >= 0, Internal, "tolerances: no process");
    if (pid != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // who asks the parent to stop means all
    for (size_t i = size_t(p); i < ops.size(); i += size_t(processes)) {
      const Measurement m = measure(*ops[i], int(i), options);
      if (write(ends[1], &m, sizeof m) != ssize_t(sizeof m)) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::vector<Measurement> all(ops.size());
  Measurement m;
  tools::Countdown progress(ops.size());
  while (read(ends[0], &m, sizeof m) == ssize_t(sizeof m)) {
    all[size_t(m.op)] = m;
    progress.step(ops[size_t(m.op)]->name);
  }
  close(ends[0]);
  bool failed = false;
  for (int status = 0; wait(&status) > 0;) failed |= status != 0;
  LAMELLA_CHECK(!failed, Internal, "tolerances: a process ended early");
  return all;
}

/// What the table of this build has seen stays where it is more.
void keep_measured(const std::vector<const Op*>& ops, std::vector<Measurement>& all) {
  for (size_t n = 0; n < ops.size(); ++n) {
    const MeasuredErrors& before = measured_errors(ops[n]->name);
    const double seen[] = {before.value, before.jvp, before.vjp, before.hessian};
    for (int i = 0; i < 4; ++i)
      if (all[n].applies[i] && all[n].use[i].cases) all[n].before[i] = seen[i];
  }
}

/// Rounded up: kMargin times it must cover what was seen.
double three_digits(double v) {
  if (v <= 0) return v;
  const double unit = std::pow(10, std::floor(std::log10(v)) - 2);
  return std::ceil(v / unit) * unit;
}

std::string measured_text(const std::vector<const Op*>& ops, const std::vector<Measurement>& all) {
  std::string text =
      "// The largest errors seen of values, jvp, vjp and second order, in roundings times condition. "
      "Written by\n"
      "// `lamella tolerances --write`. 0: exact whenever it was looked at; -1: the law does not apply.\n";
  for (const Measurement& m : all) {
    if (!m.applies[0] && !m.applies[1]) continue;
    text += "    {\"" + ops[size_t(m.op)]->name + "\"";
    for (int i = 0; i < 4; ++i) {
      char number[32];
      std::snprintf(number, sizeof number, ", %.3g", three_digits(m.largest(i)));
      text += number;
    }
    text += "},\n";
  }
  return text;
}

/// Markdown: k and the largest error seen in the same unit. Returns how many operators have a k above kMargin
/// times that.
int print_measured(const std::vector<const Op*>& ops, const std::vector<Measurement>& all) {
  std::printf(
      "| operator | k of values | largest (cases) | k of jvp | largest (cases) | k of vjp | largest "
      "(cases) | k of second order | largest (cases) |\n| --- | --- | --- | --- | --- | --- | --- | "
      "--- | --- |\n");
  int loose = 0;
  for (size_t n = 0; n < ops.size(); ++n) {
    const Tolerance& tol = tolerance(ops[n]->name);
    const double k[] = {tol.value, tol.jvp, tol.vjp, tol.hessian};
    std::printf("| %s |", ops[n]->name.c_str());
    bool any = false;
    for (int i = 0; i < 4; ++i) {
      const double largest = all[n].largest(i);
      const bool above = k[i] > kMargin * three_digits(largest) * (1 + 1e-9);
      if (largest < 0) std::printf(" - | - |");
      else std::printf(" %.3g | %.3g%s (%d) |", k[i], largest, above ? " !" : "", all[n].use[i].cases);
      any |= largest >= 0 && above;
    }
    std::printf("\n");
    loose += any;
  }
  return loose;
}
}  // namespace

int main_sensitivity(int argc, char** argv) {
  tools::CommandLine app(
      "Puts an error of FACTOR times the law's own bound into one entry of results, tangents and cotangents "
      "of every operator, through a replaced row of the table, and counts how many the laws see. The second "
      "number: errors of FACTOR times k roundings of the entry itself",
      "lamella sensitivity");
  CalibrationOptions o;
  add_options(app, o);
  app.add_option("--factor", o.run.factor, "error, in bounds")->check(tools::positive());
  app.add_option("--target", o.target, "percent that must be seen, per operator")
      ->check(tools::number_in(0, 100));
  app.read(argc, argv);
  int below = 0, cases = 0, caught = 0, silent = 0;
  std::printf("%-24s %-24s %-24s %-24s\n", "percent seen (cases)", "values", "jvp", "vjp");
  const std::vector<const Op*> ops = chosen(o);
  tools::Countdown progress(ops.size());
  for (const Op* op : ops) {
    int op_cases = 0, op_caught = 0;
    std::string line, missed;
    for (const std::string_view id : bounded_laws()) {
      const Law& law = *find_law(id);
      Sensitivity s{op->name, id};
      const bool applies = law.applies(*op);
      if (applies) s = sensitivity(*op, law, o.run);
      char column[64];
      std::snprintf(column, sizeof column, " %-24s", applies ? cell(s).c_str() : "-");
      line += column;
      silent += applies && s.passed() == 0;
      op_cases += s.cases, op_caught += s.caught;
      if (s.caught < s.cases) missed += format(" {} case {}", id, s.missed);
    }
    const bool good = percent(op_caught, op_cases) >= o.target;
    progress.clear();
    std::printf("%-24s%s%s%s\n", op->name.c_str(), line.c_str(),
                good ? "" : " BELOW TARGET:", missed.c_str());
    std::fflush(stdout);
    progress.step(op->name);
    below += !good, cases += op_cases, caught += op_caught;
  }
  std::printf("%d of %d errors of %g bounds seen (%.2f %%); %d operators below %g %%\n", caught, cases,
              o.run.factor, percent(caught, cases), below, o.target);
  return tell_silent(silent) || below ? 1 : 0;
}

int main_tolerances(int argc, char** argv) {
  tools::CommandLine app(
      "Prints, as Markdown, each operator's k and the largest error seen in the same unit (k is in roundings "
      "times condition); ! where k is more than 4 times that. Errors are measured against the default k's, "
      "whatever the table says",
      "lamella tolerances");
  CalibrationOptions o;
  o.run.cases = 10000;
  std::string file;
  int processes = 2;
  add_options(app, o);
  app.add_option("--processes", processes, "how many at once")->check(CLI::Range(1, 256));
  bool keep = false;
  app.add_option("--write", file, "also write what was seen to this file: verify/case/measured_errors.inc");
  app.get_option("--write")->excludes("--op");  // the file is the table of all operators
  app.add_flag("--keep", keep, "count what this build's table has seen as seen");
  app.read(argc, argv);
  const std::vector<const Op*> ops = chosen(o);
  std::vector<Measurement> all = measure_all(ops, o.run, processes);
  if (keep) keep_measured(ops, all);
  if (!file.empty()) tools::write_whole_file(file, measured_text(ops, all));
  const int loose = print_measured(ops, all);
  int silent = 0;
  for (const Measurement& m : all)
    for (int i = 0; i < 4; ++i) silent += m.applies[i] && m.use[i].passed == 0;
  for (const Op* op : ops)
    if (const std::string_view why = stated_reason(op->name); !why.empty())
      std::printf("\n%s states its own k: %s\n", op->name.c_str(), std::string(why).c_str());
  std::printf("\n%d of %zu operators have a k above 4 times the largest error seen.\n", loose, ops.size());
  return tell_silent(silent) ? 1 : 0;
}
