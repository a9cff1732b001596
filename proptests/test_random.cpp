// The threads' generators: threads draw apart, seeds are reproducible.
#include <gtest/gtest.h>
#include <set>
#include <thread>

#include "lamella/core/generator.h"
#include "lamella/lamella.h"

namespace {
using namespace lamella;

std::vector<double> draws() { return rand({4}, {}, DType::F64).to_vector(); }

std::vector<double> draws_of_new_thread(const std::function<void()>& before = [] {}) {
  std::vector<double> out;
  std::thread([&] {
    before();
    out = draws();
  }).join();
  return out;
}

TEST(ThreadGenerators, ThreadsDrawApart) {
  manual_seed(1);
  std::set<std::vector<double>> seen{draws()};
  for (int k = 0; k < 8; ++k) seen.insert(draws_of_new_thread());
  EXPECT_EQ(seen.size(), 9u);
}

TEST(ThreadGenerators, SeedsAreReproducible) {
  manual_seed(5);
  const std::vector<double> first = draws(), second = draws();
  EXPECT_NE(first, second);
  manual_seed(5);
  EXPECT_EQ(draws(), first);
  EXPECT_EQ(draws(), second);
  EXPECT_EQ(draws_of_new_thread([] { manual_seed(5); }), first) << "the same seed on another thread";
  Generator g(5);
  const ScopedGenerator scope(g);
  EXPECT_EQ(draws(), first) << "the same seed in a generator of one's own";
}

/// What a thread draws that was never seeded itself follows from the last seed set before its first draw.
TEST(ThreadGenerators, NewThreadsFollowTheSeed) {
  manual_seed(1);
  const std::vector<double> of_one = draws_of_new_thread();
  manual_seed(2);
  EXPECT_NE(draws_of_new_thread(), of_one);
  Generator apart(9);
  const ScopedGenerator scope(apart);
  manual_seed(3);  // restarts the scoped generator only
  EXPECT_EQ(apart.key(), 3u);
}
}  // namespace
