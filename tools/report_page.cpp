// The page: its sections in order, its looks, and the few lines that sort tables.
#include "report_page.h"

#include <algorithm>
#include <set>

#include "report_tables.h"
#include "run_json.h"

namespace lamella::tools {

using nlohmann::json;

namespace {
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fdfdfc; --faint: #70767c; --line: #d9dcdf;
  --bad: #c62828; --gap: #b26a00; --heat: 30 120 200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e8; --paper: #16181a; --faint: #959ba1;
  --line: #34393e; --bad: #ff7b72; --gap: #e3a23c; --heat: 80 160 240; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 100rem; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
pre { overflow: auto; padding: .8rem; border: 1px solid var(--line); font-size: 13px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; } dt { color: var(--faint); }
dd { margin: 0; } .note { color: var(--faint); font-size: 13px; } .wide { overflow-x: auto; }
.verdict { font-weight: 600; } .red { color: var(--bad); } .amber { color: var(--gap); }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .15rem .4rem; text-align: left; vertical-align: bottom; }
thead th { cursor: pointer; } th[scope=row] { position: sticky; left: 0; background: var(--paper); }
.heat td, .number { text-align: right; } .heat td { white-space: nowrap; }
.up { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: 500; }
.na { color: var(--faint); } .bad { color: var(--paper); background: var(--bad); font-weight: 600; }
.gap { outline: 2px solid var(--gap); outline-offset: -2px; color: var(--gap); font-weight: 600; }
.h1 { background: rgb(var(--heat) / .07); } .h2 { background: rgb(var(--heat) / .16); }
.h3 { background: rgb(var(--heat) / .27); } .h4 { background: rgb(var(--heat) / .4); }
.h5 { background: rgb(var(--heat) / .53); } .h6 { background: rgb(var(--heat) / .66); }
)";

constexpr std::string_view kScript = R"(
for (const head of document.querySelectorAll("thead")) head.addEventListener("click", event => {
  const cell = event.target.closest("th"), body = head.parentElement.tBodies[0];
  const down = cell.getAttribute("aria-sort") !== "descending";
  for (const other of cell.parentElement.cells) other.removeAttribute("aria-sort");
  cell.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = row => row.cells[cell.cellIndex];
  const order = (a, b) => value(a).dataset.v !== undefined && value(b).dataset.v !== undefined
    ? value(a).dataset.v - value(b).dataset.v
    : value(b).textContent.localeCompare(value(a).textContent);
  body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
});
)";

void heading(Markup& out, const std::string& id, const std::string& title) {
  out.element("h2", title, {{"id", id}}).raw("\n");
}

void fact(Markup& out, const std::string& name, const std::string& value) {
  out.element("dt", name).element("dd", value);
}

