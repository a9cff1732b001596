// `lamella merge`: reports of shards become the report of the whole.
#include <iostream>

#include "command_line.h"
#include "commands.h"
#include "run_json.h"
#include "whole_file.h"

int main_merge(int argc, char** argv) {
  using namespace lamella;
  using namespace lamella::tools;
  CommandLine app("Puts reports of lamella verify --shard i/n --json together", "lamella merge");
  std::vector<std::string> inputs;
  std::string output = "-", junit;
  bool partial = false;
  app.add_option("inputs", inputs, "reports of the same version, seed and depth, without a pair in common")
      ->required();
  app.add_option("-o,--output", output, "JSON file to write (- for standard output)");
  app.add_option("--junit", junit, "also write the whole as JUnit XML to this file");
  app.add_flag("--partial", partial,
               "what is incomplete (shards are missing, a run was interrupted) is no reason for status 1");
  app.read(argc, argv);
  LAMELLA_CHECK(output != junit, Usage, "two texts in \"{}\": give one of them another file", output);
  std::vector<nlohmann::json> runs;
  for (const std::string& path : inputs) runs.push_back(read_json(path));
  const nlohmann::json whole = merge_runs(runs, inputs);
  write_json(output, whole);
  if (!junit.empty()) write_output(junit, junit_xml(whole));
  for (size_t k = 0; k < runs.size(); ++k)
    if (runs[k].value("interrupted", false))
      std::cerr << "lamella merge: " << inputs[k] << ": this run was interrupted\n";
  const std::vector<std::string> incomplete = why_incomplete(whole);
  for (const std::string& why : incomplete) std::cerr << "lamella merge: incomplete: " << why << '\n';
  const bool missed = says_what_is_missed(whole, "merge");
  return !whole["failures"].empty() || missed || (!incomplete.empty() && !partial) ? 1 : 0;
}
