// An address space in which the program's libraries do not start is said, rather than waited for.
#include "address_space.h"

#include <csignal>
#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

namespace lamella::tools {

namespace {
/// OpenBLAS 0.3 maps 128 MiB for each processor when it is loaded, and asks again, for good, where that
/// fails: with 2 processors `lamella --version` starts with 320,800 KiB, and hangs with less.
constexpr unsigned kSeconds = 10;  // it takes some hundredths of one

void give_up(int) {
  static constexpr char kText[] =
      "lamella: its libraries did not start within 10 s, and the address space is limited; OpenBLAS takes\n"
      "128 MiB of it for each processor: expected more (ulimit -v), or OMP_NUM_THREADS=1\n";
  if (::write(STDERR_FILENO, kText, std::strlen(kText)) < 0) ::_exit(3);
  ::_exit(2);
}

/// Before any library's own initialisers.
void watch_start(int, char**, char**) {
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return;
  std::signal(SIGALRM, give_up);
  ::alarm(kSeconds);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**, char**) = watch_start;
}  // namespace

void libraries_started() {
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return;
  ::alarm(0);
  std::signal(SIGALRM, SIG_DFL);
}

}  // namespace lamella::tools