std::string plural(size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string missing_shards(const json& run) {
  std::string out;
  const json& parts = run["shard"]["parts"];
  for (size_t k = 0; k < run["shard"]["of"].get<size_t>(); ++k)
    if (std::find(parts.begin(), parts.end(), k) == parts.end())
      out += (out.empty() ? "" : ", ") + std::to_string(k);
  return out;
}

void write_summary(Markup& out, const json& run) {
  const size_t failures = run["failures"].size(), gaps = gaps_of(run).size();
  out.open("p", {{"class", "verdict"}});
  out.element("span", failures ? plural(failures, "failure") : "no failure",
              {{"class", failures ? "red" : ""}});
  out.text(", ").element("span", gaps ? plural(gaps, "gap") : "no gap", {{"class", gaps ? "amber" : ""}});
  out.close().open("dl");
  fact(out, "checks", run["checks"].dump() + " in " + short_number(run["seconds"].get<double>()) + " s");
  fact(out, "rate", short_number(run["rate"]["per_second"].get<double>()) + " checks a second and process");
  fact(out, "operators, laws",
       std::to_string(run["operators"].size()) + ", " + std::to_string(run["laws"].size()));
  fact(out, "seed, depth", run["seed"].dump() + ", " + run["depth"].dump());
  fact(out, "version", run["version"]);
  const std::string missing = missing_shards(run);
  if (run["shard"]["of"] != 1)
    fact(out, "shards",
         run["shard"]["of"].dump() + (missing.empty() ? ", all here" : ", without " + missing));
  if (run.value("interrupted", false)) fact(out, "interrupted", "yes: it was to run longer");
  out.close().raw("\n");
}

void write_failures(Markup& out, const json& run) {
  if (run["failures"].empty()) return;
  heading(out, "failures", "Failures");
  for (const json& f : run["failures"]) {
    out.open("details").open("summary");
    out.element("b", f["operator"].get<std::string>())
        .text(" breaks ")
        .element("b", f["law"].get<std::string>());
    out.close().element("p", f["message"].get<std::string>());
    out.element("pre", f["program"].get<std::string>()).close().raw("\n");
  }
}

void write_gaps(Markup& out, const json& run) {
  heading(out, "gaps", "Gaps");
  const auto gaps = gaps_of(run);
  if (gaps.empty()) {
    out.element("p", "Every law that applies to an operator had a case.");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [op, law] : gaps) rows.push_back({op, law, run["operators"][op][law]["discards"].dump()});
  write_table(out, {"operator", "law", "discarded"}, rows);
}

void write_rates(Markup& out, const json& run) {
  heading(out, "rates", "Laws and their rates");
  std::vector<std::vector<std::string>> rows;
  for (const json& law : run["laws"]) {
    CellCounts sum;
    size_t operators = 0;
    for (const json& cells : run["operators"])
      if (const auto at = cells.find(law["id"].get<std::string>()); at != cells.end()) {
        sum.add({(*at)["cases"], (*at)["failures"], (*at)["discards"], (*at)["seconds"]});
        ++operators;
      }
    rows.push_back({law["number"].dump(), law["id"], law["group"], law["statement"],
                    std::to_string(operators), std::to_string(sum.cases), std::to_string(sum.failures),
                    std::to_string(sum.discards),
                    std::to_string(uint64_t(double(sum.cases) / std::max(sum.seconds, 1e-9))),
                    law.value("oracle", false) ? "f128" : ""});
  }
  write_table(
      out,
      {"number", "law", "group", "says", "operators", "cases", "failures", "discards", "cases/s", "oracle"},
      rows);
}

void write_spread(Markup& out, const json& run) {
  static constexpr struct {
    const char *id, *title;
    Facet rows, columns;
  } kTables[] = {{"operators-dtypes", "Operators by dtypes", Facet::Operator, Facet::DType},
                 {"operators-stacks", "Operators by stacks", Facet::Operator, Facet::Stack},
                 {"laws-dtypes", "Laws by dtypes", Facet::Law, Facet::DType},
                 {"laws-stacks", "Laws by stacks", Facet::Law, Facet::Stack},
                 {"dtypes-stacks", "Dtypes by stacks", Facet::DType, Facet::Stack}};
  for (const auto& t : kTables) {
    const Grid grid = grid_of(run, t.rows, t.columns);
    if (grid.cells.empty()) continue;
    heading(out, t.id, t.title);
    write_grid(out, grid);
  }
}

void write_coverage(Markup& out, const json& run) {
  if (!run.contains("coverage")) return;
  heading(out, "coverage", "Coverage");
  std::set<std::string> features;
  for (const json& c : run["coverage"]) {
    const json counts = c.value("features", json::object());
    for (const auto& [feature, n] : counts.items()) features.insert(feature);
  }
  std::vector<std::string> head{"operator", "cases looked at"};
  head.insert(head.end(), features.begin(), features.end());
  head.push_back("missed");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [op, c] : run["coverage"].items()) {
    std::vector<std::string> row{op, std::to_string(c.value("cases", uint64_t(0)))};
    for (const std::string& f : features)
      row.push_back(std::to_string(c.value("features", json::object()).value(f, uint64_t(0))));
    std::string missed;
    for (const json& what : c.value("missed", json::array()))
      missed += (missed.empty() ? "" : ", ") + what.get<std::string>();
    row.push_back(missed);
    rows.push_back(std::move(row));
  }
  write_table(out, head, rows);
}

