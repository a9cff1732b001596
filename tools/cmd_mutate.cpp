// `lamella mutate`: plants bugs and lists which law notices which.
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lamella/dispatch/nearest.h"
#include "lamella/mutate/calibration.h"
#include "lamella/mutate/mutant_table.h"

#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "law_option.h"
#include "plugin.h"
#include "progress.h"
#include "whole_file.h"

namespace {
using namespace lamella::verify;

constexpr double kMostEquivalent = 0.03;  ///< of all; a small sample may have thirty
constexpr size_t kFew = 1000;

struct Asked {
  MutantOptions run;
  std::vector<std::string> ops, laws, groups, ids, plugins;
  std::string json, write_laws, check_laws;
  size_t sample = 0;
  double at_least = 0.97;
  bool verbose = false, list = false;
};

/// Laws and calibrations that no bug turned red: not yet shown to be alive.
std::vector<std::string> idle_laws(const std::vector<MutantResult>& results) {
  std::vector<std::string> out;
  for (const MatrixRow& row : matrix_of(results))
    if (row.total == 0) out.push_back(row.law);
  return out;
}

nlohmann::ordered_json checks_json(const std::vector<MutantResult>& results) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  const auto put = [&](const std::string& name, const ChecksToKill& c) {
    if (c.mutants) out[name] = {{"mutants", c.mutants}, {"median", c.half}, {"p95", c.most}};
  };
  put("all", checks_to_kill(results));
  for (const std::string_view group : kGroups) put(std::string(group), checks_to_kill(results, group));
  return out;
}

nlohmann::ordered_json as_json(const std::vector<MutantResult>& results, double seconds) {
  using json = nlohmann::ordered_json;
  json survivors = json::array(), equivalent = json::array(), kills = json::array(), matrix = json::object();
  double cpu = 0;
  for (const MutantResult& r : results) {
    cpu += r.cpu_ms;
    if (!r.killed()) (r.equivalent ? equivalent : survivors).push_back({{"id", r.id}, {"reason", r.reason}});
    json by = json::array();
    for (const Kill& k : r.kills) by.push_back({{"law", k.law}, {"cases", k.cases}, {"how", k.how}});
    kills.push_back({{"id", r.id},
                     {"group", r.group},
                     {"bug", r.what},
                     {"checks", r.checks},
                     {"cpu_ms", r.cpu_ms},
                     {"laws", by}});
  }
  for (const MatrixRow& row : matrix_of(results)) {
    matrix[row.law] = {{"all", row.total}, {"alone", row.alone}, {"median_cases", row.median_cases}};
    for (const auto& [group, n] : row.kills) matrix[row.law][group] = n;
  }
  const Score s = score_of(results);
  return {{"mutants", s.mutants},
          {"killed", s.killed},
          {"survivors", survivors},
          {"equivalent", equivalent},
          {"rate", s.rate()},
          {"checks_to_kill", checks_json(results)},
          {"seconds", seconds},
          {"cpu_seconds", cpu / 1000},
          {"not_planted", inert_pairs()},
          {"matrix", matrix},
          {"idle_laws", idle_laws(results)},
          {"kills", kills}};
}

void print_line(const MutantResult& r) {
  std::string text;
  for (const Kill& k : r.kills) text += " " + k.law + (k.how.empty() ? "" : " (" + k.how + ")");
  std::printf("%-10s %-9s %-52s%s\n",
              r.killed()     ? "killed"
              : r.equivalent ? "equivalent"
                             : "SURVIVED",
              r.group.c_str(), r.id.c_str(), r.killed() ? text.c_str() : (" " + r.reason).c_str());
  std::fflush(stdout);
}

