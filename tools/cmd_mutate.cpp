// `lamella mutate`: plants bugs and lists which law catches which.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lamella/verify/mutants.h"

#include "commands.h"
#include "whole_file.h"

namespace {
using namespace lamella::verify;

std::string laws_text(const MutantResult& r) {
  std::string out;
  for (size_t k = 0; k < r.caught_by.size(); ++k)
    out += (k ? " " : "") + r.caught_by[k] +
           (r.cases[k] == -1   ? " (crash)"
            : r.cases[k] == -2 ? " (hangs)"
                               : "");
  return out;
}

/// Laws that no bug turned red: not yet shown to be alive.
std::vector<std::string> idle_laws(const std::vector<MutantResult>& results) {
  std::vector<std::string> out;
  for (const Law& law : laws()) {
    bool red = false;
    for (const MutantResult& r : results)
      for (const std::string& id : r.caught_by) red |= id == law.id;
    if (!red) out.emplace_back(law.id);
  }
  return out;
}

nlohmann::ordered_json as_json(const std::vector<MutantResult>& results) {
  nlohmann::ordered_json survivors = nlohmann::ordered_json::array(), kills = nlohmann::ordered_json::array();
  for (const MutantResult& r : results) {
    if (!r.killed()) survivors.push_back({{"id", r.id}, {"reason", r.reason}});
    kills.push_back(
        {{"id", r.id}, {"group", r.group}, {"bug", r.what}, {"laws", r.caught_by}, {"cases", r.cases}});
  }
  return {{"mutants", results.size()},
          {"killed", results.size() - survivors.size()},
          {"survivors", survivors},
          {"kills", kills},
          {"idle_laws", idle_laws(results)}};
}
}  // namespace

int main_mutate(int argc, char** argv) {
  CLI::App app(
      "Plants bugs in rules, batch rules, the dispatcher and kernels, and lists which law catches which",
      "lamella mutate");
  MutantOptions options;
  std::string json_path;
  app.add_option("--op", options.ops,
                 "operators to plant bugs in (default: a few of different shape classes)");
  app.add_option("--json", json_path, "write {mutants, killed, survivors} to FILE (- for standard output)");
  app.add_option("--seed", options.seed, "seed of the drawn cases");
  app.add_option("--cases", options.cases, "most cases a law");
  app.add_flag("--first", options.first_only, "stop at the first law that notices");
  CLI11_PARSE(app, argc, argv);
  const std::vector<Planted> planted = choose_mutants(options);
  LAMELLA_CHECK(!planted.empty(), Usage, "no mutant fits the operators given");
  std::vector<MutantResult> results;
  for (const Planted& p : planted) {
    if (isatty(2)) std::cerr << "\r\033[K" << p.id() << std::flush;
    const MutantResult r = run_mutant(p, options);
    if (isatty(2)) std::cerr << "\r\033[K";
    results.push_back(r);
    if (json_path == "-") continue;
    std::printf("%-9s %-10s %-44s %s\n", r.killed() ? "killed" : "SURVIVED", r.group.c_str(), r.id.c_str(),
                r.killed() ? laws_text(r).c_str() : r.reason.c_str());
    std::fflush(stdout);
  }
  const nlohmann::ordered_json out = as_json(results);
  const size_t killed = out["killed"];
  if (json_path == "-") std::cout << out.dump(1) << '\n';
  else std::printf("%zu of %zu planted bugs killed\n", killed, results.size());
  if (!json_path.empty() && json_path != "-") lamella::tools::write_whole_file(json_path, out.dump(1) + "\n");
  if (json_path != "-" && options.ops.empty() && !options.first_only)
    for (const std::string& id : idle_laws(results)) std::printf("no bug turned law %s red\n", id.c_str());
  return killed == results.size() ? 0 : 1;
}
