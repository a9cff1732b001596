// The thread's generator and its lanes.
#include "lamella/core/generator.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "lamella/core/rng.h"

namespace lamella {

namespace {
thread_local std::optional<Generator> own_generator;
thread_local Generator* scoped_generator = nullptr;

/// A thread's lanes, also in its end, when destructors of others may still draw: it has no destructor.
union Lanes {
  std::vector<uint64_t> list{};
  ~Lanes() {}
};
thread_local constinit Lanes lanes_here;
thread_local constinit bool lanes_ended = false;
struct LanesEnd {
  ~LanesEnd() {
    lanes_ended = true;
    std::vector<uint64_t>().swap(lanes_here.list);
  }
};
thread_local LanesEnd lanes_end;

std::atomic<uint64_t> seed_of_new_threads{0}, threads_seen{0};
const std::thread::id main_thread = std::this_thread::get_id();  // static initialisation runs on it

/// see NOTE: [streams of threads]
Generator first_generator() {
  const uint64_t seed = seed_of_new_threads.load(std::memory_order_relaxed);
  if (std::this_thread::get_id() == main_thread) return Generator(seed);
  return Generator(fold_in(seed, threads_seen.fetch_add(1, std::memory_order_relaxed) + 1));
}
}  // namespace

uint64_t Generator::next() {
  uint64_t key = fold_in(key_, counter_++);
  const std::vector<uint64_t>& lanes = lanes_here.list;
  for (const uint64_t lane : lanes) key = fold_in(key, lane);
  return key;
}

Generator& default_generator() {
  if (scoped_generator) return *scoped_generator;
  if (!own_generator) own_generator = first_generator();
  return *own_generator;
}

void manual_seed(uint64_t seed) {
  if (scoped_generator) {
    *scoped_generator = Generator(seed);
    return;
  }
  own_generator = Generator(seed);
  seed_of_new_threads.store(seed, std::memory_order_relaxed);
}

ScopedGenerator::ScopedGenerator(Generator& g) : saved_(scoped_generator) { scoped_generator = &g; }
ScopedGenerator::~ScopedGenerator() { scoped_generator = saved_; }

RandomState random_state() { return {default_generator(), lanes_here.list}; }

ScopedRandomState::ScopedRandomState(const RandomState& state)
    : generator_(state.generator), scope_(generator_), lanes_(state.lanes) {
  lanes_.swap(lanes_here.list);
}
ScopedRandomState::~ScopedRandomState() { lanes_.swap(lanes_here.list); }

LaneScope::LaneScope(uint64_t lane) {
  (void)&lanes_end;
  lanes_here.list.push_back(lane);
}
LaneScope::~LaneScope() {
  lanes_here.list.pop_back();
  if (lanes_ended && lanes_here.list.empty()) std::vector<uint64_t>().swap(lanes_here.list);
}

}  // namespace lamella
