// The threads' generators: threads draw apart, seeds are reproducible; and the streams of docs/random.md.
#include <gtest/gtest.h>
#include <set>
#include <thread>

#include "lamella/core/generator.h"
#include "lamella/core/parallel.h"
#include "lamella/lamella.h"
#include "lamella/verify/case/compare.h"

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

/// docs/random.md: a change of these is another version of the stream.
Tensor key_42() { return full({}, Scalar(int64_t{42}), DType::U64); }

/// Those of `bits` to the last bit of the C library's functions.
void expect_normals(const std::vector<double>& bits, const std::vector<double>& rounded) {
  EXPECT_EQ(randn({4}, key_42(), DType::F32).to_vector(), rounded);
  const std::vector<double> got = randn({4}, key_42(), DType::F64).to_vector();
  for (size_t i = 0; i < bits.size(); ++i) EXPECT_DOUBLE_EQ(got[i], bits[i]) << "of another C library";
}

TEST(Streams, AreThoseOfTheirVersion) {
  const auto of_rand = [](DType d) { return rand({4}, key_42(), d).to_vector(); };
  using Numbers = std::vector<double>;
  EXPECT_EQ(of_rand(DType::F64),
            (Numbers{0x1.dfd524ee73abcp-2, 0x1.4ee9b3f7f36c8p-2, 0x1.510ebb97a6d8p-1, 0x1.575e1b57758ep-1}));
  EXPECT_EQ(of_rand(DType::F32), (Numbers{0x1.39d5ep-1, 0x1.f9b642p-1, 0x1.a6d804p-1, 0x1.758e08p-1}));
  EXPECT_EQ(of_rand(DType::F16), (Numbers{0x1.39cp-1, 0x1.f98p-1, 0x1.a6cp-1, 0x1.758p-1}));
  EXPECT_EQ(of_rand(DType::BF16), (Numbers{0x1.38p-1, 0x1.f8p-1, 0x1.a6p-1, 0x1.74p-1}));
  const Numbers z{-0x1.ea30f7aa4707fp-3, 0x1.1944600a7fb32p+0, 0x1.b3a47933af38ap-2, 0x1.90487882793a2p-1};
  const Numbers rounded{-0x1.ea30f8p-3, 0x1.19446p+0, 0x1.b3a47ap-2, 0x1.904878p-1};
  expect_normals(z, rounded);
  {
    const RandomStream old(1);
    expect_normals(
        {-0x1.371e09f80c7dcp-1, -0x1.b510d5acb221cp-1, 0x1.bb237dc38ea2ep-3, -0x1.14b0530f597e8p+0},
        {-0x1.371e0ap-1, -0x1.b510d6p-1, 0x1.bb237ep-3, -0x1.14b054p+0});
    const RandomStream latest(2);
    expect_normals(z, rounded);
  }
  expect_normals(z, rounded);
  EXPECT_THROW(RandomStream(3), Error);
  EXPECT_THROW(RandomStream(0), Error);
  EXPECT_EQ(fold_in(key_42(), full({}, Scalar(int64_t{7}), DType::U64)).item<uint64_t>(),
            0x5281c34e4c78c45fu);
  EXPECT_EQ(Generator(42).next(), 0x2051e91302933769u);
  const LaneScope lane(3);
  EXPECT_EQ(Generator(42).next(), 0x4c3da35cc0e98580u);
}

/// An element is that of its place: in a longer draw, in another shape, strided, by any number of threads.
TEST(Streams, ElementsAreOfKeyAndPlaceAlone) {
  constexpr int64_t kMany = 100'003;
  for (const DType d : {DType::F32, DType::F64, DType::BF16}) {
    const auto draws = [d](bool normal, Dims sizes) {
      return (normal ? randn(sizes, key_42(), d) : rand(sizes, key_42(), d)).to_vector();
    };
    for (const bool normal : {false, true}) {
      const RandomStream version(d == DType::BF16 ? 1 : 2);
      const std::vector<double> all = draws(normal, {kMany});
      for (const int64_t n : {1, 63, 65, 4097})
        EXPECT_EQ(draws(normal, {n}), std::vector<double>(all.begin(), all.begin() + n));
      EXPECT_EQ(draws(normal, {31, 33}), std::vector<double>(all.begin(), all.begin() + 31 * 33));
      const Tensor wide = zeros({331, 606}, d), odd = slice(wide, 1, 0, 606, 2);
      normal ? randn_out(odd, {331, 303}, key_42(), d) : rand_out(odd, {331, 303}, key_42(), d);
      EXPECT_EQ(reshape(odd, {331 * 303}).to_vector(), draws(normal, {331 * 303}));
      for (const int n : {1, 2, 7}) {
        const ScopedThreads on(n);
        EXPECT_EQ(draws(normal, {kMany}), all) << n;
      }
    }
  }
}

/// The oracle has a text of its own for each version.
TEST(Streams, OfBothVersionsAreTheOracles) {
  for (const int version : {1, 2})
    for (const DType d : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128}) {
      const RandomStream of(version);
      const Tensor there = randn({3, 101}, to_device(key_42(), Device::Reference), d, Device::Reference);
      EXPECT_EQ(verify::differs(randn({3, 101}, key_42(), d), to_device(there, Device::CPU)), "")
          << version << " " << name(d);
    }
}

/// Normals of f32 come from series where those are sure: of a quarter of a million none is another than what
/// the library's functions, in f64, round to.
TEST(Streams, NormalsAreTheLibrarys) {
  constexpr int64_t kMany = int64_t{1} << 18;
  for (uint64_t k = 0; k < 4; ++k) {
    const Tensor key = fold_in(key_42(), full({}, Scalar(int64_t(k)), DType::U64));
    const Tensor exact = to(randn({kMany}, key, DType::F64), DType::F32);
    EXPECT_EQ(verify::differs(randn({kMany}, key, DType::F32), exact), "");
  }
}
}  // namespace
