// `lamella museum`: historical bugs of other libraries, planted again; which law finds each, and how soon.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lamella/dispatch/nearest.h"
#include "lamella/mutate/museum/museum.h"

#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "plugin.h"
#include "progress.h"
#include "whole_file.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

std::string verdict_of(const MuseumResult& r) {
  if (!r.alarm.empty()) return "ALARM: " + r.alarm;
  if (!r.ended.empty()) return "the process died: " + r.ended;
  if (r.red.empty()) return "NOT FOUND";
  std::string out;
  for (const Sighting& s : r.red)
    out += format("{}{} ({} {}, {} words, {} elements)", out.empty() ? "" : "; ", s.law, s.cases,
                  s.cases == 1 ? "case" : "cases", s.words, s.elements);
  return out;
}

nlohmann::ordered_json as_json(const std::vector<MuseumResult>& results) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  size_t shown = 0;
  for (const MuseumResult& r : results) {
    nlohmann::ordered_json red = nlohmann::ordered_json::array();
    for (const Sighting& s : r.red)
      red.push_back({{"law", s.law},
                     {"cases", s.cases},
                     {"words", s.words},
                     {"elements", s.elements},
                     {"message", s.message},
                     {"program", cpp_program(s.program)}});
    shown += r.shown();
    rows.push_back({{"id", r.exhibit->id},
                    {"kind", r.exhibit->kind},
                    {"source", r.exhibit->source},
                    {"summary", r.exhibit->summary},
                    {"operator", r.exhibit->op},
                    {"shown", r.shown()},
                    {"red", red},
                    {"green", r.green},
                    {"alarm", r.alarm},
                    {"ended", r.ended}});
  }
  return {{"exhibits", results.size()}, {"shown", shown}, {"rows", rows}};
}

constexpr char kHead[] =
    "# Museum of historical bugs\n\n"
    "Bugs that were found in other libraries, planted again in one operator each. The laws know nothing of\n"
    "them: each is found by a law that holds for all operators, on drawn cases. Written by\n"
    "`lamella museum --write docs/museum.md`, which runs every exhibit with its bug until a law fails (red) "
    "and\n"
    "the same cases without it (green: none fails). `lamella museum --id ID` prints one with its "
    "counterexample.\n\n"
    "Sources: pt pytorch/pytorch, ft pytorch/functorch, jax jax-ml/jax, mlx ml-explore/mlx, stan\n"
    "stan-dev/math; others by name; #N an issue or pull request, @N a commit. \"Size\" is that of the "
    "reduced\n"
    "counterexample: choices that are not zero, and elements of all tensor arguments together.\n";

std::string document(const std::vector<MuseumResult>& results) {
  std::ostringstream out;
  size_t shown = 0;
  for (const MuseumResult& r : results) shown += r.shown();
  out << kHead << "\n" << shown << " of " << results.size() << " exhibits are found.\n";
  std::string_view kind;
  for (const MuseumResult& r : results) {
    const Exhibit& e = *r.exhibit;
    if (e.kind != kind) {
      kind = e.kind;
      out << "\n## " << kind << "\n\n| id | source | what went wrong | operator | found by | cases | size |\n"
          << "| --- | --- | --- | --- | --- | --- | --- |\n";
    }
    out << "| `" << e.id << "` | " << e.source << " | " << e.summary << " | `" << e.op << "` | ";
    if (r.red.empty()) out << (r.ended.empty() ? "nothing" : "the process dies") << " | | |\n";
    else
      out << "`" << r.red[0].law << "` | " << r.red[0].cases << " | " << r.red[0].words << " words, "
          << r.red[0].elements << " elements |\n";
  }
  return out.str();
}

/// Ids in the first column of the tables of a page.
std::vector<std::string> ids_in(const std::string& path) {
  std::ifstream file(path);
  LAMELLA_CHECK(file.good(), Usage, "cannot read {}", path);
  std::vector<std::string> ids;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `")) ids.push_back(line.substr(3, line.find('`', 3) - 3));
  return ids;
}

