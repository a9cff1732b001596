// `lamella verify`: every operator against every law, for a while, in several processes.
#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "lamella/dispatch/nearest.h"
#include "lamella/ops/all.h"
#include "lamella/verify/run/asked_apart.h"
#include "lamella/verify/run/context.h"
#include "lamella/verify/run/runner.h"

#include "calibrations.h"
#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "kernel_option.h"
#include "law_option.h"
#include "plugin.h"
#include "progress.h"
#include "run_json.h"
#include "verify_more.h"
#include "whole_file.h"

namespace {

using namespace lamella;
using namespace lamella::verify;
using nlohmann::json;

struct VerifyOptions {
  std::vector<std::string> ops, laws, plugins, kernels;
  int depth = run_context().depth, processes = 2;
  double time = 60;
  uint64_t seed = 0, cases = 0;
  std::string json_file, corpus, blob, explained;
  std::string junit_file, shard = "0/1";
  bool list = false, census = false;
  int compile = 3;
};

/// Set-up that cannot go on: exit status 2.
struct SetUpError : std::runtime_error {
  using runtime_error::runtime_error;
};

/// What appeared or changed while the plug-ins loaded.
struct FromPlugins {
  std::set<std::string> ops;
  std::set<std::string_view> laws;
};

FromPlugins load_plugins(const std::vector<std::string>& files) {
  const std::vector<const Op*> before = OpTable::current().rows();
  std::set<std::string_view> laws_before;
  for (const Law& law : laws()) laws_before.insert(law.id);
  for (const std::string& file : files) { lamella::tools::load_plugin(file); }
  FromPlugins found;
  const std::vector<const Op*>& after = OpTable::current().rows();
  for (size_t i = 0; i < after.size(); ++i)
    if (i >= before.size() || after[i] != before[i]) found.ops.insert(after[i]->name);
  for (const Law& law : laws())
    if (!laws_before.count(law.id)) found.laws.insert(law.id);
  if (!files.empty() && found.ops.empty() && found.laws.empty())
    throw SetUpError("the plug-ins define no operators and no laws");
  return found;
}

std::vector<const Op*> chosen_operators(const VerifyOptions& o, const std::set<std::string>& from_plugins) {
  std::vector<const Op*> out;
  for (const std::string& name : o.ops) {
    const Op* op = OpTable::current().find(name);
    if (!op)
      throw SetUpError("there is no operator \"" + name + "\"" + nearest_operators(name) +
                       "; see lamella verify --list");
    if (!op->base->samples) throw SetUpError("operator \"" + name + "\" has no samples");
    if (std::find(out.begin(), out.end(), op->base) == out.end()) out.push_back(op->base);
  }
  if (!o.ops.empty()) return out;
  for (const Op* op : all_operators())
    if (from_plugins.empty() || from_plugins.count(op->name)) out.push_back(op);
  return out;
}

/// Plug-ins with laws alone are asked about those; operators are asked about all laws.
std::vector<const Law*> chosen_laws(const VerifyOptions& o, const FromPlugins& from_plugins) {
  if (o.census && o.laws.empty() && from_plugins.laws.empty()) return Census::usual_laws();
  std::vector<const Law*> out = lamella::tools::laws_named(o.laws);
  if (o.laws.empty())
    for (const Law& law : laws())
      if (from_plugins.laws.empty() || !from_plugins.ops.empty() || from_plugins.laws.count(law.id))
        out.push_back(&law);
  return out;
}

void print_list() {
  std::cout << "laws:\n";
  for (const Law& law : laws())
    std::printf("  %3d  %-28.*s %-11.*s %.*s\n", law.number, int(law.id.size()), law.id.data(),
                int(law.group.size()), law.group.data(), int(law.statement.size()), law.statement.data());
  std::cout << "operators:\n ";
  size_t column = 1;
  for (const Op* op : all_operators()) {
    if (column + op->name.size() > 100) std::cout << "\n ", column = 1;
    std::cout << ' ' << op->name;
    column += op->name.size() + 1;
  }
  std::cout << '\n';
}

/// How many cases a run with --cases will draw.
uint64_t cases_in(const verify::RunOptions& options) {
  uint64_t pairs = 0;
  for (const Op* op : options.ops)
    for (const Law* law : options.laws)
      pairs += law->applies(*op) && in_shard(*op, *law, options.shard, options.shards);
  return pairs * options.cases;
}

/// By the clock, or by the cases if they are counted.
std::string bar_text(const Progress& p, double seconds, uint64_t cases) {
  constexpr int kWidth = 40;
  const double share = cases ? double(p.cases) / double(cases) : p.seconds / seconds;
  const size_t done = size_t(kWidth * std::clamp(share, 0.0, 1.0));
  const std::string ended = p.ended ? format("({} ended their process) ", p.ended) : "";
  return format("[{}{}] {} s  {} checks  {} failed {}", std::string(done, '#'),
                std::string(size_t(kWidth) - done, '.'), int(p.seconds), p.cases, p.failures, ended);
}

std::string group_of(const std::string& law_id) {
  const Law* law = find_law(law_id);
  return law ? std::string(law->group) : "other";
}

std::string short_count(uint64_t n) {
  if (n < 100000) return std::to_string(n);
  return n < 100000000 ? std::to_string(n / 1000) + "k" : std::to_string(n / 1000000) + "M";
}

void print_table(const Report& report) {
  std::vector<std::string> groups;
  for (const Law& law : laws()) {
    const std::string g(law.group);
    if (std::find(groups.begin(), groups.end(), g) == groups.end()) groups.push_back(g);
  }
  std::map<std::string, std::map<std::string, verify::Tally>> cells;
  for (const auto& [key, t] : report.tallies) {
    verify::Tally& cell = cells[key.first][group_of(key.second)];
    cell.cases += t.cases, cell.failures += t.failures;
  }
  std::erase_if(groups, [&](const std::string& g) {
    return std::none_of(cells.begin(), cells.end(), [&](const auto& row) { return row.second.count(g); });
  });
  std::printf("%-16s", "operator");
  for (const std::string& g : groups) std::printf(" %12s", g.c_str());
  std::printf("\n");
  for (const auto& [op, row] : cells) {
    std::printf("%-16s", op.c_str());
    for (const std::string& g : groups) {
      const auto cell = row.find(g);
      std::string text = cell == row.end() ? "-" : short_count(cell->second.cases);
      if (cell != row.end() && cell->second.failures) text += " !" + short_count(cell->second.failures);
      std::printf(" %12s", text.c_str());
    }
    std::printf("\n");
  }
  std::printf("cases; \"!n\": n of them failed; \"-\": the laws do not apply\n\n");
}

void print_rates(const Report& report) {
  std::printf("%3s  %-28s %10s %9s %9s %12s\n", "", "law", "cases", "failures", "discards", "cases/s");
  for (const Law& law : laws()) {
    verify::Tally sum;
    for (const auto& [key, t] : report.tallies) {
      if (key.second != law.id) continue;
      sum.cases += t.cases, sum.failures += t.failures, sum.discards += t.discards, sum.seconds += t.seconds;
    }
    if (sum.cases + sum.discards == 0) continue;
    std::printf("%3d  %-28.*s %10llu %9llu %9llu %12.0f%s\n", law.number, int(law.id.size()), law.id.data(),
                static_cast<unsigned long long>(sum.cases), static_cast<unsigned long long>(sum.failures),
                static_cast<unsigned long long>(sum.discards),
                double(sum.cases) / std::max(sum.seconds, 1e-9), law.oracle ? "  (f128 oracle)" : "");
  }
  std::printf("\n");
}

void print_failure(const verify::Failure& f, uint64_t seed, bool compile) {
  const std::string program = cpp_program(f.program);
  const std::string run = compile ? lamella::tools::compile_and_run(program) : "";
  std::printf("---- %s breaks %s%s\n%s\n\n%s\n", f.op.c_str(), f.law.c_str(),
              f.flaky ? " (its case alone does not show it)" : "", f.message.c_str(), program.c_str());
  if (f.flaky)
    std::printf("case %llu of seed %llu, process %d: %s\n", static_cast<unsigned long long>(f.index),
                static_cast<unsigned long long>(seed), f.process, f.needs.c_str());
  if (!f.free.empty()) std::printf("may be anything: %s\n", f.free.c_str());
  constexpr size_t kPrinted = 16;
  std::string before;
  for (const std::string& blob : f.before) before += blob + ',';
  if (f.before.size() > kPrinted)
    std::printf("--json has the cases to run before, for lamella verify --replay @FILE\n");
  else if (!f.blob.empty()) std::printf("lamella verify --replay %s%s\n", before.c_str(), f.blob.c_str());
  std::printf("%s", run.c_str());
  std::printf("\n");
}

void print_failures(const Report& report, uint64_t seed, size_t compiled) {
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < report.failures.size() && i < kShown; ++i)
    print_failure(report.failures[i], seed, i < compiled);
  if (report.failures.size() > kShown) {
    std::printf("---- and without their programs (--json has them):\n");
    for (size_t i = kShown; i < report.failures.size(); ++i)
      std::printf("  %s breaks %s: %s\n", report.failures[i].op.c_str(), report.failures[i].law.c_str(),
                  report.failures[i].message.substr(0, 160).c_str());
    std::printf("\n");
  }
}