/// A law that noticed a mutant is a name, or an object that has one.
std::string law_name(const json& kill) {
  return kill.is_object() ? kill.value("law", "") : kill.get<std::string>();
}

void write_matrix(Markup& out, const json& mutants) {
  std::map<std::string, std::map<std::string, uint64_t>> by_law;
  std::map<std::string, uint64_t> groups;
  for (const json& m : mutants["kills"]) {
    const std::string group = m.at("group");
    ++groups[group];
    std::set<std::string> laws;
    for (const json& kill : m.at("laws")) laws.insert(law_name(kill));
    for (const std::string& law : laws) ++by_law[law][group];
  }
  for (const json& law : mutants.value("idle_laws", json::array())) by_law[law.get<std::string>()];
  std::vector<std::string> head{"law"};
  for (const auto& [group, n] : groups) head.push_back(group + " (" + std::to_string(n) + ")");
  head.push_back("all");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [law, kills] : by_law) {
    std::vector<std::string> row{law};
    uint64_t all = 0;
    for (const auto& [group, unused] : groups) {
      const auto at = kills.find(group);
      row.push_back(std::to_string(at == kills.end() ? 0 : at->second));
      if (at != kills.end()) all += at->second;
    }
    row.push_back(std::to_string(all));
    rows.push_back(std::move(row));
  }
  write_table(out, head, rows);
}

/// How many checks it took to notice, by group.
void write_checks(Markup& out, const json& mutants) {
  if (!mutants.contains("checks_to_kill") || mutants["checks_to_kill"].empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [group, c] : mutants["checks_to_kill"].items())
    rows.push_back({group, c.at("mutants").dump(), c.at("median").dump(), c.at("p95").dump()});
  out.element("p", "Checks of all laws together until one noticed.", {{"class", "note"}});
  write_table(out, {"group", "noticed", "median", "95 %"}, rows);
}

void write_mutants(Markup& out, const json& mutants) {
  heading(out, "mutants", "Mutants");
  out.open("p").text(mutants.at("killed").dump() + " of " + mutants.at("mutants").dump() + " killed");
  for (const char* list : {"survivors", "equivalent"})
    if (mutants.contains(list)) out.text(", " + std::to_string(mutants[list].size()) + " " + list);
  out.close().element("p", "How many mutants of each group a law notices.", {{"class", "note"}});
  write_matrix(out, mutants);
  write_checks(out, mutants);
  for (const char* list : {"survivors", "equivalent"}) {
    if (!mutants.contains(list) || mutants[list].empty()) continue;
    std::vector<std::vector<std::string>> rows;
    for (const json& m : mutants[list]) rows.push_back({m.value("id", ""), m.value("reason", "")});
    out.element("h3", list);
    write_table(out, {"mutant", "reason"}, rows);
  }
}
}  // namespace

Markup begun_page(const std::string& title) {
  Markup out("<!doctype html>\n");
  out.open("html", {{"lang", "en"}}).open("head").single("meta", {{"charset", "utf-8"}});
  out.single("meta", {{"name", "viewport"}, {"content", "width=device-width"}});
  out.single("meta",
             {{"http-equiv", "Content-Security-Policy"},
              {"content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"}});
  out.element("title", title).open("style").raw(kStyle).close().close().raw("\n");
  out.open("body").element("h1", title).raw("\n");
  return out;
}

std::string ended_page(Markup& page) {
  page.open("script").raw(kScript).close();
  return page.finish();
}

void write_heading(Markup& out, const std::string& id, const std::string& title) { heading(out, id, title); }
void write_fact(Markup& out, const std::string& name, const std::string& value) { fact(out, name, value); }

std::string report_page(const json& run, const json& mutants) {
  Markup out = begun_page("Lamella: operators and laws");
  if (!run.is_null()) {
    write_summary(out, run);
    write_failures(out, run);
    heading(out, "laws", "Operators by laws");
    write_grid(out, grid_of_laws(run));
    write_gaps(out, run);
    write_rates(out, run);
    write_spread(out, run);
    write_coverage(out, run);
  }
  if (!mutants.is_null()) write_mutants(out, mutants);
  return ended_page(out);
}

}  // namespace lamella::tools
