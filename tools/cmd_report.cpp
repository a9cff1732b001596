// `lamella report`: reports of verify and mutate as one page.
#include <CLI/CLI.hpp>
#include <iostream>

#include "lamella/core/check.h"

#include "commands.h"
#include "report_page.h"
#include "run_json.h"

int main_report(int argc, char** argv) {
  using namespace lamella;
  using namespace lamella::tools;
  using nlohmann::json;
  CLI::App app("Writes reports as one HTML page that needs nothing else", "lamella report");
  std::vector<std::string> inputs;
  std::string output = "report.html";
  app.add_option("inputs", inputs, "JSON of lamella verify (shards are merged) and of lamella mutate")
      ->required();
  app.add_option("-o,--output", output, "page to write (- for standard output)")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { return app.exit(e) == 0 ? 0 : 2; }
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
    write_text(output, report_page(runs.empty() ? json() : merge_runs(runs, paths), mutants));
  } catch (
      const json::exception& e) {  // of lamella mutate's, or coverage: their shapes are not checked before
    throw std::runtime_error(std::string("an unexpected shape of JSON: ") + e.what());
  }
  return 0;
}