/// What so many cases of each pair are like, checked by nobody. 1 when a floor is missed.
int print_census(const verify::RunOptions& run, uint64_t cases, const std::string& json_file) {
  const Census census = Census::of_pairs(run.ops, run.laws, run.seed, cases);
  const auto ull = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  for (const auto& [what, n] : census.counts()) std::printf("%-32s %12llu\n", what.c_str(), ull(n));
  std::printf("%-32s %12llu\n\n", "different cases", ull(census.cases().size()));
  for (const FeatureFloor& f : feature_floors())
    std::printf("%-32s %6.2f %% of %s, at least %g %%\n", f.what.c_str(),
                100 * double(census.of(f.what)) / double(std::max<uint64_t>(census.of(f.of), 1)),
                f.of.c_str(), 100 * f.share);
  const std::vector<std::string> missed = missed_floors(census);
  for (const std::string& m : missed) std::printf("missed: %s\n", m.c_str());
  if (!json_file.empty())
    tools::write_json(json_file, {{"seed", run.seed},
                                  {"census", census.counts()},
                                  {"different_cases", census.cases().size()},
                                  {"missed", missed}});
  return missed.empty() ? 0 : 1;
}

/// Cases a second and process of the laws that need no oracle.
double plain_rate(const Report& report) {
  verify::Tally sum;
  for (const auto& [key, t] : report.tallies) {
    const Law* law = find_law(key.second);
    if (law && !law->oracle) sum.cases += t.cases, sum.seconds += t.seconds;
  }
  return double(sum.cases) / std::max(sum.seconds, 1e-9);
}