void print_summary(const std::vector<MutantResult>& results, double seconds) {
  std::printf("\n%s\n", matrix_text(matrix_of(results)).c_str());
  std::printf("%-9s %8s %8s %11s %10s %8s %8s %8s\n", "group", "mutants", "killed", "equivalent", "survivors",
              "rate", "half by", "95% by");
  const auto line = [&](const char* name, std::string_view group) {
    const Score s = score_of(results, group);
    const ChecksToKill c = checks_to_kill(results, group);
    if (s.mutants)
      std::printf("%-9s %8zu %8zu %11zu %10zu %7.2f%% %8.0f %8.0f\n", name, s.mutants, s.killed, s.equivalent,
                  s.survivors(), 100 * s.rate(), c.half, c.most);
  };
  for (const std::string_view group : kGroups) line(std::string(group).c_str(), group);
  line("all", {});
  double cpu = 0;
  for (const MutantResult& r : results) cpu += r.cpu_ms / 1000;
  const ChecksToKill checks = checks_to_kill(results);
  std::printf(
      "checks until a law notices: %.0f in the median, %.0f for 95 %%; %.0f s, %.0f s of processor time\n",
      checks.half, checks.most, seconds, cpu);
  const Score all = score_of(results);
  if (all.mutants == all.killed + all.equivalent) return;
  std::printf("survivors:\n");
  for (const MutantResult& r : results)
    if (!r.killed() && !r.equivalent) std::printf("  %-52s %s\n", r.id.c_str(), r.reason.c_str());
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  LAMELLA_CHECK(in.good(), Usage, "mutate: there is no file \"{}\"", path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Plants what the table names, law by law, and asks that law alone.
int check_laws(const Asked& o, const std::vector<Planted>& all) {
  const auto column = read_column(read_text(o.check_laws));
  size_t asked = 0, wrong = 0;
  for (const Law& law : laws()) {
    if (*o.run.stop) break;
    const auto named = column.find(std::string(law.id));
    std::vector<Planted> planted;
    if (named != column.end())
      for (const Planted& p : all)
        if (std::ranges::find(named->second, p.id) != named->second.end()) planted.push_back(p);
    MutantOptions options = o.run;
    options.laws = {std::string(law.id)};
    options.equivalence_cases = 0;
    bool red = false;
    for (const MutantResult& r : run_mutants(planted, options)) red |= r.killed();
    if (*o.run.stop) break;
    ++asked;
    if (red) continue;
    ++wrong;
    std::printf("law %d (%s): none of the %zu mutants named in %s turns it red\n", law.number,
                std::string(law.id).c_str(), planted.size(), o.check_laws.c_str());
  }
  std::printf("%zu of %zu laws shown red by the mutants %s names\n", asked - wrong, laws().size(),
              o.check_laws.c_str());
  if (*o.run.stop) std::printf("interrupted after %zu of %zu laws\n", asked, laws().size());
  return wrong ? 1 : 0;
}

void check_operators(const Asked& o) {
  for (const std::string& name : o.ops)
    LAMELLA_CHECK(lamella::OpTable::current().find(name), UnknownOperator, "there is no operator \"{}\"{}",
                  name, lamella::nearest_operators(name));
}

/// Whoever misspells one of several would not learn that it was not planted.
void check_names(const Asked& o, const std::vector<Planted>& all) {
  std::vector<std::string_view> ids, groups(std::begin(kGroups), std::end(kGroups));
  for (const Planted& p : all) {
    ids.push_back(p.id);
    if (std::ranges::find(groups, p.group) == groups.end()) groups.push_back(p.group);
  }
  for (const std::string& id : o.ids)
    LAMELLA_CHECK(std::ranges::find(ids, id) != ids.end(), Usage, "there is no mutant \"{}\"{}{}", id,
                  lamella::nearest_text(id, ids), "; see lamella mutate --list");
  for (const std::string& group : o.groups)
    LAMELLA_CHECK(std::ranges::find(groups, group) != groups.end(), Usage, "there is no group \"{}\"{}",
                  group, lamella::nearest_text(group, groups));
}

/// None where it was asked to stop before all were made.
std::vector<Planted> chosen(const Asked& o) {
  std::vector<Planted> all = all_planted(o.ops, o.run.stop);
  if (*o.run.stop) return {};
  check_names(o, all);
  if (!o.ids.empty())
    std::erase_if(all, [&](const Planted& p) { return std::ranges::find(o.ids, p.id) == o.ids.end(); });
  if (!o.groups.empty())
    std::erase_if(all,
                  [&](const Planted& p) { return std::ranges::find(o.groups, p.group) == o.groups.end(); });
  LAMELLA_CHECK(!all.empty(), Usage, "mutate: no mutant fits what is asked for");
  return sample_of(std::move(all), o.sample, o.run.seed);
}

/// Runs them, with a line for each that did not die (for all of them if `verbose`).
std::vector<MutantResult> run_all(const Asked& o, const std::vector<Planted>& planted) {
  size_t survivors = 0;
  lamella::tools::Countdown progress(planted.size());
  return run_mutants(planted, o.run, [&](const MutantResult& r) {
    survivors += !r.killed() && !r.equivalent;
    progress.clear();
    if (o.json != "-" && (o.verbose || !r.killed())) print_line(r);
    if (o.json != "-" && o.verbose)
      for (const Kill& k : r.kills) std::printf("    %s: %s\n", k.law.c_str(), k.message.c_str());
    progress.step(r.id, lamella::format("{} survive, ", survivors));
  });
}

int list(const std::vector<Planted>& planted) {
  for (const Planted& p : planted)
    std::printf("%-9s %-52s %s\n", p.group.c_str(), p.id.c_str(), p.what.c_str());
  std::printf("%zu mutants\n", planted.size());
  return 0;
}

void add_options(lamella::tools::CommandLine& app, Asked& o) {
  app.add_option("--op", o.ops, "operators to plant bugs in (default: all, and the harness)");
  app.add_option("--group", o.groups, "rule, batch, dispatch, kernel, harness (default: all)");
  app.add_option("--mutant", o.ids, "ids of the mutants to plant");
  app.add_option("--sample", o.sample, "so many of them, chosen by --seed");
  app.add_option("--seed", o.run.seed, "seed of the sample and of the drawn cases");
  app.add_option("--law", o.laws, "laws to ask, by id, number or group (default: all)")->delimiter(',');
  app.add_option("--processes", o.run.processes, "planted bugs looked at at once")->check(CLI::Range(1, 256));
  app.add_option("--budget", o.run.cpu_ms, "milliseconds of processor time for the laws, a mutant")
      ->check(lamella::tools::positive());
  app.add_option("--at-least", o.at_least, "share of the mutants, equivalent ones aside, that must be killed")
      ->check(lamella::tools::number_in(0, 1));
  app.add_option("--json", o.json, "write {mutants, killed, survivors, ...} to FILE (- for standard output)");
  app.add_option("--load", o.plugins, "shared library that defines operators, mutants or perturbations");
  app.add_option("--write-laws", o.write_laws, "rewrite the last column of the table of laws in FILE");
  app.add_option("--check-laws", o.check_laws, "check that the mutants named in FILE turn their laws red");
  app.add_flag("--first", o.run.first_only, "stop at the first law that notices");
  app.add_flag("--verbose", o.verbose, "a line for each mutant, and what the laws said");
  app.add_flag("--list", o.list, "list the mutants, run none");
}
}  // namespace

int main_mutate(int argc, char** argv) {
  lamella::tools::CommandLine app(
      "Plants bugs in rules, batch rules, the dispatcher, kernels and the harness, and lists which law "
      "notices which",
      "lamella mutate");
  Asked o;
  add_options(app, o);
  app.read(argc, argv);
  for (const std::string& file : o.plugins) lamella::tools::load_plugin(file);
  for (const Law* law : lamella::tools::laws_named(o.laws)) o.run.laws.emplace_back(law->id);
  check_operators(o);
  const auto begin = std::chrono::steady_clock::now();
  const volatile std::sig_atomic_t& stop_requested = lamella::tools::stop_on_signals();
  o.run.stop = &stop_requested;
  if (!o.check_laws.empty()) return check_laws(o, all_planted(o.ops, &stop_requested));
  if (!o.write_laws.empty()) (void)read_text(o.write_laws);  // before an hour is spent
  const std::vector<Planted> planted = chosen(o);
  if (o.list) return list(planted);
  const std::vector<MutantResult> results = run_all(o, planted);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  nlohmann::ordered_json out = as_json(results, seconds);
  out["interrupted"] = stop_requested != 0;
  if (o.json != "-" && !results.empty()) print_summary(results, seconds);
  if (stop_requested && o.json != "-" && planted.empty())
    std::printf("interrupted before the first mutant\n");
  else if (stop_requested && o.json != "-")
    std::printf("interrupted after %zu of %zu mutants\n", results.size(), planted.size());
  if (!o.json.empty()) lamella::tools::write_output(o.json, out.dump(1) + "\n");
  if (!o.write_laws.empty() && !stop_requested) {
    const std::string text = with_column(read_text(o.write_laws), witnesses(results));
    lamella::tools::write_whole_file(o.write_laws, text);
  }
  if (o.json != "-" && !stop_requested && o.ops.empty() && o.ids.empty() && o.groups.empty() && o.sample == 0)
    for (const std::string& id : idle_laws(results)) std::printf("no bug turned %s red\n", id.c_str());
  const Score score = score_of(results);
  if (double(score.equivalent) > kMostEquivalent * double(std::max<size_t>(results.size(), kFew))) {
    std::printf("%zu of %zu mutants are equivalent: more than %g %%\n", size_t(score.equivalent),
                results.size(), 100 * kMostEquivalent);
    return 1;
  }
  return score.rate() >= o.at_least ? 0 : 1;
}
