// The pool: see NOTE: [threads of kernels].
#include "lamella/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string_view>
#include <thread>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "lamella/core/check.h"
#include "lamella/core/limits.h"
#include "lamella/core/thresholds.h"

namespace lamella {

namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kChunksOfAThread = 4;  ///< so that one that is slow leaves its share to others

thread_local constinit bool inside = false;

#if defined(__SSE2__)
/// Rounding mode, treatment of subnormals and traps of both units: the whole environment takes ten times as
/// long, as long as a small tile.
class Arithmetic {
 public:
  Arithmetic() : vectors_(_mm_getcsr() & kControl) { asm volatile("fnstcw %0" : "=m"(stack_)); }
  void apply() const {
    const Arithmetic here;
    if (here.vectors_ != vectors_) _mm_setcsr(vectors_);
    if (here.stack_ != stack_) asm volatile("fldcw %0" : : "m"(stack_));
  }

 private:
  static constexpr unsigned kControl = 0xffc0;  // without what was seen so far
  unsigned vectors_;
  uint16_t stack_;
};
#else
class Arithmetic {
 public:
  Arithmetic() { std::fegetenv(&all_); }
  void apply() const { std::fesetenv(&all_); }

 private:
  std::fenv_t all_;
};
#endif

/// One loop. Its fields are written before workers are let in, under the pool's mutex.
struct Job {
  detail::TilesFn run;
  void* body;
  int64_t tiles, chunk;
  const Thresholds* limits;
  Arithmetic arithmetic = {};
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> failed{kNone};  ///< where the first range begins that has raised
  std::mutex of_error = {};
  std::exception_ptr error = {};
  bool by_caller = false;
  std::atomic<int> running{0};  ///< workers in it, written under the pool's mutex
};

void note_error(Job& job, int64_t first, bool caller) {
  const std::lock_guard lock(job.of_error);
  if (first > job.failed.load(std::memory_order_relaxed)) return;
  job.failed.store(first, std::memory_order_relaxed);
  job.error = std::current_exception(), job.by_caller = caller;
}

/// Ranges are handed out in order, so all before one that failed have been: the first one is found, whoever
/// was faster.
void run_ranges(Job& job, bool caller) {
  for (;;) {
    const int64_t first = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (first >= job.tiles || first > job.failed.load(std::memory_order_relaxed)) return;
    try {
      job.run(job.body, first, std::min(first + job.chunk, job.tiles));
    } catch (...) { note_error(job, first, caller); }
    if (job.limits->lowered) std::this_thread::yield();  // tiles are tiny: let others have some
  }
}

/// As std::condition_variable, but made when it is compiled, and with nothing to be destroyed.
struct Condition {
  pthread_cond_t of_system = PTHREAD_COND_INITIALIZER;
  void notify_one() { pthread_cond_signal(&of_system); }
  /// Until it is told, or for no reason.
  void wait(std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(&of_system, lock.mutex()->native_handle());
  }
};

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kAwake = std::chrono::microseconds(100), kClose = 2 * kAwake;

inline void rest() {
#if defined(__SSE2__)
  __builtin_ia32_pause();
#endif
}

/// Held for moments alone: who finds it taken looks again for a while before it sleeps.
std::unique_lock<std::mutex> locked(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int tries = 0; tries < 1000 && !lock.owns_lock(); ++tries) {
    rest();
    (void)lock.try_lock();
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

/// Waits for what comes soon or not at all.
template <class Ready> void look_for(Ready&& ready) {
  for (const Clock::time_point until = Clock::now() + kAwake; Clock::now() < until;)
    for (int looks = 0; looks < 32; ++looks) {
      if (ready()) return;
      rest();
    }
}

int processors() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(int(std::thread::hardware_concurrency()), 1);
}
int processors_at_first() {
  static const int first = processors();
  return first;
}

struct Pool {
  std::mutex one_caller;  ///< held by the thread for which the pool works
  std::mutex mutex;       ///< of what follows, and of Job::running
  Condition work, done;
  Job* job = nullptr;
  std::atomic<int> seats{0};  ///< workers that may still join the job, written under the mutex
  std::atomic<int> awake{0};  ///< workers that look for a job, likewise
  int workers = 0;
  bool stays =
      true;  ///< whether the last loop was worth looking for the next: not those of lowered thresholds

  void serve() {
    inside = true;
    std::unique_lock lock(mutex);
    for (;;) {
      if (seats == 0) work.wait(lock);
      if (seats > 0) help(lock);
      // Also who comes too late for a short loop stays: another one follows closely, or nobody were woken.
      // No more than may work, nor than there are processors: others would take them from those.
      if (!stays || awake >= std::min(threads(), processors_at_first()) - 1) continue;
      ++awake;
      lock.unlock();
      look_for([this] { return seats.load(std::memory_order_relaxed) > 0; });
      lock = locked(mutex);
      --awake;
    }
  }
  /// REQUIRES: the mutex, and a seat.
  void help(std::unique_lock<std::mutex>& lock) {
    --seats;
    Job& mine = *job;
    ++mine.running;
    lock.unlock();
    {
      const ScopedThresholds limits(*mine.limits);
      mine.arithmetic.apply();
      run_ranges(mine, false);
    }
    lock = locked(mutex);
    if (--mine.running == 0) done.notify_one();
  }

