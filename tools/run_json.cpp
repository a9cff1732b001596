// What the JSON of `lamella verify` says beside the counts; files of JSON.
#include "run_json.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "lamella/core/version.h"

#include "whole_file.h"

namespace lamella::tools {

using namespace verify;
using nlohmann::json;

Shard Shard::parse(const std::string& text) {
  Shard s;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, s.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto of = slash ? std::from_chars(index.ptr + 1, end, s.of) : index;
  LAMELLA_CHECK(slash && of.ec == std::errc() && of.ptr == end && 0 <= s.index && s.index < s.of, Usage,
                "--shard {}: expected i/n with 0 <= i < n, such as 0/2 and 1/2", text);
  return s;
}

namespace {
json law_json(const Law& law) {
  return {{"number", law.number},
          {"id", law.id},
          {"group", law.group},
          {"statement", law.statement},
          {"oracle", law.oracle}};
}

void describe_cell(json& cell, const Tally& t) {
  cell["discards"] = t.discards;
  cell["deep"] = t.deep;
  cell["seconds"] = t.seconds;
  for (const Strata::Entry& e : t.strata.entries()) {
    cell["strata"][e.stratum.dtype()][e.stratum.stack()] = e.cases;
    if (e.failures) cell["failed_strata"][e.stratum.dtype()][e.stratum.stack()] = e.failures;
  }
}
}  // namespace

void describe_run(json& out, const Report& report, const RunOptions& options, int depth) {
  out["format"] = 1;
  out["version"] = LAMELLA_VERSION;
  out["depth"] = depth;
  out["shard"] = {{"of", options.shards}, {"parts", {options.shard}}};
  out["seconds"] = report.seconds;
  out["all_laws"] = options.laws.size() == laws().size();
  out["laws"] = json::array();
  for (const Law* law : options.laws) out["laws"].push_back(law_json(*law));
  for (const Op* op : options.ops)
    for (const Law* law : options.laws) {
      if (!law->applies(*op) || !in_shard(*op, *law, options.shard, options.shards)) continue;
      json& cell = out["operators"][op->name][std::string(law->id)];
      if (cell.is_null()) cell = {{"cases", 0}, {"failures", 0}, {"per_second", 0.0}};
      const auto at = report.tallies.find({op->name, std::string(law->id)});
      describe_cell(cell, at == report.tallies.end() ? Tally{} : at->second);
    }
  for (size_t k = 0; k < report.failures.size(); ++k)
    out["failures"][k]["message"] = report.failures[k].message;
  for (const auto& [law, counted] : report.counts) out["counts"][law] = counted;
  const Tally total = report.total();
  out["rate"] = {{"seconds", total.seconds},
                 {"per_second", double(total.cases) / std::max(total.seconds, 1e-9)}};
}

void write_json(const std::string& path, const json& value) {
  write_output(path, value.dump(1, ' ', false, json::error_handler_t::replace) + '\n');
}

json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  LAMELLA_CHECK(file && !std::filesystem::is_directory(path), Usage, "{}: cannot be read", path);
  json out;
  std::string why = "no JSON object";
  try {
    out = json::parse(file);
  } catch (const json::exception& e) { why = e.what(); }
  LAMELLA_CHECK(out.is_object(), Usage, "{}: {}", path, why);
  return out;
}