bool is_current(const std::string& path) {
  std::vector<std::string> have = ids_in(path), want;
  for (const Exhibit& e : museum()) want.emplace_back(e.id);
  std::ranges::sort(have);
  std::ranges::sort(want);
  if (have == want) return true;
  std::vector<std::string> differ;
  std::ranges::set_symmetric_difference(have, want, std::back_inserter(differ));
  for (const std::string& id : differ)
    std::fprintf(stderr, "%s and the museum differ in %s; write it anew\n", path.c_str(), id.c_str());
  return false;
}

std::vector<const Exhibit*> chosen(const std::vector<std::string>& ids) {
  std::vector<const Exhibit*> out;
  for (const Exhibit& e : museum())
    if (ids.empty() || std::ranges::find(ids, e.id) != ids.end()) out.push_back(&e);
  std::vector<std::string_view> names;
  for (const Exhibit& e : museum()) names.push_back(e.id);
  for (const std::string& id : ids)
    LAMELLA_CHECK(std::ranges::find(names, id) != names.end(), Usage,
                  "there is no exhibit \"{}\"{}; docs/museum.md lists them", id, nearest_text(id, names));
  return out;
}

void print(const MuseumResult& r, bool whole) {
  std::printf("%-9s %-13s %-28.*s %s\n", r.shown() ? "red/green" : "NOT SHOWN",
              std::string(r.exhibit->kind).c_str(), int(r.exhibit->id.size()), r.exhibit->id.data(),
              verdict_of(r).c_str());
  if (whole) {
    std::printf("\n%s: %s\n", std::string(r.exhibit->source).c_str(),
                std::string(r.exhibit->summary).c_str());
    for (const Sighting& s : r.red)
      std::printf(
          "\nred: %s breaks %s\n%s\n\n%s\ngreen: %d of the same cases pass without the bug, none "
          "fails\n",
          std::string(r.exhibit->op).c_str(), s.law.c_str(), s.message.c_str(),
          cpp_program(s.program).c_str(), r.green);
  }
  std::fflush(stdout);
}
}  // namespace

int main_museum(int argc, char** argv) {
  tools::CommandLine app("Plants historical bugs of other libraries and shows which law finds each",
                         "lamella museum");
  MuseumOptions options;
  std::vector<std::string> ids, plugins;
  std::string json_path, page, current;
  app.add_option("--id", ids, "exhibits to show, with their counterexamples (default: all, one line each)")
      ->delimiter(',');
  app.add_option("--json", json_path, "write {exhibits, shown, rows} to FILE (- for standard output)");
  app.add_option("--write", page, "write the table of all exhibits to FILE");
  app.add_option("--check", current, "fail unless the table in FILE lists exactly the museum's exhibits");
  app.add_option("--seed", options.seed, "seed of the drawn cases");
  app.add_option("--cases", options.cases, "most cases a law")->check(CLI::Range(1, 1000000000));
  app.add_flag("--all-laws", options.all_laws, "go on after the first law that finds the bug");
  app.add_option("--load", plugins, "shared library that brings operators or laws")->allow_extra_args(false);
  app.read(argc, argv);
  for (const std::string& file : plugins) tools::load_plugin(file);
  if (!current.empty()) (void)ids_in(current);  // before all is looked at
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<const Exhibit*> exhibits = chosen(ids);
  std::vector<MuseumResult> results;
  const volatile std::sig_atomic_t& stop_requested = tools::stop_on_signals();
  options.stop = &stop_requested;
  tools::Countdown progress(exhibits.size());
  for (const Exhibit* e : exhibits) {
    if (stop_requested) break;
    MuseumResult seen = visit(*e, options);
    progress.clear();
    if (stop_requested) break;  // it was given up
    results.push_back(std::move(seen));
    if (json_path != "-") print(results.back(), !ids.empty());
    progress.step(std::string(e->id));
  }
  nlohmann::ordered_json out = as_json(results);
  out["interrupted"] = stop_requested != 0;
  const size_t shown = out["shown"];
  if (!json_path.empty()) tools::write_output(json_path, out.dump(1) + "\n");
  if (!page.empty() && !stop_requested) tools::write_whole_file(page, document(results));
  if (json_path != "-") {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%zu of %zu exhibits red with the bug and green without, %.1f s\n", shown, results.size(),
                seconds);
    if (stop_requested)
      std::printf("interrupted after %zu of %zu exhibits\n", results.size(), exhibits.size());
  }
  return shown == results.size() && (current.empty() || is_current(current)) ? 0 : 1;
}
