// `lamella merge`: reports of shards become the report of the whole.
#include <CLI/CLI.hpp>
#include <iostream>

#include "commands.h"
#include "run_json.h"

int main_merge(int argc, char** argv) {
  using namespace lamella::tools;
  CLI::App app("Puts reports of lamella verify --shard i/n --json together", "lamella merge");
  std::vector<std::string> inputs;
  std::string output = "-", junit;
  app.add_option("inputs", inputs, "reports of the same version, seed and depth, without a pair in common")
      ->required();
  app.add_option("-o,--output", output, "JSON file to write (- for standard output)")->capture_default_str();
  app.add_option("--junit", junit, "also write the whole as JUnit XML to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { return app.exit(e) == 0 ? 0 : 2; }
  std::vector<nlohmann::json> runs;
  for (const std::string& path : inputs) runs.push_back(read_json(path));
  const nlohmann::json whole = merge_runs(runs, inputs);
  write_json(output, whole);
  if (!junit.empty()) write_text(junit, junit_xml(whole));
  const size_t of = whole["shard"]["of"], have = whole["shard"]["parts"].size();
  if (have < of) std::cerr << "lamella merge: " << of - have << " of " << of << " shards are missing\n";
  return whole["failures"].empty() ? 0 : 1;
}
