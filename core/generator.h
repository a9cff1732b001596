// Where random operators take a key from when the caller gives none.
#pragma once

#include <cstdint>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// A key and how many keys have been drawn from it. The whole state of the library's ambient randomness.
class Generator {
 public:
  explicit Generator(uint64_t key = 0) : key_(key) {}

  /// A key that no earlier call returned: fold_in(key, counter), then the lanes of the live LaneScopes,
  /// outermost first.
  uint64_t next();
  uint64_t key() const { return key_; }
  uint64_t counter() const { return counter_; }
  /// Goes back (or forward) to a known place of the sequence.
  void set_counter(uint64_t counter) { counter_ = counter; }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

/// NOTE: [streams of threads] This thread's generator: the innermost ScopedGenerator, else the thread's own.
/// The main thread's starts at Generator(seed), that of another thread at Generator(fold_in(seed, n)), for
/// the n-th thread (from 1) that asks for it. So threads draw apart, and what they draw follows from the seed
/// up to which thread asks first. Where that order is left to the scheduler, give threads keys, or call
/// manual_seed in each.
Generator& default_generator();
/// Restarts default_generator() at Generator(seed). Without a ScopedGenerator it is also the seed of threads
/// that ask for their own generator later; it is 0 until then. Threads that have one keep it.
void manual_seed(uint64_t seed);

/// Makes `g` this thread's generator for a scope. `g` must outlive it.
class ScopedGenerator {
 public:
  explicit ScopedGenerator(Generator& g);
  ~ScopedGenerator();
  ScopedGenerator(const ScopedGenerator&) = delete;
  ScopedGenerator& operator=(const ScopedGenerator&) = delete;

 private:
  Generator* saved_;
};

/// NOTE: [lanes] A loop that stands for vmap with different randomness runs lane i inside LaneScope(i):
/// next() then folds the lane into the key as vmap does for its batch of keys. The loop itself sets the
/// counter back before each lane.
class LaneScope {
 public:
  explicit LaneScope(uint64_t lane);
  ~LaneScope();
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;
};

/// All that decides what this thread draws next.
struct RandomState {
  Generator generator;
  std::vector<uint64_t> lanes;
};
RandomState random_state();

/// Draws again what a state gave, for a scope; the thread's own generator stays where it is.
class ScopedRandomState {
 public:
  explicit ScopedRandomState(const RandomState& state);
  ~ScopedRandomState();
  ScopedRandomState(const ScopedRandomState&) = delete;
  ScopedRandomState& operator=(const ScopedRandomState&) = delete;

 private:
  Generator generator_;
  ScopedGenerator scope_;
  std::vector<uint64_t> lanes_;
};

}  // namespace lamella
LAMELLA_API_END
