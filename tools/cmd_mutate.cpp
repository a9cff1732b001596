// `lamella mutate`: plants bugs and lists which law catches which.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "commands.h"
#include "lamella/verify/mutants.h"

namespace {
using namespace lamella::verify;

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : " ") + n;
  return out;
}
}  // namespace

int main_mutate(int argc, char** argv) {
  CLI::App app("Plants bugs in rules, batch rules, the dispatcher and kernels, and lists which law catches which", "lamella mutate");
  MutantOptions options;
  std::string json_path;
  app.add_option("--op", options.ops, "operators to plant bugs in (default: a few of different shape classes)");
  app.add_option("--json", json_path, "write {mutants, killed, survivors} to FILE (- for standard output)");
  app.add_option("--seed", options.seed, "seed of the drawn cases");
  app.add_option("--cases", options.cases, "most cases a law");
  app.add_flag("--first", options.first_only, "stop at the first law that notices");
  CLI11_PARSE(app, argc, argv);
  const std::vector<Planted> planted = choose_mutants(options);
  LAMELLA_CHECK(!planted.empty(), Usage, "no mutant fits the operators given");
  nlohmann::ordered_json survivors = nlohmann::ordered_json::array();
  size_t killed = 0;
  for (const Planted& p : planted) {
    if (isatty(2)) std::cerr << "\r\033[K" << p.id() << std::flush;
    const MutantResult r = run_mutant(p, options);
    if (isatty(2)) std::cerr << "\r\033[K";
    killed += r.killed();
    if (!r.killed()) survivors.push_back({{"id", r.id}, {"reason", r.reason}});
    if (json_path != "-")
      std::printf("%-9s %-10s %-44s %s\n", r.killed() ? "killed" : "SURVIVED", r.group.c_str(), r.id.c_str(),
                  r.killed() ? joined(r.caught_by).c_str() : r.reason.c_str());
  }
  if (json_path != "-") std::printf("%zu of %zu planted bugs killed\n", killed, planted.size());
  const nlohmann::ordered_json out{{"mutants", planted.size()}, {"killed", killed}, {"survivors", survivors}};
  if (json_path == "-") std::cout << out.dump(1) << '\n';
  else if (!json_path.empty()) std::ofstream(json_path) << out.dump(1) << '\n';
  return survivors.empty() ? 0 : 1;
}