json to_json(const Report& report, const VerifyOptions& o) {
  json out{{"checks", report.total().cases},
           {"seed", o.seed},
           {"cases", o.cases},
           {"failures", json::array()},
           {"operators", json::object()}};
  for (const verify::Failure& f : report.failures)
    out["failures"].push_back({{"operator", f.op},
                               {"law", f.law},
                               {"kind", str(f.kind)},
                               {"depth", f.depth},
                               {"message", f.message},
                               {"program", cpp_program(f.program)},
                               {"replay", f.blob},
                               {"may_be_anything", f.free},
                               {"flaky", f.flaky},
                               {"needs", f.needs},
                               {"before", f.before},
                               {"case", f.index},
                               {"process", f.process},
                               {"checks", f.checks},
                               {"shrinking", {{"executions", f.executions}, {"ms", f.milliseconds}}}});
  for (const auto& [key, t] : report.tallies)
    out["operators"][key.first][key.second] = {{"cases", t.cases},
                                               {"failures", t.failures},
                                               {"per_second", double(t.cases) / std::max(t.seconds, 1e-9)}};
  return out;
}

/// Before counterexamples are compiled: who stops the program then has the files. One that cannot be written
/// keeps none of the others from it; what went wrong first is raised after all has been printed.
std::exception_ptr write_reports(const json& out, const Report& report, const VerifyOptions& o) {
  std::exception_ptr wrong;
  const auto attempt = [&](const std::string& file, const auto& write) {
    try {
      if (!file.empty()) write();
    } catch (...) {
      if (!wrong) wrong = std::current_exception();
    }
  };
  attempt(o.json_file, [&] { tools::write_json(o.json_file, out); });
  attempt(o.junit_file, [&] { tools::write_output(o.junit_file, tools::junit_xml(out)); });
  attempt(o.corpus, [&] { tools::store_failures(o.corpus, report); });
  return wrong;
}

