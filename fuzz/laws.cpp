// All laws for some time: what `lamella verify` does, without the program around it. The sanitized build of
// the tests has this instead, which saves a quarter of its time; `./run full presets` sanitizes the program,
// too.
//
// usage: fuzz_laws SECONDS SEED
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "lamella/ops/all.h"
#include "lamella/verify/run/runner.h"

namespace {
volatile std::sig_atomic_t stop = 0;
}

int main(int argc, char** argv) {
  using namespace lamella;
  if (argc != 3) return std::fprintf(stderr, "usage: fuzz_laws SECONDS SEED\n"), 2;
  std::signal(SIGINT, [](int) { stop = 1; });
  install_operators();
  verify::RunOptions options;
  options.ops = verify::all_operators();
  for (const verify::Law& law : verify::laws()) options.laws.push_back(&law);
  options.seconds = std::atof(argv[1]);
  options.seed = std::strtoull(argv[2], nullptr, 10);
  options.processes = std::max(1, int(std::thread::hardware_concurrency()));
  const verify::Report report = verify::run(options, stop);
  for (const verify::Failure& f : report.failures)
    std::printf("%s breaks %s%s\n%s\n\n%s\nlamella verify --replay %s\n\n", f.op.c_str(), f.law.c_str(),
                f.where.c_str(), f.message.c_str(), f.program.c_str(), f.blob.c_str());
  const verify::Tally all = report.total();
  std::printf("%llu checks of %zu operators and %zu laws in %.1f s, seed %llu: %zu failures\n",
              static_cast<unsigned long long>(all.cases), options.ops.size(), options.laws.size(),
              report.seconds, static_cast<unsigned long long>(options.seed), report.failures.size());
  return report.failures.empty() && all.cases > 0 ? 0 : 1;
}
