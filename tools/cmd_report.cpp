// `lamella report`: reports of verify and mutate as one page.
#include "lamella/core/check.h"

#include "command_line.h"
#include "commands.h"
#include "report_page.h"
#include "run_json.h"
#include "whole_file.h"

int main_report(int argc, char** argv) {
  using namespace lamella;
  using namespace lamella::tools;
  using nlohmann::json;
  CommandLine app("Writes reports as one HTML page that needs nothing else", "lamella report");
  std::vector<std::string> inputs;
  std::string output = "report.html";
  app.add_option("inputs", inputs, "JSON of lamella verify (shards are merged) and of lamella mutate")
      ->required();
  app.add_option("-o,--output", output, "page to write (- for standard output)");
  app.read(argc, argv);
  std::vector<json> runs;
  std::vector<std::string> paths;
  json mutants;
  for (const std::string& path : inputs) {
    json read = read_json(path);
    if (!read.contains("kills")) {
      runs.push_back(std::move(read)), paths.push_back(path);
      continue;
    }
    LAMELLA_CHECK(mutants.is_null(), Usage, "{}: one report of lamella mutate fits on a page", path);
    mutants = std::move(read);
  }
  try {
    write_output(output, report_page(runs.empty() ? json() : merge_runs(runs, paths), mutants));
  } catch (
      const json::exception& e) {  // of lamella mutate's, or coverage: their shapes are not checked before
    std::string named;
    for (const std::string& path : inputs) named += (named.empty() ? "" : ", ") + path;
    throw std::runtime_error(named + ": an unexpected shape of JSON: " + e.what());
  }
  return 0;
}
