// Steps by the trap flag, and the handler that stops at one of them.
#include "lamella/verify/case/interrupted.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <sched.h>
#include <thread>
#include <ucontext.h>

namespace lamella::verify {

namespace {

/// Where the two threads are.
enum Phase : int { kStepping, kStopped, kThrough, kOtherThrough };

struct Stop {
  int64_t at, taken = 0;
  std::atomic<int> phase{kStepping};
};

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
thread_local constinit Stop* stop_here = nullptr;

constexpr long kPatienceForOther = 50'000'000;  ///< ns: a busy machine lets the other thread wait, too
long now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void on_step(int, siginfo_t*, void* context) {
  Stop* const s = stop_here;
  if (!s || s->taken++ != s->at) return;
  const int error = errno;
  s->phase.store(kStopped, std::memory_order_release);
  for (const long end = now() + kPatienceForOther;
       s->phase.load(std::memory_order_acquire) == kStopped && now() < end;)
    sched_yield();
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_EFL] &= ~0x100;  // the rest at full speed
  errno = error;
}

/// While one lives, its thread traps after each instruction.
class Stepping {
 public:
  explicit Stepping(Stop& s) {
    struct sigaction mine {};
    mine.sa_sigaction = on_step;
    mine.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &mine, &before_);
    stop_here = &s;
    // What lies below the stack pointer may be the compiler's.
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
  }
  ~Stepping() {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    stop_here = nullptr;
    sigaction(SIGTRAP, &before_, nullptr);
  }
  Stepping(const Stepping&) = delete;

 private:
  struct sigaction before_ {};
};
#else
struct Stepping {
  explicit Stepping(Stop&) {}
};
#endif

}  // namespace

int64_t run_interrupted(const std::function<void()>& body, int64_t at, const std::function<void()>& other) {
  Stop stop{.at = at};
  std::thread second([&] {
    while (stop.phase.load(std::memory_order_acquire) == kStepping) std::this_thread::yield();
    other();
    int stopped = kStopped;
    stop.phase.compare_exchange_strong(stopped, kOtherThrough, std::memory_order_release);
  });
  std::thread first([&] {
    {
      const Stepping on(stop);
      body();
    }
    stop.phase.store(kThrough, std::memory_order_release);
  });
  first.join();
  second.join();
  if (stop.taken == 0) return -1;
  return stop.taken > at ? at : stop.taken;
}

}  // namespace lamella::verify
