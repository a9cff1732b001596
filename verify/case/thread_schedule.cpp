// Threads that take turns, or run at once with drawn pauses.
#include "lamella/verify/case/thread_schedule.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lamella/core/yield.h"

namespace lamella::verify {

namespace {

using Microseconds = std::chrono::microseconds;
constexpr Microseconds kMeeting{100}, kMeetingBegins{500};
constexpr int kMostTurns = 40;  ///< of a case: then each runs to its end

uint64_t next_random(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

/// What the threads of one schedule share.
struct Round {
  const bool turns;
  const size_t count;
  std::atomic<size_t> ready{0};
  std::mutex mutex = {};  ///< of what follows
  std::condition_variable changed = {};
  uint64_t random;
  uint64_t running;  ///< bits
  size_t turn;
  int left = kMostTurns;

  Round(uint32_t word, bool takes_turns, size_t n)
      : turns(takes_turns), count(n), random(word), running((uint64_t{1} << n) - 1), turn(word % n) {}

  /// One that still runs; `me` if nobody does.
  size_t drawn(size_t me) {
    size_t skip = running ? next_random(random) % size_t(__builtin_popcountll(running)) : 0;
    for (size_t k = 0; k < count; ++k)
      if (running >> k & 1 && skip-- == 0) return k;
    return me;
  }
  void wait_for_turn(std::unique_lock<std::mutex>& lock, size_t me, Microseconds patience) {
    if (!changed.wait_for(lock, patience, [&] { return turn == me; })) turn = me;
  }
};

struct Participant {
  Round& round;
  const size_t me;
  uint64_t random;

  void start() {
    if (!round.turns) {
      round.ready.fetch_add(1, std::memory_order_relaxed);
      for (int k = 0; round.ready.load(std::memory_order_relaxed) < round.count; ++k)
        if (k > 5000) std::this_thread::yield();  // spinning first: all begin within nanoseconds
      return;
    }
    std::unique_lock lock(round.mutex);
    round.wait_for_turn(lock, me, kMeetingBegins);
  }
  void yield() {
    if (!round.turns) return pause();
    std::unique_lock lock(round.mutex);
    if (round.left == 0) return;
    --round.left;
    const size_t next = round.drawn(me);
    if (next == me) return;
    round.turn = next;
    round.changed.notify_all();
    round.wait_for_turn(lock, me, kMeeting);
  }
  void pause() {
    const uint64_t r = next_random(random);
    if (r % 8 == 0) std::this_thread::yield();
    else if (r % 8 < 4)
      for (uint64_t k = r / 8 % 512; k > 0; --k) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void end() {
    if (!round.turns) return;
    const std::lock_guard lock(round.mutex);
    round.running &= ~(uint64_t{1} << me);
    if (round.turn == me) round.turn = round.drawn(me);
    round.changed.notify_all();
  }
};
thread_local constinit Participant* participant = nullptr;

Finding run_one(Round& round, size_t me, uint32_t word, const std::function<void()>& body) {
  Participant p{round, me, word * uint64_t{0x9E3779B97F4A7C15} + me};
  Finding raised;
  p.start();
  participant = &p;
  try {
    body();
  } catch (const std::exception& e) { raised = raised_by(e, ""); } catch (...) {
    raised = {What::Raised, "an exception of another kind"};
  }
  participant = nullptr;
  p.end();
  return raised;
}

}  // namespace

void Schedule::yield() {
  if (participant) participant->yield();
}

std::vector<Finding> Schedule::run(const std::vector<std::function<void()>>& bodies,
                                   const std::function<void()>& here) const {
  const size_t n = bodies.size() + (here ? 1 : 0);
  Round round(word_, turns_, n);
  std::vector<Finding> raised(n);
  const detail::ScopedYield hook(Schedule::yield);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < bodies.size(); ++k)
    threads.emplace_back([&, k] { raised[k] = run_one(round, k, word_, bodies[k]); });
  if (here) raised[n - 1] = run_one(round, n - 1, word_, here);
  for (std::thread& t : threads) t.join();
  return raised;
}

}  // namespace lamella::verify