/// The last two lines.
void print_end(const Report& report, const verify::RunOptions& run_options, const VerifyOptions& o,
               bool interrupted) {
  const verify::Tally total = report.total();
  std::printf(
      "%llu checks in %.1f s (%.0f/s in %d processes; %.0f/s a process without the f128 oracle), %.0f %% at "
      "depth >= 2\n",
      static_cast<unsigned long long>(total.cases), report.seconds, double(total.cases) / report.seconds,
      o.processes, plain_rate(report),
      100.0 * double(total.deep) / double(std::max<uint64_t>(total.cases, 1)));
  std::printf("%zu operators, %zu laws, seed %llu%s: %zu failures\n", run_options.ops.size(),
              run_options.laws.size(), static_cast<unsigned long long>(o.seed),
              interrupted ? ", interrupted" : "", report.failures.size());
}

int verify_all(const VerifyOptions& o) {
  install_operators();
  OpTable::current();
  const FromPlugins from_plugins = load_plugins(o.plugins);
  lamella::tools::choose_kernels(o.kernels);
  if (o.list) {
    print_list();
    return 0;
  }
  if (!o.explained.empty()) {
    VerifyOptions only;
    only.laws = {o.explained};
    for (const Law* law : chosen_laws(only, from_plugins)) lamella::tools::explain_law(*law);
    return 0;
  }
  LAMELLA_CHECK(o.json_file.empty() || o.json_file != o.junit_file, Usage,
                "--json {} and --junit {} would be mixed: give one of them another file", o.json_file,
                o.junit_file);
  const tools::TextAside aside(o.json_file == "-" || o.junit_file == "-");
  change_context([&](RunContext& c) { c.depth = o.depth; });
  if (!o.blob.empty()) return lamella::tools::replay_case(o.blob, o.compile > 0);
  const size_t known = o.corpus.empty() ? 0 : lamella::tools::replay_corpus(o.corpus);
  const tools::Shard shard = tools::Shard::parse(o.shard);
  const verify::RunOptions run_options{chosen_operators(o, from_plugins.ops),
                                       chosen_laws(o, from_plugins),
                                       o.time,
                                       o.seed,
                                       o.processes,
                                       shard.index,
                                       shard.of,
                                       o.cases};
  if (!o.plugins.empty()) ask_apart(run_options.ops, run_options.laws);
  if (o.census) return print_census(run_options, o.cases ? o.cases : Census::kUsual, o.json_file);
  const volatile std::sig_atomic_t& stop_requested = tools::stop_on_signals();
  std::cout.flush();
  tools::ProgressLine line;
  const uint64_t planned = cases_in(run_options);
  const Report report =
      run(run_options, stop_requested, [&](const Progress& p) { line.show(bar_text(p, o.time, planned)); });
  line.clear();
  const bool all_laws = run_options.laws.size() == lamella::verify::laws().size();
  json out = to_json(report, o);
  tools::describe_run(out, report, run_options, o.depth);
  out["coverage"] = tools::coverage_json(report, run_options.ops, o.depth, all_laws);
  out["interrupted"] = stop_requested != 0;
  const std::exception_ptr unwritten = write_reports(out, report, o);
  print_failures(report, o.seed, size_t(o.compile));
  print_table(report);
  print_rates(report);
  lamella::tools::print_self_check(report, run_options.ops, o.depth, all_laws && shard.of == 1);
  print_end(report, run_options, o, stop_requested);
  if (unwritten) std::rethrow_exception(unwritten);
  const bool missed = tools::says_what_is_missed(out, "verify");
  if (!report.failures.empty() || known > 0 || missed) return 1;
  if (report.total().cases > 0 || stop_requested || shard.of > 1) return 0;
  std::fprintf(stderr, "lamella verify: no law applies to what was chosen\n");
  return 2;
}

}  // namespace

