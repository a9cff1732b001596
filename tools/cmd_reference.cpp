// `lamella reference`: cases computed by PyTorch and NumPy's ULP sets, run and compared.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "lamella/core/check.h"

#include "command_line.h"
#include "commands.h"
#include "plugin.h"
#include "reference_run.h"
#include "tar_zst.h"
#include "whole_file.h"

namespace {
using namespace lamella::tools;
using lamella::ErrorCode;

constexpr size_t kShownFailures = 3;  // per operator, unless --verbose

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  LAMELLA_CHECK(in, Usage, "reference: cannot open the exceptions \"{}\"", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_pack_file(const std::string& name) { return name.ends_with(".safetensors"); }
bool is_ulp_file(const std::string& name) { return name.ends_with(".csv"); }

Tally total_of(const std::map<std::string, Tally>& tallies) {
  Tally total;
  for (const auto& [name, t] : tallies) {
    total.cases += t.cases;
    total.passed += t.passed;
    total.failed += t.failed;
    total.not_implemented += t.not_implemented;
  }
  return total;
}

void print_row(const std::string& name, const Tally& t) {
  std::printf("%-34s %7d %7d %7d %9d  %s\n", name.c_str(), t.cases, t.passed, t.failed, t.not_implemented,
              t.note.c_str());
}

void print_report(const std::map<std::string, Tally>& tallies, const Exceptions& exceptions, bool verbose) {
  std::printf("%-34s %7s %7s %7s %9s\n", "operator", "cases", "passed", "failed", "not impl.");
  int absent = 0;
  for (const auto& [name, t] : tallies) {
    if (t.not_implemented == t.cases && !verbose) {
      ++absent;
      continue;
    }
    print_row(name, t);
    const size_t shown = verbose ? t.failures.size() : std::min(kShownFailures, t.failures.size());
    for (size_t i = 0; i < shown; ++i)
      std::printf("    case %d: %s\n", t.failures[i].case_number, t.failures[i].message.c_str());
    if (shown < t.failures.size()) std::printf("    and %zu more (--verbose)\n", t.failures.size() - shown);
  }
  const Tally total = total_of(tallies);
  print_row("total", total);
  const int run = total.passed + total.failed;
  if (run)
    std::printf("%.2f %% of %d cases of implemented operators passed\n", 100.0 * total.passed / run, run);
  if (absent) std::printf("%d operators are not implemented (--verbose lists them)\n", absent);
  if (exceptions.used()) std::printf("%d of them passed as reasoned exceptions\n", exceptions.used());
  if (total.failed) std::printf("FAILED\n");
}

nlohmann::ordered_json json_report(const std::map<std::string, Tally>& tallies) {
  const Tally total = total_of(tallies);
  nlohmann::ordered_json operators = nlohmann::ordered_json::object();
  const auto counts = [](const Tally& t) {
    return nlohmann::ordered_json{{"cases", t.cases},
                                  {"passed", t.passed},
                                  {"failed", t.failed},
                                  {"not_implemented", t.not_implemented}};
  };
  for (const auto& [name, t] : tallies) {
    nlohmann::ordered_json one = counts(t);
    one["failures"] = nlohmann::ordered_json::array();
    for (const Failure& f : t.failures)
      one["failures"].push_back({{"case", f.case_number}, {"message", f.message}});
    operators[name] = std::move(one);
  }
  nlohmann::ordered_json report = counts(total);
  report["operators"] = std::move(operators);
  return report;
}
}  // namespace

int main_reference(int argc, char** argv) {
  CommandLine app("Runs cases computed elsewhere and compares", "lamella reference");
  std::string path, json_path, exceptions_path;
  RunOptions options;
  std::vector<std::string> plugins;
  bool verbose = false;
  app.add_option("PATH", path,
                 "a .tar.zst, a folder or one file of cases (.safetensors) or of NumPy's ULP sets (.csv)")
      ->required();
  app.add_option("--write", options.write_dir, "write what the library computes to this folder");
  app.add_option("--json", json_path, "write the report as JSON to this file (- for standard output)");
  app.add_option("--op", options.operators, "only this operator, by its name in the pack (repeatable)");
  app.add_option("--load", plugins, "shared library that defines operators or kernels")
      ->allow_extra_args(false);
  app.add_option("--exceptions", exceptions_path,
                 "a file of reasoned exceptions instead of tools/reference_exceptions.json as built in");
  app.add_flag("--verbose,-v", verbose, "every failure, and operators that are not implemented");
  app.read(argc, argv);
  for (const std::string& file : plugins) load_plugin(file);
  std::map<std::string, Tally> tallies;
  Exceptions exceptions = exceptions_path.empty()
                              ? Exceptions(kReferenceExceptions, "reference_exceptions.json")
                              : Exceptions(text_of(exceptions_path), exceptions_path);
  visit_pack(
      path, [](const std::string& name) { return is_pack_file(name) || is_ulp_file(name); },
      [&](const std::string& name, std::string bytes) {
        if (is_ulp_file(name)) run_ulp_file(name, bytes, options, tallies);
        else run_pack_file(name, std::move(bytes), options, exceptions, tallies);
      });
  LAMELLA_CHECK(!tallies.empty(), Usage, "reference: \"{}\" has no cases{}", path,
                options.operators.empty() ? "" : " of the operators asked for");
  if (json_path != "-") print_report(tallies, exceptions, verbose);
  if (!json_path.empty()) write_output(json_path, json_report(tallies).dump(1) + "\n");
  return total_of(tallies).failed ? 1 : 0;
}
