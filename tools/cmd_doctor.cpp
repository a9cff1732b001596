// `lamella doctor`: what this build has, and what was left out.
#include <cstdio>
#include <thread>

#include "lamella/dispatch/call.h"
#include "lamella/kernels/kernels.h"

#include "commands.h"

namespace {
void part(const char* name, bool present, const char* have, const char* lack) {
  std::printf("  %-12s %s\n", name, present ? have : lack);
}
}  // namespace

int main_doctor(int argc, char** argv) {
  if (argc > 1) {
    std::printf(
        "usage: lamella doctor\nPrints the instruction set in use and the optional parts of this build.\n");
    const std::string_view word = argv[1];
    return word == "--help" || word == "-h" ? 0 : 2;
  }
  size_t functional = 0, rows = 0;
  for (const lamella::Op* op : lamella::OpTable::current().rows()) {
    if (op->has(lamella::kTestOnly)) continue;
    functional += op->form == lamella::OpForm::Functional;
    ++rows;
  }
  std::printf("lamella " LAMELLA_VERSION ": %zu operators, %zu with their forms\n", functional, rows);
  std::printf("  %-12s %s, %u threads\n", "cpu", lamella::kernels::cpu_isa(),
              std::thread::hardware_concurrency());
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
