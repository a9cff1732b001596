// The page of a run: what was measured where, every figure, and drawings where there are several sizes.
#include <algorithm>

#include "bench_report.h"
#include "chart.h"
#include "report_page.h"
#include "report_tables.h"

namespace lamella::tools::bench {

namespace {
std::string decimal(double x, const char* how = "%.2f") {
  char text[48];
  std::snprintf(text, sizeof text, how, x);
  return text;
}

double least_of(const std::vector<Timing>& rounds, bool real_time) {
  return spread_of(shown_times(rounds, real_time)).least;
}

std::string label_of(const Entry& e) { return e.kernel.empty() ? "lamella" : e.kernel; }

void write_facts(Markup& out, const Results& results, const RunSettings& s, const Machine& m) {
  out.open("dl");
  write_fact(out, "machine", m.processor + ", " + std::to_string(m.cores) + " cores, " + m.isa);
  write_fact(out, "when", m.date + ", load " + decimal(m.load, "%.1f"));
  write_fact(out, "what", "lamella " + m.version + ", commit " + m.commit + ", g++ " + m.compiler);
  write_fact(out, "peer", results.peer.empty() ? "none" : results.peer + ", called from Python");
  write_fact(out, "times",
             std::string(s.real_time ? "the clock's" : "the thread's own") + ", " + std::to_string(s.rounds) +
                 " rounds in each of " + std::to_string(s.runs) + (s.runs == 1 ? " run" : " runs"));
  if (results.interrupted) write_fact(out, "interrupted", "yes: it was to run longer");
  out.close().raw("\n");
  if (std::ranges::any_of(results.works, [&](const Result& r) { return is_noisy(r, s.real_time); }))
    out.element("p",
                "Noisy: of rows marked ~ the middle half of the rounds is spread over more than 10 % of the "
                "median. Other work was on the machine: trust the least, and measure again.",
                {{"class", "amber"}});
}

std::vector<std::string> row_of(const Result& r, const std::string& label, const std::vector<Timing>& rounds,
                                double roundings, const RunSettings& s) {
  const Spread t = spread_of(shown_times(rounds, s.real_time));
  const double limit = limit_of(r, s.real_time);
  const double peer = r.peer.empty() ? 0 : least_of(r.peer, s.real_time);
  const auto us = [](double ns) { return decimal(ns / 1e3, "%.3f"); };
  return {r.name,
          label + (t.share() > kNoisy ? " ~" : ""),
          us(t.least),
          us(t.p25),
          us(t.median),
          us(t.p75),
          rate_text(r, t.least),
          limit > 0 ? decimal(limit / t.least) : "",
          peer > 0 ? decimal(peer / t.least) : "",
          roundings < 0 ? "" : decimal(roundings)};
}

void write_figures(Markup& out, const Results& results, const RunSettings& s) {
  write_heading(out, "figures", "Figures");
  std::vector<std::vector<std::string>> rows;
  for (const Result& r : results.works) {
    for (const Entry& e : r.entries)
      if (!e.rounds.empty()) rows.push_back(row_of(r, label_of(e), e.rounds, e.roundings, s));
    std::string which;
    if (limit_of(r, s.real_time, &which) > 0)
      rows.push_back(row_of(r, "(" + which + ")", r.limits.at(which), -1, s));
    if (!r.peer.empty()) rows.push_back(row_of(r, "torch", r.peer, -1, s));
  }
  write_table(out,
              {"work", "kernel", "least, us", "p25", "median", "p75", "rate", "share of limit",
               "times as fast as torch", "error, roundings"},
              rows);
  out.element("p",
              "The limit is a loop written by hand over the same bytes (or as many multiplications and "
              "additions), in the same rounds. Errors are the largest on the timed inputs.",
              {{"class", "note"}});
}

void write_wrong(Markup& out, const Results& results) {
  for (const Result& r : results.works) {
    if (!r.failed.empty()) out.element("p", r.name + " was not run: " + r.failed, {{"class", "amber"}});
    for (const Entry& e : r.entries)
      if (!e.wrong.empty())
        out.open("details", {{"open", ""}})
            .element("summary", "WRONG: " + r.name + " by " + label_of(e), {{"class", "red"}})
            .element("pre", e.wrong)
            .close()
            .raw("\n");
  }
}

using Family = std::vector<const Result*>;

/// One line a kernel: what `of` says of it at each size; nothing where that is not above 0.
template <class Of> void add_kernels(Chart& chart, const Family& family, Of of) {
  std::vector<std::string> names;
  for (const Result* r : family)
    for (const Entry& e : r->entries)
      if (std::ranges::find(names, label_of(e)) == names.end()) names.push_back(label_of(e));
  for (const std::string& name : names) {
    ChartLine line{name, {}};
    for (const Result* r : family)
      for (const Entry& e : r->entries)
        if (label_of(e) == name && !e.rounds.empty())
          if (const double v = of(*r, e); v > 0) line.points.emplace_back(r->elements, v);
    chart.lines.push_back(std::move(line));
  }
}

template <class Of> void add_line(Chart& chart, const Family& family, const std::string& name, Of of) {
  ChartLine line{name, {}};
  for (const Result* r : family)
    if (const double v = of(*r); v > 0) line.points.emplace_back(r->elements, v);
  if (!line.points.empty()) chart.lines.push_back(std::move(line));
}

void write_family(Markup& out, const std::string& name, const Family& family, const RunSettings& s) {
  write_heading(out, "family-" + std::to_string(std::hash<std::string>()(name)), name);
  const bool real = s.real_time;
  const auto peer = [real](const Result& r) { return r.peer.empty() ? 0.0 : least_of(r.peer, real); };
  const auto limit = [real](const Result& r) { return limit_of(r, real); };
  out.open("div", {{"class", "charts"}});
  Chart times{"Time", "elements", "us, the least", {}, true, 0};
  add_kernels(times, family, [&](const Result&, const Entry& e) { return least_of(e.rounds, real) / 1e3; });
  add_line(times, family, "torch", [&](const Result& r) { return peer(r) / 1e3; });
  add_line(times, family, "limit", [&](const Result& r) { return limit(r) / 1e3; });
  write_chart(out, times);
  Chart shares{"Share of the limit", "elements", "limit's time / time", {}, false, 1};
  add_kernels(shares, family,
              [&](const Result& r, const Entry& e) { return limit(r) / least_of(e.rounds, real); });
  write_chart(out, shares);
  Chart ratios{"Beside torch", "elements", "torch's time / time", {}, true, 1};
  add_kernels(ratios, family,
              [&](const Result& r, const Entry& e) { return peer(r) / least_of(e.rounds, real); });
  write_chart(out, ratios);
  Chart errors{"Largest error", "elements", "roundings", {}, false, 0};
  add_kernels(errors, family, [](const Result&, const Entry& e) { return e.roundings; });
  write_chart(out, errors);
  out.close().raw("\n");
}

void write_families(Markup& out, const Results& results, const RunSettings& s) {
  std::vector<std::pair<std::string, Family>> families;
  for (const Result& r : results.works) {
    const auto at = std::ranges::find(families, r.family, &std::pair<std::string, Family>::first);
    if (at == families.end()) families.push_back({r.family, {&r}});
    else at->second.push_back(&r);
  }
  for (auto& [name, family] : families) {
    std::ranges::stable_sort(family, {}, [](const Result* r) { return r->elements; });
    if (family.size() > 1 && family.front()->elements < family.back()->elements)
      write_family(out, name, family, s);
  }
}

void write_ratios(Markup& out, const Results& results, bool real_time) {
  std::vector<Bar> bars;
  for (const Result& r : results.works)
    for (const Entry& e : r.entries)
      if (e.is_default && !r.peer.empty() && !e.rounds.empty())
        bars.push_back({r.name, least_of(r.peer, real_time) / least_of(e.rounds, real_time)});
  if (bars.size() < 2) return;
  write_heading(out, "ratios", "Beside torch");
  write_bars(out, "How often as fast as torch, by the least", bars);
}
}  // namespace

std::string page_of(const Results& results, const RunSettings& settings, const Machine& machine) {
  Markup out = begun_page("Lamella: kernels compared");
  out.open("style").raw(kChartStyle).close();
  write_facts(out, results, settings, machine);
  write_wrong(out, results);
  write_ratios(out, results, settings.real_time);
  write_families(out, results, settings);
  write_figures(out, results, settings);
  return ended_page(out);
}

}  // namespace lamella::tools::bench
