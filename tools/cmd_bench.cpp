// `lamella bench`: kernels compared, checked before they are timed; and two such files compared.
#include <algorithm>
#include <iostream>

#include "lamella/core/limits.h"
#include "lamella/dispatch/nearest.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/alternatives.h"

#include "bench_peer.h"
#include "bench_report.h"
#include "bench_suite.h"
#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "kernel_option.h"
#include "plugin.h"
#include "whole_file.h"

namespace lamella::tools::bench {

namespace {
struct BenchOptions {
  std::vector<std::string> ops, vs, sizes, layouts{"contiguous"}, set, plugins, kernels;
  std::string dtype = "f32", index = "i64", json, page, clock = "thread";
  std::vector<int> threads{1};
  bool suite = false, fresh = false;
  RunSettings run;
};

DType dtype_named(const std::string& option, const std::string& text) {
  DType out;
  LAMELLA_CHECK(parse_dtype(text, out) && !is_internal(out), Usage,
                "bench: {}: there is no dtype \"{}\"; expected e.g. f32", option, text);
  return out;
}

/// From what fits the first-level cache to what fits no cache.
std::vector<std::string> usual_sizes(const std::string& op) {
  const Op* const row = OpTable::current().find(op);
  const bool product = row && (row->shape == ShapeClass::Contract || op == "matmul");
  if (product) return {"16", "64", "256", "1024"};
  if (row && (row->shape == ShapeClass::Linalg || op == "cholesky")) return {"256x8x8", "16x64x64"};
  return {"32x32", "256x256", "1024x1024", "2048x2048"};
}

std::vector<std::string> kernels_asked(const BenchOptions& o, const std::string& op) {
  const std::vector<std::string> all = kernels_of(op);
  if (o.vs.empty()) return all;
  std::vector<std::string> out{"built_in"};
  for (const std::string& name : o.vs) {
    std::string names;
    for (const std::string& k : all) names += (names.empty() ? "" : ", ") + k;
    LAMELLA_CHECK(std::ranges::find(all, name) != all.end(), Usage,
                  "bench: --vs: {} has no kernel \"{}\"{}; expected one of {}", op, name,
                  nearest_text(name, {all.begin(), all.end()}), names);
    if (name != "built_in") out.push_back(name);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> attributes_in(const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& text : given) {
    const size_t at = text.find('=');
    LAMELLA_CHECK(at != std::string::npos, Usage, "bench: --arg: got \"{}\", expected NAME=VALUE", text);
    out.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  return out;
}

void add_operator(const BenchOptions& o, const std::string& op, std::vector<Item>& items) {
  LAMELLA_CHECK(OpTable::current().find(op), UnknownOperator,
                "bench: there is no operator \"{}\"{}; expected one that `lamella ops` lists", op,
                nearest_operators(op));
  for (const std::string& text : o.layouts) {
    const std::optional<Layout> layout = layout_of(text);
    LAMELLA_CHECK(
        layout, Usage,
        "bench: --layout: there is no \"{}\"{}; expected contiguous, transposed, stepped, broadcast or "
        "column",
        text, nearest_text(text, {"contiguous", "transposed", "stepped", "broadcast", "column"}));
    for (const std::string& size : o.sizes.empty() ? usual_sizes(op) : o.sizes) {
      Item item = item_of({.op = op,
                           .sizes = parse_sizes(size),
                           .dtype = dtype_named("--dtype", o.dtype),
                           .layout = *layout,
                           .into = !o.fresh,
                           .index = dtype_named("--index", o.index),
                           .set = attributes_in(o.set)},
                          false);
      item.kernels = kernels_asked(o, op);
      item.is_required = true;
      items.push_back(std::move(item));
    }
  }
}

std::vector<Item> items_of(const BenchOptions& o) {
  LAMELLA_CHECK(o.suite || !o.ops.empty(), Usage,
                "bench: got no operator; expected some, or --suite (lamella bench --help)");
  LAMELLA_CHECK(!o.suite || o.ops.empty(), Usage,
                "bench: --suite has its own operators; expected none beside it");
  std::vector<Item> items = o.suite ? suite_items() : std::vector<Item>();
  for (const std::string& op : o.ops) add_operator(o, op, items);
  std::vector<Item> out;
  for (const Item& item : items)
    for (const int n : o.threads) out.push_back(item), out.back().threads = n;
  return out;
}

/// Of several threads the caller's own time says nothing.
void check_threads(BenchOptions& o, bool is_clock_given) {
  LAMELLA_CHECK(!o.threads.empty(), Usage, "bench: --threads: got none, expected e.g. 1,2");
  for (const int n : o.threads) {
    LAMELLA_CHECK(n >= 1 && n <= kMaxThreads, Usage, "bench: --threads {}: expected at least 1, at most {}",
                  n, kMaxThreads);
    LAMELLA_CHECK(
        n == 1 || !is_clock_given || o.run.real_time, Usage,
        "bench: --threads {} with --clock thread: others' time is not counted; expected --clock real", n);
    o.run.real_time |= n > 1;
  }
}

void read_options(int argc, char** argv, BenchOptions& o) {
  CommandLine app(
      "Compares kernels: checks each against the oracle and a sample of the laws, then times them in rounds "
      "beside a loop written by hand and the peer. Also: lamella bench diff A.json B.json",
      "lamella bench");
  app.add_option("OPERATOR", o.ops, "operators to time, each by all of its kernels");
  app.add_flag("--suite", o.suite, "instead: the fixed rows of docs/performance.md");
  app.add_option("--vs", o.vs, "these alternatives alone, beside the library's own kernel")->delimiter(',');
  app.add_option("--sizes", o.sizes, "of the first operand: 1000, 2^20, 64x128; products take n as n x n")
      ->delimiter(',');
  app.add_option("--dtype", o.dtype, "dtype of the operands");
  app.add_option("--index", o.index, "dtype of index operands");
  app.add_option("--layout", o.layouts,
                 "of the last operand: contiguous, transposed, stepped, broadcast (one row), column")
      ->delimiter(',');
  app.add_option("--arg", o.set, "NAME=VALUE: an attribute, e.g. dim=0; repeatable");
  app.add_flag("--fresh", o.fresh, "allocate results in each call, where out= would be used");
  app.add_option("--threads", o.threads, "threads that kernels may use")->delimiter(',');
  app.add_option("--peer", o.run.peer, "torch: the same calls by PyTorch, in the same rounds");
  app.add_option("--rounds", o.run.rounds, "rounds in a run")->check(CLI::Range(1, 100000));
  app.add_option("--runs", o.run.runs, "times that everything is made and timed (default: 1; --suite: 3)")
      ->check(CLI::Range(1, 1000))
      ->default_str("");
  app.add_option("--seconds", o.run.seconds, "for a kernel in a round, at least")->check(number_in(1e-9, 60));
  app.add_option("--laws", o.run.law_seconds, "seconds of laws for each alternative; 0: none")
      ->check(number_in(0, 86400));
  app.add_option("--clock", o.clock, "thread: time that the thread was given; real: time that passed")
      ->check(CLI::IsMember({"thread", "real"}));
  app.add_option("--json", o.json, "write Google Benchmark's JSON to this file (- for standard output)");
  app.add_option("-o,--output", o.page, "write a page to this file");
  app.add_option("--load", o.plugins, "shared library that brings operators or kernels");
  add_kernel_option(app, o.kernels);
  for (const char* list : {"--vs", "--sizes", "--layout", "--arg", "--threads", "--load"})
    app.get_option(list)->allow_extra_args(false);  // what follows is an operator
  app.read(argc, argv);
  if (o.suite && app.count("--runs") == 0) o.run.runs = 3;
  o.run.real_time = o.clock == "real";
  check_threads(o, app.count("--clock") > 0);
}

int compare_files(int argc, char** argv) {
  CommandLine app("Compares the medians of two files of --json, or of Google Benchmark",
                  "lamella bench diff");
  std::string before, after, clock = "thread";
  app.add_option("A", before, "the file before")->required();
  app.add_option("B", after, "the file after")->required();
  app.add_option("--clock", clock, "thread (cpu_time) or real (real_time)")
      ->check(CLI::IsMember({"thread", "real"}));
  app.read(argc, argv);
  return print_diff(before, after, clock == "real");
}

int compare_kernels(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "diff") return compare_files(argc - 1, argv + 1);
  BenchOptions o;
  read_options(argc, argv, o);
  LAMELLA_CHECK(o.json != "-" || o.page != "-", Usage,
                "bench: --json - and -o - would be mixed: give one of them a file");
  add_alternatives();
  for (const std::string& file : o.plugins) load_plugin(file);
  choose_kernels(o.kernels);
  const std::vector<Item> items = items_of(o);
  const TextAside aside(o.json == "-" || o.page == "-");
  const volatile std::sig_atomic_t& stop = stop_on_signals();
  std::cout.flush();
  const Results results = run_items(items, o.run, stop);
  const Machine machine = this_machine();
  print_wrapped(
      format("{}, {} cores, {}; {}; load {}; lamella {}, commit {}", machine.processor, machine.cores,
             machine.isa, machine.date, machine.load, machine.version, machine.commit),
      "");
  const int wrong = print_results(results, o.run);
  if (!o.json.empty()) {
    using Json = nlohmann::ordered_json;
    write_output(o.json,
                 json_of(results, o.run, machine).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (!o.page.empty()) write_output(o.page, page_of(results, o.run, machine));
  const bool failed = std::ranges::any_of(results.works, [](const Result& r) { return !r.failed.empty(); });
  return wrong || (failed && !o.suite) ? 1 : 0;
}
}  // namespace

int command(int argc, char** argv) { return compare_kernels(argc, argv); }

}  // namespace lamella::tools::bench

int main_bench(int argc, char** argv) { return lamella::tools::bench::command(argc, argv); }