int main_verify(int argc, char** argv) {
  lamella::tools::add_program_calibrations();
  VerifyOptions o;
  o.seed = uint64_t(std::chrono::system_clock::now().time_since_epoch().count()) / 1000 % 1000000000;
  tools::CommandLine app(
      "Checks operators against the laws (docs/laws.md) on drawn cases; prints counterexamples as C++ "
      "programs.",
      "lamella verify");
  app.add_option("--op", o.ops, "operators to check (default: all; with --load: those of the plug-ins)")
      ->delimiter(',');
  app.add_option("--law", o.laws,
                 "laws to check, by id, number or group (default: all; with --load of laws alone: those)")
      ->delimiter(',');
  app.add_option("--depth", o.depth, "deepest stack of transforms")->check(CLI::Range(1, 8));
  app.add_option("--time", o.time, "seconds to run")->check(tools::positive());
  app.add_option(
         "--cases", o.cases,
         "instead: so many cases of each operator and law, discards too; the same seed then gives the "
         "same counts, in one process or many, whole or in shards")
      ->check(CLI::Range(uint64_t(1), uint64_t(1) << 40))
      ->default_str("")
      ->excludes("--time");
  app.add_option("--seed", o.seed, "seed of all cases (default: from the clock)")->default_str("");
  app.add_option("--processes", o.processes, "processes to run in")->check(CLI::Range(1, 64));
  app.add_option(
      "--json", o.json_file,
      "also write the report to this file (- for standard output; what is printed goes to stderr)");
  app.add_option("--junit", o.junit_file, "also write the report as JUnit XML to this file (-: likewise)");
  CLI::Option* seed = app.get_option("--seed");
  app.add_option("--shard", o.shard, "i/n: only part i of n (0 <= i < n), for `lamella merge`")->needs(seed);
  app.add_option("--load", o.plugins, "shared library that defines operators or laws (docs/laws.md)");
  lamella::tools::add_kernel_option(app, o.kernels);
  app.add_flag("--census", o.census,
               "check nothing: count what drawn cases are like (60 of each pair, or --cases; of four laws "
               "that draw differently, or --law)");
  app.add_flag("--list", o.list, "list laws and operators");
  app.add_option("--corpus", o.corpus, "directory of recorded failures: replayed first; new ones are added");
  app.add_option(
      "--replay", o.blob,
      "run the case of this blob or of this file again, and nothing else; of several blobs, separated by "
      "commas or in the lines of @FILE, those before the last one run first in the same process");
  app.add_option("--explain-law", o.explained, "what a law says, to whom it applies and how cases are drawn");
  app.add_option("--compile", o.compile, "so many counterexamples are compiled and run before they are shown")
      ->check(CLI::Range(0, 1000));
  app.read(argc, argv);
  return verify_all(o);
}
