// The program `lamella`: one command per file, this one chooses.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sys/resource.h>

#include "lamella/core/check.h"
#include "lamella/core/version.h"
#include "lamella/dispatch/nearest.h"
#include "lamella/mutate/laws_harness.h"

#include "address_space.h"
#include "command_line.h"
#include "commands.h"
#include "interrupt.h"
#include "whole_file.h"

namespace {
struct Command {
  const char* name;
  const char* help;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"verify", "check operators against the laws; print counterexamples", main_verify},
    {"merge", "put reports of shards together", main_merge},
    {"mutate", "plant bugs and list which law catches which", main_mutate},
    {"answers", "answer single calls below each law wrongly and show what it refuses", main_answers},
    {"museum", "plant historical bugs of other libraries again and show which law finds each", main_museum},
    {"reference", "run cases computed by PyTorch, or NumPy's ULP sets", main_reference},
    {"sensitivity", "put errors of a known size into operators; count how many the laws see",
     main_sensitivity},
    {"tolerances", "print each operator's tolerance beside the largest error seen", main_tolerances},
    {"report", "write reports as one HTML page", main_report},
    {"bench", "compare kernels: right first, then fast", main_bench},
    {"explain", "show where every operator of an expression is dispatched", main_explain},
    {"ops", "list the operators", main_ops},
    {"accept", "write the texts that expect tests got into their sources and pages", main_accept},
    {"doctor", "show what this build has and what was left out", main_doctor},
};

void usage(std::FILE* out) {
  std::fputs("usage: lamella COMMAND [options]\n\ncommands:\n", out);
  for (const Command& c : kCommands) std::fprintf(out, "  %-11s %s\n", c.name, c.help);
  std::fputs("\nlamella COMMAND --help shows the options of a command; lamella --version its version.\n",
             out);
}

/// Transforms nest some dozens deep, laws go deeper: with 256 KiB they crash, 512 KiB are enough. Whoever set
/// a limit below twice that is told so, rather than that an operator crashes.
void check_stack() {
  constexpr rlim_t kLeast = rlim_t{1} << 20;
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0) return;
  LAMELLA_CHECK(stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur >= kLeast, Usage,
                "the stack is limited to {} KiB, expected at least {}: ulimit -s {}", stack.rlim_cur / 1024,
                kLeast / 1024, kLeast / 1024);
}

int run(const Command& c, int argc, char** argv) {
  try {
    check_stack();
    lamella::verify::install_harness_laws();
    return c.run(argc, argv);
  } catch (const lamella::tools::Exit& e) { return e.status; } catch (const std::exception& e) {
    std::cerr << "lamella " << c.name << ": " << e.what() << '\n';
    return 2;
  } catch (...) {  // the library and this program raise none: a plug-in's kernel, rule or law does
    std::cerr << "lamella " << c.name << ": a plug-in raised something that is no std::exception\n";
    return 2;
  }
}
}  // namespace

int main(int argc, char** argv) {
  lamella::tools::libraries_started();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grew too large is an error to report, not the end
  lamella::tools::hold_closed_files();
  if (argc < 2) {
    usage(stderr);
    return 2;
  }
  if (!std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h") || !std::strcmp(argv[1], "help")) {
    usage(stdout);
    return lamella::tools::output_arrived("help") ? 0 : 2;
  }
  if (!std::strcmp(argv[1], "--version")) {
    std::puts("lamella " LAMELLA_VERSION);
    return lamella::tools::output_arrived("--version") ? 0 : 2;
  }
  for (const Command& c : kCommands) {
    if (std::strcmp(argv[1], c.name)) continue;
    const int status = lamella::tools::status_of_stopped(run(c, argc - 1, argv + 1));
    return lamella::tools::output_arrived(c.name) ? status : 2;
  }
  std::vector<std::string_view> names;
  for (const Command& c : kCommands) names.emplace_back(c.name);
  std::fprintf(stderr, "lamella: there is no command \"%s\"%s\n\n", argv[1],
               lamella::nearest_text(argv[1], names).c_str());
  usage(stderr);
  return 2;
}
