// Google Benchmark's JSON, written by hand: its reporter is about benchmarks that it has run itself, in one
// go.
#include <cmath>

#include "bench_report.h"

namespace lamella::tools::bench {

using nlohmann::ordered_json;

namespace {
double mean_of(const std::vector<double>& xs) {
  double sum = 0;
  for (const double x : xs) sum += x;
  return xs.empty() ? 0 : sum / double(xs.size());
}

double deviation_of(const std::vector<double>& xs) {
  const double mean = mean_of(xs);
  double sum = 0;
  for (const double x : xs) sum += (x - mean) * (x - mean);
  return xs.size() < 2 ? 0 : std::sqrt(sum / double(xs.size() - 1));
}

struct Series {
  std::string name;
  const std::vector<Timing>* rounds;
  double bytes = 0, flops = 0, instructions = -1;
  int threads = 1;
};

ordered_json head_of(const Series& s, size_t family) {
  return {{"family_index", family},  {"per_family_instance_index", 0},  {"run_name", s.name},
          {"run_type", "iteration"}, {"repetitions", s.rounds->size()}, {"threads", s.threads}};
}

void add_rates(ordered_json& one, const Series& s, double ns) {
  if (s.bytes > 0 && ns > 0) one["bytes_per_second"] = s.bytes / ns * 1e9;
  if (s.flops > 0 && ns > 0) one["flops_per_second"] = s.flops / ns * 1e9;
  if (s.instructions >= 0) one["instructions"] = s.instructions;
}

void add_rounds(ordered_json& list, const Series& s, size_t family, const RunSettings& settings) {
  for (size_t i = 0; i < s.rounds->size(); ++i) {
    const Timing& t = (*s.rounds)[i];
    ordered_json one{{"name", s.name}};
    one.update(head_of(s, family));
    one["repetition_index"] = i, one["iterations"] = t.calls;
    one["real_time"] = t.real_ns, one["cpu_time"] = t.cpu_ns, one["time_unit"] = "ns";
    add_rates(one, s, settings.real_time ? t.real_ns : t.cpu_ns);
    list.push_back(std::move(one));
  }
}

void add_aggregates(ordered_json& list, const Series& s, size_t family) {
  const std::vector<double> real = shown_times(*s.rounds, true), cpu = shown_times(*s.rounds, false);
  const auto add = [&](const char* what, double real_time, double cpu_time) {
    ordered_json one{{"name", s.name + "_" + what}};
    one.update(head_of(s, family));
    one["run_type"] = "aggregate", one["aggregate_name"] = what, one["aggregate_unit"] = "time";
    one["iterations"] = s.rounds->size();
    one["real_time"] = real_time, one["cpu_time"] = cpu_time, one["time_unit"] = "ns";
    list.push_back(std::move(one));
  };
  add("mean", mean_of(real), mean_of(cpu));
  add("median", spread_of(real).median, spread_of(cpu).median);
  add("stddev", deviation_of(real), deviation_of(cpu));
}

/// "sum_f32[2048,2048]_dim=[-1]/built_in": names without spaces, as filters want them.
std::string run_name(const Result& r, const std::string& what) {
  std::string out = r.name + (what.empty() ? "" : "/" + what);
  for (char& c : out)
    if (c == ' ') c = '_';
  return out;
}

std::vector<Series> series_of(const Result& r) {
  std::vector<Series> out;
  for (const Entry& e : r.entries)
    if (!e.rounds.empty())
      out.push_back({run_name(r, e.kernel), &e.rounds, r.bytes, r.flops, e.instructions, r.threads});
  for (const auto& [name, rounds] : r.limits)
    if (!rounds.empty()) {
      const int threads = name.find(" x") == std::string::npos ? 1 : r.threads;
      out.push_back({run_name(r, "limit:" + name), &rounds, r.bytes, r.flops, -1, threads});
    }
  if (!r.peer.empty()) out.push_back({run_name(r, "peer:torch"), &r.peer, r.bytes, r.flops, -1, r.threads});
  return out;
}

ordered_json described(const Result& r, const RunSettings& settings) {
  std::string which;
  const double limit = limit_of(r, settings.real_time, &which);
  ordered_json out{{"name", r.name},   {"family", r.family},   {"elements", r.elements}, {"bytes", r.bytes},
                   {"flops", r.flops}, {"witness", r.witness}, {"threads", r.threads}};
  if (limit > 0) out["limit"] = {{"loop", which}, {"least_ns", limit}};
  if (!r.failed.empty()) out["not_run"] = r.failed;
  if (!r.no_peer.empty()) out["no_peer"] = r.no_peer;
  out["kernels"] = ordered_json::array();
  for (const Entry& e : r.entries) {
    ordered_json one{{"kernel", e.kernel}, {"default", e.is_default}};
    if (e.roundings >= 0) one["roundings"] = e.roundings;
    if (!e.wrong.empty()) one["wrong"] = e.wrong;
    if (!e.rounds.empty()) {
      const Spread s = spread_of(shown_times(e.rounds, settings.real_time));
      one["ns"] = {{"least", s.least}, {"p25", s.p25},        {"median", s.median},
                   {"p75", s.p75},     {"median_low", s.low}, {"median_high", s.high}};
      one["noisy"] = s.share() > kNoisy;
      if (limit > 0) one["share_of_limit"] = limit / s.least;
      if (!r.peer.empty())
        one["ratio_to_peer"] = spread_of(shown_times(r.peer, settings.real_time)).least / s.least;
    }
    out["kernels"].push_back(std::move(one));
  }
  return out;
}
}  // namespace

ordered_json json_of(const Results& results, const RunSettings& settings, const Machine& m) {
  ordered_json out;
  out["context"] = {{"date", m.date},
                    {"executable", "lamella bench"},
                    {"num_cpus", m.cores},
                    {"caches", ordered_json::array()},
                    {"load_avg", ordered_json::array({m.load})},
                    {"json_schema_version", 1},
                    {"processor", m.processor},
                    {"isa", m.isa},
                    {"compiler", m.compiler},
                    {"lamella_version", m.version},
                    {"commit", m.commit},
                    {"peer", results.peer}};
  ordered_json list = ordered_json::array();
  size_t family = 0;
  for (const Result& r : results.works)
    for (const Series& s : series_of(r)) {
      add_rounds(list, s, family, settings);
      add_aggregates(list, s, family);
      ++family;
    }
  out["benchmarks"] = std::move(list);
  out["lamella"] = {{"format", 1},
                    {"clock", settings.real_time ? "real" : "thread"},
                    {"rounds", settings.rounds},
                    {"runs", settings.runs},
                    {"interrupted", results.interrupted},
                    {"works", ordered_json::array()}};
  for (const Result& r : results.works) out["lamella"]["works"].push_back(described(r, settings));
  return out;
}

}  // namespace lamella::tools::bench