  /// To so many workers, or as many as the system has threads for. REQUIRES: the mutex.
  void grow(int wanted);

  void run(Job& mine, int helpers) {
    {
      const std::unique_lock lock = locked(mutex);
      grow(helpers);
      helpers = std::min(helpers, workers);
      job = &mine, seats = helpers, stays = !mine.limits->lowered;
      helpers -= awake;
    }
    for (int k = 0; k < helpers; ++k) work.notify_one();
    run_ranges(mine, true);
    std::unique_lock lock = locked(mutex);
    job = nullptr, seats = 0;
    if (stays) {
      lock.unlock();
      look_for([&mine] { return mine.running.load(std::memory_order_relaxed) == 0; });
      lock = locked(mutex);
    }
    while (mine.running > 0) done.wait(lock);
  }
};

/// Made when it is compiled and never destroyed: workers wait in it until the process ends. A child of fork()
/// makes it anew over what it has inherited, whose threads are not there and whose mutexes may be locked for
/// good.
constinit Pool pool;
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] { new (&pool) Pool; });

void* serve(void*) {
  pthread_setname_np(pthread_self(), "lamella");
  pool.serve();
  return nullptr;
}

/// Signals are for threads of the program; only faults, which a handler describes, come to those that made
/// them.
void block_signals(sigset_t& before) {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before);
}

void Pool::grow(int wanted) {
  if (workers >= wanted) return;
  sigset_t before;
  block_signals(before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (pthread_t thread; workers < wanted; ++workers)
    if (pthread_create(&thread, &attributes, lamella::serve, nullptr) != 0) break;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// A runtime of OpenMP in this process, asked by name: none is linked.
bool in_parallel_of_openmp() {
  using Ask = int (*)();
  static const auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_DEFAULT, "omp_in_parallel"));
  return ask && ask();
}

/// Raises again what a tile raised. Who is told of errors, and which transforms are live, only the caller
/// knows.
[[noreturn]] void raise_again(const Job& job) {
  if (job.by_caller) std::rethrow_exception(job.error);
  try {
    std::rethrow_exception(job.error);
  } catch (const Error& e) { detail::raise(e.code(), {e.op(), e.argument(), e.text(), {}}); }
}

int threads_at_first() {
  const char* const wish = std::getenv("LAMELLA_THREADS");
  return wish && *wish ? detail::threads_asked(wish) : std::min(processors(), kMaxThreads);
}

std::atomic<int> chosen{0};  ///< 0: the environment was not read yet

}  // namespace

int detail::threads_asked(std::string_view text) {
  int n = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool good = wrong == std::errc() && end == text.data() + text.size() && n >= 1 && n <= kMaxThreads;
  LAMELLA_CHECK(good, Usage, "threads: LAMELLA_THREADS = \"{}\"; expected a number from 1 to {}", text,
                kMaxThreads);
  return n;
}

int threads() {
  const int n = chosen.load(std::memory_order_relaxed);
  if (n > 0) [[likely]]
    return n;
  int none = 0;
  chosen.compare_exchange_strong(none, threads_at_first(), std::memory_order_relaxed);
  return chosen.load(std::memory_order_relaxed);
}

void set_threads(int n) {
  LAMELLA_CHECK(n >= 1 && n <= kMaxThreads, Usage, "set_threads: n = {}; expected 1 <= n <= {}", n,
                kMaxThreads);
  chosen.store(n, std::memory_order_relaxed);
}

bool in_parallel() { return inside; }

bool helpers_near() {
  static constinit std::atomic<Clock::rep> last{0};
  if (inside || threads() == 1) return false;
  if (pool.awake.load(std::memory_order_relaxed) > 0) return true;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  return now - last.exchange(now, std::memory_order_relaxed) < kClose.count();
}

void detail::run_tiles(int64_t tiles, TilesFn run, void* body) {
  if (tiles <= 0) return;
  const int n = inside ? 1 : threads();
  if (tiles == 1 || n == 1 || in_parallel_of_openmp()) return run(body, 0, tiles);
  const std::unique_lock owner(pool.one_caller, std::try_to_lock);
  if (!owner.owns_lock()) return run(body, 0, tiles);
  Job job{.run = run, .body = body, .tiles = tiles, .chunk = 1, .limits = &thresholds()};
  job.chunk = std::max<int64_t>(1, tiles / (kChunksOfAThread * n));
  inside = true;
  pool.run(job, int(std::min<int64_t>(n - 1, (tiles - 1) / job.chunk)));
  inside = false;
  if (job.error) raise_again(job);
}

}  // namespace lamella