namespace {
bool is_count(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number_unsigned();
}

bool is_text(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string();
}

/// {dtype: {stack: count}}
bool are_strata(const json& cell, const char* key) {
  if (!cell.contains(key)) return true;
  const auto counts = [](const json& of_dtype) {
    return of_dtype.is_object() && std::all_of(of_dtype.begin(), of_dtype.end(),
                                               [](const json& n) { return n.is_number_unsigned(); });
  };
  return cell[key].is_object() && std::all_of(cell[key].begin(), cell[key].end(), counts);
}

bool is_cell(const json& cell) {
  return is_count(cell, "cases") && is_count(cell, "failures") && is_count(cell, "discards") &&
         cell.contains("seconds") && cell["seconds"].is_number() && are_strata(cell, "strata") &&
         are_strata(cell, "failed_strata");
}

std::string wrong_with(const json& run) {
  for (const char* key : {"checks", "seed", "depth", "format"})
    if (!is_count(run, key)) return std::string("no count \"") + key + "\"";
  if (run["format"] != 1) return "a format that this program does not know";
  for (const char* key : {"interrupted", "all_laws"})
    if (run.contains(key) && !run[key].is_boolean()) return std::string("\"") + key + "\" is no truth value";
  if (!is_text(run, "version")) return "no \"version\"";
  if (!run.contains("seconds") || !run["seconds"].is_number()) return "no \"seconds\"";
  if (!run.contains("shard") || !is_count(run["shard"], "of") || !run["shard"]["parts"].is_array() ||
      !std::all_of(run["shard"]["parts"].begin(), run["shard"]["parts"].end(),
                   [](const json& part) { return part.is_number_unsigned(); }))
    return "no \"shard\"";
  for (const char* key : {"laws", "failures"})
    if (!run.contains(key) || !run[key].is_array()) return std::string("no list \"") + key + "\"";
  for (const json& law : run["laws"])
    if (!is_text(law, "id") || !is_text(law, "group") || !is_text(law, "statement") ||
        !is_count(law, "number"))
      return "a law without id, number, group or statement";
  for (const json& f : run["failures"])
    if (!is_text(f, "operator") || !is_text(f, "law") || !is_text(f, "program") || !is_text(f, "message"))
      return "a failure without operator, law, message or program";
  if (!run.contains("operators") || !run["operators"].is_object()) return "no \"operators\"";
  for (const auto& [op, cells] : run["operators"].items()) {
    if (!cells.is_object()) return "operator " + op + " has no laws";
    for (const auto& [law, cell] : cells.items())
      if (!is_cell(cell)) return op + ", " + law + ": no counts";
  }
  return "";
}
}  // namespace

void check_run(const json& run, const std::string& path) {
  const std::string wrong = wrong_with(run);
  LAMELLA_CHECK(wrong.empty(), Usage, "{}: not a report of lamella verify --json: {}", path, wrong);
}

std::vector<std::string> missed_coverage(const json& run) {
  std::vector<std::string> out;
  const bool whole = run["shard"]["parts"].size() == run["shard"]["of"].get<size_t>();
  if (!whole || !run.value("all_laws", false) || !run.contains("coverage")) return out;
  for (const auto& [op, c] : run["coverage"].items()) {
    std::string missed;
    for (const json& what : c.value("missed", json::array()))
      missed += (missed.empty() ? op + ": " : ", ") + what.get<std::string>();
    if (!missed.empty()) out.push_back(missed);
  }
  return out;
}

bool says_what_is_missed(const json& run, const char* who) {
  const std::vector<std::string> missed = missed_coverage(run);
  if (missed.empty()) return false;
  std::cerr << "lamella " << who << ": the cases do not cover what they must\n";
  for (const std::string& m : missed) std::cerr << "  " << m << '\n';
  const auto mixed = [](const std::string& m) { return m.find("mixed dtypes") != std::string::npos; };
  if (std::ranges::any_of(missed, mixed))
    std::cerr << "  mixed dtypes: samples draw the second tensor's by Draw::partner\n";
  return true;
}

std::vector<std::string> why_incomplete(const json& run) {
  std::vector<std::string> out;
  const size_t of = run["shard"]["of"], have = run["shard"]["parts"].size();
  if (have < of) out.push_back(format("{} of {} shards are missing", of - have, of));
  if (run.value("interrupted", false)) out.emplace_back("a run was interrupted");
  return out;
}

std::vector<std::pair<std::string, std::string>> gaps_of(const json& run) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [op, cells] : run["operators"].items())
    for (const auto& [law, cell] : cells.items())
      if (cell["cases"] == 0) out.emplace_back(op, law);
  return out;
}

}  // namespace lamella::tools
