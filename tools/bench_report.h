// What a run is shown as: a table, Google Benchmark's JSON, a page.
#pragma once

#include <nlohmann/json.hpp>

#include "bench_run.h"

namespace lamella::tools::bench {

/// Where and of what: a figure is worth nothing without.
struct Machine {
  std::string date, processor, isa, compiler, version, commit;
  int cores = 1;
  double load = 0;
};
Machine this_machine();

/// At most 100 columns. Returns how many kernels were wrong.
int print_results(const Results& results, const RunSettings& settings);
/// In the shape that Google Benchmark writes and its compare.py reads; what that has no place for is beside
/// it, in "lamella".
nlohmann::ordered_json json_of(const Results& results, const RunSettings& settings, const Machine& machine);
/// One HTML page that needs nothing else.
std::string page_of(const Results& results, const RunSettings& settings, const Machine& machine);

/// Its words in lines of at most 100 columns, behind `indent`.
void print_wrapped(const std::string& text, const std::string& indent);
/// "731 ns", "2.37 ms": three digits.
std::string time_text(double ns);
/// "12.3 GB/s" or "85 GF/s"; empty for what neither moves nor computes.
std::string rate_text(const Result& result, double ns);

/// lamella bench diff: medians of two files side by side. The exit status.
int print_diff(const std::string& before, const std::string& after, bool real_time);

}  // namespace lamella::tools::bench
