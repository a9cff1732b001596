// Putting reports of `lamella verify` together.
#include <algorithm>

#include "lamella/verify/case/coverage.h"

#include "run_json.h"

namespace lamella::tools {

using nlohmann::json;

namespace {
void check_alike(const json& a, const std::string& a_path, const json& b, const std::string& b_path) {
  for (const char* key : {"version", "seed", "depth"})
    LAMELLA_CHECK(a[key] == b[key], Usage, "{} has {} {}, {} has {}: reports of different runs do not add up",
                  a_path, key, a[key].dump(), b_path, b[key].dump());
  const json a_cases = a.value("cases", json(0)), b_cases = b.value("cases", json(0));
  LAMELLA_CHECK(a_cases == b_cases, Usage, "{} has {} cases of each pair, {} has {} (0: by the clock)",
                a_path, a_cases.dump(), b_path, b_cases.dump());
  LAMELLA_CHECK(a["shard"]["of"] == b["shard"]["of"], Usage, "{} is of {} shards, {} of {}", a_path,
                a["shard"]["of"].dump(), b_path, b["shard"]["of"].dump());
}

/// Adds numbers by key; what only one of them has is kept.
void add_counts(json& into, const json& from) {
  for (const auto& [key, n] : from.items()) {
    json& mine = into[key];
    if (mine.is_null()) mine = n;
    else if (mine.is_number() && n.is_number()) mine = mine.get<uint64_t>() + n.get<uint64_t>();
  }
}

/// Coverage of one operator: {cases, features, required: [{what, hits, cases, share, of thresholds: due}],
/// missed: [what]}.
/// Missed is what the sum of all falls short of, by the same judgement as in one run.
void add_coverage(json& into, const json& from) {
  if (into.is_null()) {
    into = from;
    return;
  }
  into["cases"] = into.value("cases", uint64_t(0)) + from.value("cases", uint64_t(0));
  if (from.contains("features")) add_counts(into["features"], from["features"]);
  std::map<std::string, json> required;
  for (const json* side : {static_cast<const json*>(&into), &from})
    for (const json& r : side->value("required", json::array())) {
      json& sum = required[r.value("what", "")];
      const bool first = sum.is_null();
      if (first) sum = r;
      for (const char* key : {"hits", "cases", "due"})
        if (!first && r.contains(key)) sum[key] = sum.value(key, uint64_t(0)) + r.value(key, uint64_t(0));
    }
  into["required"] = json::array(), into["missed"] = json::array();
  for (const auto& [what, r] : required) {
    into["required"].push_back(r);
    if (verify::falls_short({what, r.value("hits", uint64_t(0)), r.value("cases", uint64_t(0)),
                             r.value("share", 0.0), r.value("due", uint64_t(0))}))
      into["missed"].push_back(what);
  }
}

void add_operators(json& into, const json& from, const std::string& path) {
  for (const auto& [op, cells] : from.items())
    for (const auto& [law, cell] : cells.items()) {
      json& mine = into[op][law];
      LAMELLA_CHECK(mine.is_null(), Usage,
                    "{} has operator {}, law {}, and so has a file before it: counted twice, the same cases "
                    "would look like more",
                    path, op, law);
      mine = cell;
    }
}

void add_run(json& into, const json& from, const std::string& path) {
  add_operators(into["operators"], from["operators"], path);
  for (const json& part : from["shard"]["parts"]) into["shard"]["parts"].push_back(part);
  for (const json& f : from["failures"]) into["failures"].push_back(f);
  for (const json& law : from["laws"])
    if (std::find(into["laws"].begin(), into["laws"].end(), law) == into["laws"].end())
      into["laws"].push_back(law);
  if (from.contains("counts"))
    for (const auto& [law, counted] : from["counts"].items()) add_counts(into["counts"][law], counted);
  into["interrupted"] = into.value("interrupted", false) || from.value("interrupted", false);
  into["all_laws"] = into.value("all_laws", false) && from.value("all_laws", false);
  into["seconds"] = std::max(into["seconds"].get<double>(), from["seconds"].get<double>());
  if (!from.contains("coverage")) return;
  for (const auto& [op, c] : from["coverage"].items()) add_coverage(into["coverage"][op], c);
}

/// Totals from the cells, and one order of everything.
void settle(json& run) {
  uint64_t checks = 0;
  double seconds = 0;
  for (const json& cells : run["operators"])
    for (const json& cell : cells) {
      checks += cell["cases"].get<uint64_t>();
      seconds += cell["seconds"].get<double>();
    }
  run["checks"] = checks;
  run["rate"] = {{"seconds", seconds}, {"per_second", double(checks) / std::max(seconds, 1e-9)}};
  const auto sort_by = [](json& list, auto key) {
    std::sort(list.begin(), list.end(), [&](const json& a, const json& b) { return key(a) < key(b); });
  };
  sort_by(run["laws"],
          [](const json& l) { return std::pair(l["number"].get<int>(), l["id"].get<std::string>()); });
  // As `verify` prints them: the simplest first, which is nearest to the cause.
  sort_by(run["failures"], [](const json& f) {
    return std::tuple(f.value("depth", 0), f.value("program", "").size(), f["law"].get<std::string>(),
                      f["operator"].get<std::string>(), f.value("kind", ""), f.value("case", uint64_t(0)),
                      f.value("process", 0), f.value("replay", ""), f.dump());
  });
  json& parts = run["shard"]["parts"];
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
}
}  // namespace

json merge_runs(const std::vector<json>& runs, const std::vector<std::string>& paths) {
  LAMELLA_CHECK(!runs.empty(), Usage, "there is nothing to merge");
  for (size_t k = 0; k < runs.size(); ++k) check_run(runs[k], paths[k]);
  json out = runs[0];
  for (size_t k = 1; k < runs.size(); ++k) {
    check_alike(runs[0], paths[0], runs[k], paths[k]);
    add_run(out, runs[k], paths[k]);
  }
  settle(out);
  return out;
}

}  // namespace lamella::tools
