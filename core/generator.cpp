// The thread's generator and its lanes.
#include "lamella/core/generator.h"

#include <vector>

#include "lamella/core/rng.h"

namespace lamella {

namespace {
thread_local Generator own_generator;
thread_local Generator* scoped_generator = nullptr;
thread_local std::vector<uint64_t> lanes;
}  // namespace

uint64_t Generator::next() {
  uint64_t key = fold_in(key_, counter_++);
  for (const uint64_t lane : lanes) key = fold_in(key, lane);
  return key;
}

Generator& default_generator() { return scoped_generator ? *scoped_generator : own_generator; }

void manual_seed(uint64_t seed) { default_generator() = Generator(seed); }

ScopedGenerator::ScopedGenerator(Generator& g) : saved_(scoped_generator) { scoped_generator = &g; }
ScopedGenerator::~ScopedGenerator() { scoped_generator = saved_; }

LaneScope::LaneScope(uint64_t lane) { lanes.push_back(lane); }
LaneScope::~LaneScope() { lanes.pop_back(); }

}  // namespace lamella
