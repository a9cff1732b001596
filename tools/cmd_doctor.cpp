// `lamella doctor`: what this build has, and what was left out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "lamella/core/parallel.h"
#include "lamella/core/version.h"
#include "lamella/dispatch/call.h"
#include "lamella/dispatch/types.h"
#include "lamella/kernels/kernels.h"

#include "command_line.h"
#include "commands.h"
#include "plugin.h"

namespace {
void part(const char* name, bool present, const char* have, const char* lack) {
  std::printf("  %-12s %s\n", name, present ? have : lack);
}
/// What threads find that ask one after the other while the first of them registers the operators: all of
/// them, or how many fewer. The first questions of this process.
size_t missing_at_first() {
  std::vector<size_t> found(6);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < found.size(); ++k)
    threads.emplace_back([k, &found] {
      std::this_thread::sleep_for(std::chrono::microseconds(150 * k));
      found[k] = lamella::OpTable::current().rows().size();
    });
  for (std::thread& t : threads) t.join();
  return lamella::OpTable::current().rows().size() - *std::ranges::min_element(found);
}

/// What `what` it is, its own name where it has one beside the key's, who brought it, and for how many
/// operators.
void show_key(const char* what, int key, std::string_view named, std::string_view origin) {
  using namespace lamella;
  const auto is_set = [&](const Op* op) { return op->form == OpForm::Functional && op->column(key); };
  const std::string cells = format("{} cells set", std::ranges::count_if(OpTable::current().rows(), is_set));
  const std::string own = named.empty() ? "" : format(" \"{}\"", named);
  const std::string from = origin.empty() ? "" : format("{} from {}", own, origin);
  std::printf("  %-12s %s%s, %s\n", what, key_name(key).c_str(), from.c_str(), cells.c_str());
}

/// One line a backend and a type; those of plug-ins say whose they are.
void show_columns() {
  using namespace lamella;
  for (const ClaimedKey& c : claimed_keys()) show_key("column", int(c.device), c.name, c.origin);
  for (int key = kFirstTypeKey; key < kAutogradKey; ++key)
    if (const TensorType* const type = tensor_type(key)) show_key("type", key, "", type->from);
}
}  // namespace

int main_doctor(int argc, char** argv) {
  lamella::tools::CommandLine app(
      "Prints the instruction set in use, the optional parts of this build and the columns of kernels",
      "lamella doctor");
  std::vector<std::string> plugins;
  app.add_option("--load", plugins, "shared library that defines operators, cells or columns");
  app.read(argc, argv);
  if (const size_t missing = missing_at_first()) {
    std::printf("lamella: a thread that asked while another one registered operators missed %zu of them\n",
                missing);
    return 1;
  }
  for (const std::string& file : plugins) lamella::tools::load_plugin(file);
  size_t functional = 0, rows = 0;
  for (const lamella::Op* op : lamella::OpTable::current().rows()) {
    if (op->has(lamella::kTestOnly)) continue;
    functional += op->form == lamella::OpForm::Functional;
    ++rows;
  }
  std::printf("lamella " LAMELLA_VERSION ": %zu operators, %zu with their forms\n", functional, rows);
  std::printf("  %-12s %s; kernels use %d threads of %u (LAMELLA_THREADS)\n", "cpu",
              lamella::kernels::cpu_isa(), lamella::threads(), std::thread::hardware_concurrency());
  show_columns();
  part("blas", LAMELLA_HAVE_BLAS, "OpenBLAS",
       "left out: own matrix kernels (install libopenblas-openmp-dev)");
  part("zstd", LAMELLA_HAVE_ZSTD, "reads packed reference cases",
       "left out: reference folders only (install libzstd-dev)");
  part("tests", LAMELLA_HAVE_TESTS, "GoogleTest and RapidCheck",
       "left out (install libgtest-dev librapidcheck-dev)");
  part("bench", LAMELLA_HAVE_BENCH, "Google Benchmark", "left out (install libbenchmark-dev)");
  part("libtorch", LAMELLA_HAVE_TORCH, "measured beside ours by `./run bench overhead`",
       "left out of the benchmarks: " LAMELLA_TORCH_WHY);
  part("cuda", LAMELLA_HAVE_CUDA, "compiled", "left out: preset cuda builds it");
  return 0;
}
