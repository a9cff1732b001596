// Questions about reports of shards that are put together.
#include <algorithm>
#include <set>

#include "lamella/verify/case/coverage.h"

#include "calibration_aids.h"
#include "calibrations.h"
#include "drawn_report.h"
#include "run_json.h"

namespace lamella::tools {

namespace {
using nlohmann::json;

constexpr const char* kRequired[] = {"ties", "smooth", "maps 1 of 2"};

/// What one part of a run covers of an operator.
json drawn_coverage(Dice& dice) {
  json out = {{"cases", dice.below(500)}, {"features", {{"empty", dice.below(50)}}}};
  out["required"] = json::array(), out["missed"] = json::array();
  for (const char* what : kRequired) {
    const uint64_t cases = dice.of<uint64_t>({0, 40, 400, 4000});
    out["required"].push_back({{"what", what},
                               {"hits", cases / dice.of<uint64_t>({2, 20, 500})},
                               {"cases", cases},
                               {"share", 0.1}});
  }
  return out;
}

std::string text_of(const json& v) { return v.dump(-1, ' ', false, json::error_handler_t::replace); }

/// The pairs of a drawn report dealt to up to four parts, each with what a part says of itself.
std::vector<json> drawn_parts(Dice& dice) {
  const json whole = json::parse(text_of(drawn_report(dice)));  // as it comes from a file
  const size_t of = 1 + dice.below(4);
  std::vector<json> parts;
  for (size_t k = 0; k < of; ++k) {
    json part = whole;
    part["operators"] = json::object(), part["failures"] = json::array();
    part["interrupted"] = dice.one_in(4), part["all_laws"] = !dice.one_in(4);
    part["seconds"] = double(1 + dice.below(40)) / 4;
    part["shard"] = {{"of", of}, {"parts", {dice.one_in(4) ? dice.below(of) : k}}};
    part["counts"]["alpha"] = {{"runs", dice.below(9)}};
    for (const char* op : {"add", "exp"}) part["coverage"][op] = drawn_coverage(dice);
    parts.push_back(std::move(part));
  }
  std::map<std::pair<std::string, std::string>, size_t> dealt;
  for (const auto& [op, laws] : whole["operators"].items())
    for (const auto& [law, cell] : laws.items()) {
      const size_t to = dealt[{op, law}] = dice.below(of);
      parts[to]["operators"][op][law] = cell;
    }
  for (const json& f : whole["failures"])
    parts[dealt.at({f["operator"].get<std::string>(), f["law"].get<std::string>()})]["failures"].push_back(f);
  return parts;
}

std::vector<std::string> names_of(size_t n) {
  std::vector<std::string> out;
  for (size_t k = 0; k < n; ++k) out.push_back("part" + std::to_string(k));
  return out;
}

json merged(const std::vector<json>& parts) { return merge_runs(parts, names_of(parts.size())); }

/// Coverage of an operator by the plain sums over the parts.
std::string coverage_differs(const json& whole, const std::vector<json>& parts, const char* op) {
  uint64_t cases = 0, features = 0;
  std::set<std::string> missed;
  std::map<std::string, std::pair<uint64_t, uint64_t>> sums;
  for (const json& p : parts) {
    const json& c = p["coverage"][op];
    cases += c["cases"].get<uint64_t>(), features += c["features"]["empty"].get<uint64_t>();
    for (const json& r : c["required"]) {
      auto& [hits, of] = sums[r["what"]];
      hits += r["hits"].get<uint64_t>(), of += r["cases"].get<uint64_t>();
    }
  }
  const json& got = whole["coverage"][op];
  if (got["cases"] != cases || got["features"]["empty"] != features)
    return format("{}: {} for {} cases and {} features", op, got.dump(), cases, features);
  for (const auto& [what, sum] : sums)
    if (verify::falls_short({what, sum.first, sum.second, 0.1})) missed.insert(what);
  if (parts.size() < 2) return "";  // what a part alone says it missed is not judged again
  for (const json& r : got["required"])
    if (sums.at(r["what"]) != std::pair(r["hits"].get<uint64_t>(), r["cases"].get<uint64_t>()))
      return format("{}: {} of parts that have {} in {}", op, r.dump(), sums.at(r["what"]).first,
                    sums.at(r["what"]).second);
  if (got["missed"].get<std::set<std::string>>() != missed)
    return format("{}: {} is missed", op, got["missed"].dump());
  return "";
}

/// A merged report against plain sums.
std::string whole_differs(const json& whole, const std::vector<json>& parts) {
  json operators = json::object();
  std::multiset<std::string> failures, failures_got;
  std::set<size_t> shards;
  double longest = 0, processor = 0;
  uint64_t checks = 0, runs = 0;
  bool interrupted = false;
  for (const json& p : parts) {
    for (const auto& [op, laws] : p["operators"].items())
      for (const auto& [law, cell] : laws.items()) {
        operators[op][law] = cell;
        checks += cell["cases"].get<uint64_t>(), processor += cell["seconds"].get<double>();
      }
    for (const json& f : p["failures"]) failures.insert(text_of(f));
    shards.insert(p["shard"]["parts"][0].get<size_t>());
    longest = std::max(longest, p["seconds"].get<double>());
    interrupted |= p["interrupted"].get<bool>();
    runs += p["counts"]["alpha"]["runs"].get<uint64_t>();
  }
  for (const json& f : whole["failures"]) failures_got.insert(text_of(f));
  if (whole["operators"] != operators) return "pairs are lost or changed";
  if (failures_got != failures) return "failures are lost or changed";
  const json wanted = {{"checks", checks},   {"interrupted", interrupted}, {"parts", shards},
                       {"seconds", longest}, {"processor", processor},     {"runs", runs}};
  const json got = {{"checks", whole["checks"]},
                    {"interrupted", whole["interrupted"]},
                    {"parts", whole["shard"]["parts"]},
                    {"seconds", whole["seconds"]},
                    {"processor", whole["rate"]["seconds"]},
                    {"runs", whole["counts"]["alpha"]["runs"]}};
  if (got != wanted) return format("{}, expected {}", got.dump(), wanted.dump());
  const bool complete = shards.size() == parts.size() && !interrupted;
  if (why_incomplete(whole).empty() != complete)
    return format("shards {}, interrupted {}: {} reasons why it is incomplete", wanted["parts"].dump(),
                  interrupted, why_incomplete(whole).size());
  for (const char* op : {"add", "exp"})
    if (const std::string d = coverage_differs(whole, parts, op); !d.empty()) return d;
  return "";
}

std::string parts_are_the_whole() {
  Dice dice(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<json> parts = drawn_parts(dice);
    const json whole = merged(parts);
    if (const std::string d = whole_differs(whole, parts); !d.empty()) return d;
    if (merged({whole}) != whole) return "merging a whole again changes it";
    dice.shuffle(parts);
    if (merged(parts) != whole) return "another order of the parts gives another whole";
    if (parts.size() < 2) continue;
    std::vector<json> nested = {merged({parts[0], parts[1]})};
    nested.insert(nested.end(), parts.begin() + 2, parts.end());
    if (merged(nested) != whole) return "two parts merged first give another whole";
  }
  return "";
}

std::string strangers_are_refused() {
  Dice dice(12);
  const std::pair<const char*, json> changes[] = {
      {"version", "0.2"}, {"seed", 8u}, {"depth", 4u}, {"cases", 5u}};
  for (int round = 0; round < 12; ++round) {
    std::vector<json> parts = drawn_parts(dice);
    if (parts.size() < 2) continue;
    (void)merged(parts);
    for (const auto& [key, other] : changes) {
      std::vector<json> mixed = parts;
      dice.of<json*>({&mixed.front(), &mixed.back()})->at(key) = other;
      if (!raised_by([&] { (void)merged(mixed); }).starts_with("usage"))
        return format("reports with different {}s are merged", key);
    }
    std::vector<json> other_count = parts, twice = parts;
    other_count.back()["shard"]["of"] = 9u;
    if (raised_by([&] { (void)merged(other_count); }).empty()) return "parts of 9 and of fewer are merged";
    const json& first = parts[0]["operators"];
    if (first.empty()) continue;
    const auto op = first.begin();
    twice[1]["operators"][op.key()][op->begin().key()] = *op->begin();
    if (raised_by([&] { (void)merged(twice); }).empty()) return "a pair that two parts have is counted twice";
  }
  return "";
}
}  // namespace

Calibrations calibrations_of_merging() {
  return {
      {"parts_are_the_whole",
       "Reports of parts, in any order, are merged into the sums of what each counts, the longest time, and "
       "what is missing of any.",
       guarded<parts_are_the_whole>},
      {"strangers_are_refused",
       "Reports of other versions, seeds, depths, numbers of shards or cases, or with a pair in common are "
       "not merged.",
       guarded<strangers_are_refused>},
  };
}

}  // namespace lamella::tools
