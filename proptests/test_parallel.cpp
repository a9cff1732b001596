// The threads of kernels: tiles, nested calls, exceptions, fork, and bits at the usual thresholds (law 173
// has the lowered ones).
#include <atomic>
#include <cfenv>
#include <gtest/gtest.h>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "lamella/core/parallel.h"
#include "lamella/core/thresholds.h"
#include "lamella/verify/case/compare.h"

#include "support.h"

namespace {
using namespace lamella;
using tests::first_line;
using tests::refusal;

constexpr int kNumbers[] = {1, 2, 3, 7, 16};

TEST(Parallel, EachTileRunsOnce) {
  for (const int n : kNumbers)
    for (const int64_t tiles : {0, 1, 2, 15, 1000}) {
      const ScopedThreads on(n);
      std::vector<std::atomic<int>> runs(size_t(tiles) + 1);
      parallel_for(tiles, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) ++runs[size_t(t)];
      });
      for (int64_t t = 0; t <= tiles; ++t) EXPECT_EQ(runs[size_t(t)], t < tiles) << n << " " << t;
    }
}

TEST(Parallel, TilesCallAlone) {
  const ScopedThreads on(4);
  std::atomic<int> elsewhere = 0;
  EXPECT_FALSE(in_parallel());
  parallel_for(64, [&](int64_t, int64_t) {
    const std::thread::id mine = std::this_thread::get_id();
    elsewhere += !in_parallel();
    parallel_for(8, [&](int64_t, int64_t) { elsewhere += std::this_thread::get_id() != mine; });
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_FALSE(in_parallel());
}

TEST(Parallel, TheFirstTileThatRaisesIsTold) {
  for (const int n : kNumbers) {
    const ScopedThreads on(n);
    for (int round = 0; round < 100; ++round)
      EXPECT_EQ(first_line(refusal([] {
                  parallel_for(1000, [](int64_t first, int64_t last) {
                    for (int64_t t = first; t < last; ++t)
                      LAMELLA_CHECK(t < 900 && t != 137 && t != 500, Value, "try: tile = {}", t);
                  });
                })),
                "value: try: tile = 137");
    EXPECT_FALSE(in_parallel());
    EXPECT_THROW(parallel_for(64, [](int64_t, int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
  }
}

/// Whichever thread found it, the text has the transforms of the thread that called.
TEST(Parallel, ErrorsOfTilesNameTheCallersTransforms) {
  const Tensor corner = full({8, 8}, 1.0, DType::F64), eye = mul(tril(corner), triu(corner));
  const Tensor batch = clone(expand(eye, {3000, 8, 8}));
  fill_(select(batch, 0, 1234), 1.0), fill_(select(batch, 0, 2345), 0.0);
  for (const int n : kNumbers) {
    const ScopedThreads on(n);
    const std::string text =
        refusal([&] { vmap([](const Tensor& x) { return linalg_cholesky(x); })(batch); });
    // Of lane 1234's one matrix; that of lane 2345 has no positive minor 1.
    EXPECT_NE(text.find("matrix 0 of x has no positive leading minor 2"), std::string::npos) << text;
    EXPECT_NE(text.find("under: vmap#1"), std::string::npos) << text;
  }
}

TEST(Parallel, TilesHaveTheCallersSettings) {
  const ScopedThreads on(4);
  const ScopedThresholds lowered(kLoweredThresholds);
  std::fesetround(FE_UPWARD);
  std::atomic<int> others = 0;
  parallel_for(64, [&](int64_t, int64_t) {
    others += &thresholds() != &kLoweredThresholds;
    others += std::fegetround() != FE_UPWARD;
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(others, 0);
}

TEST(Parallel, CallersBesideEachOtherAreServed) {
  const ScopedThreads on(3);
  std::atomic<int64_t> sum = 0;
  const auto call = [&sum] {
    for (int k = 0; k < 200; ++k)
      parallel_for(50, [&sum](int64_t first, int64_t last) { sum += last - first; });
  };
  std::thread one(call), other(call);
  call();
  one.join(), other.join();
  EXPECT_EQ(sum, 3 * 200 * 50);
}

#if !defined(__SANITIZE_THREAD__)  // it ends a child of several threads that starts one
TEST(Parallel, ChildrenHaveAPoolOfTheirOwn) {
  const ScopedThreads on(4);
  const auto count = [] {
    std::atomic<int64_t> sum = 0;
    parallel_for(1000, [&sum](int64_t first, int64_t last) { sum += last - first; });
    return sum.load();
  };
  EXPECT_EQ(count(), 1000);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) (void)count();
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a child that waits for threads it has not is ended
      ::_exit(count() == 1000 && count() == 1000 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}
#endif

TEST(Parallel, NumbersAreRefused) {
  EXPECT_EQ(detail::threads_asked("3"), 3);
  for (const char* text : {"two", "0", "-1", "257", "3 ", " 3", "3.0", "99999999999"})
    EXPECT_EQ(first_line(refusal([text] { (void)detail::threads_asked(text); })),
              format("usage: threads: LAMELLA_THREADS = \"{}\"; expected a number from 1 to 256", text));
  EXPECT_EQ(first_line(refusal([] { set_threads(0); })), "usage: set_threads: n = 0; expected 1 <= n <= 256");
}

/// Every kernel that is cut but matmul, on tensors that are worth it at the usual thresholds.
std::vector<Tensor> results() {
  const auto key = [](int n) { return scalar_tensor(n, DType::U64); };
  const Tensor x = randn({700, 900}, key(1)), row = randn({900}, key(3));
  const Tensor wide = to(x, DType::F64), half = to(x, DType::F16),
               across = transpose(randn({900, 700}, key(2)), 0, 1);
  const Tensor places = to(mul(rand({700, 900}, key(4)), 699), DType::I64);
  const Tensor batch = randn({3000, 8, 8}, key(5)), turned = transpose(batch, 1, 2);
  const Tensor positive = add(matmul(batch, turned), full({8, 8}, 0.0)),
               nine = mul(tril(full({8, 8}, 1.0)), 9);
  const Tensor solid = add(positive, mul(nine, transpose(nine, 0, 1)));
  const Tensor tall = randn({300'000, 3}, key(6)), long_one = randn({1'000'003}, key(7));
  const Tensor flat = view(slice(long_one, 0, 0, 576'000), {64, 9000});
  return {x,
          add(x, row),
          add(x, across),
          exp(wide),
          add(half, row),
          clone(across),
          to(x, DType::I32),
          flip(x, {0, 1}),
          tril(x),
          sum(x),
          sum(half),
          sum(across),
          sum(wide, {0}),
          sum(x, {0}),
          sum(half, {0}),
          sum(flat, {0}),
          prod(flat, {0}),
          sum(x, {1}),
          sum(tall, {0}),
          sum(long_one),
          logsumexp(long_one, {0}),
          logsumexp(x, {0}),
          amax(x, {0}),
          amax(x, {1}),
          argmax(x, 0),
          argmax(x, 1),
          argmax(flat, 0),
          argmax(long_one, 0),
          cumsum(x, 0),
          cumsum(x, 1),
          softmax(x, 0),
          log_softmax(x, 1),
          layer_norm(x, {900}, row, select(x, 0, 5)),
          std::get<0>(sort(x, 1)),
          std::get<1>(sort(x, 0)),
          linalg_cholesky(solid),
          linalg_solve_triangular(linalg_cholesky(solid), batch, false),
          gather(x, 0, places),
          index_select(x, 0, select(places, 1, 0)),
          nonzero(x),
          arange(1'000'000)};
}

/// Products, whose tiles are rounded as matrices of their size are.
std::vector<Tensor> products() {
  const auto key = [](int n) { return scalar_tensor(n, DType::U64); };
  const Tensor x = randn({700, 900}, key(1)), y = randn({900, 700}, key(2));
  const Tensor batch = randn({3000, 8, 8}, key(5)), squares = randn({20, 192, 192}, key(10));
  const Tensor few = slice(squares, 0, 0, 3);
  return {matmul(x, y),
          matmul(transpose(y, 0, 1), transpose(x, 0, 1)),
          matmul(randn({1100, 64}, key(8)), randn({64, 1100}, key(9))),
          bmm(batch, transpose(batch, 1, 2)),
          bmm(squares, squares),
          bmm(few, few)};
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want, int n) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(verify::differs(got[k], want[k]), "") << n << " " << k;
}

TEST(Parallel, BitsAreThoseOfOneThread) {
  for (const auto f : {results, products}) {
    const auto of = [f](int n) {
      const ScopedThreads on(n);
      return f();
    };
    const std::vector<Tensor> want = of(1);
    for (const int n : {2, 3, 7, 16}) expect_same(of(n), want, n);
  }
}

/// Products and others too short to wake a thread for, while one is awake: loops follow each other closely.
TEST(Parallel, BitsOfShortLoopsAreThoseOfOneThread) {
  const auto key = full({}, Scalar(int64_t{5}), DType::U64);
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Tensor a = to(randn({100, 200}, key), dtype), b = to(randn({200, 330}, key), dtype);
    const Tensor many = to(randn({300, 7, 8}, key), dtype), m = matmul(many, transpose(many, 1, 2));
    const auto all = [&] {
      return Tensors{matmul(a, b), matmul(m, m), exp(b), sum(b, IntArg({1})), cumsum(b, 0)};
    };
    const auto of = [&](int n) {
      const ScopedThreads on(n);
      return all();
    };
    const Tensors want = of(1);
    for (const int n : kNumbers)
      for (int round = 0; round < 20; ++round) expect_same(of(n), want, n);
  }
}

/// A thread that is awake takes the loop that comes next, and none is lost or taken twice.
TEST(Parallel, LoopsThatFollowCloselyRunOnce) {
  const ScopedThreads on(3);
  std::vector<int64_t> sums(64);
  for (int64_t round = 0; round < 20'000; ++round)
    parallel_for(8, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) sums[size_t(t * 8)] += round;
    });
  for (int64_t t = 0; t < 8; ++t) EXPECT_EQ(sums[size_t(t * 8)], int64_t{20'000} * 19'999 / 2);
}

TEST(Parallel, OneThreadHasNoHelpers) {
  const ScopedThreads on(1);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(helpers_near());
}

/// Sums among them: their tiles are branches of the tree that a sum is.
TEST(Parallel, BitsAreThoseOfOneTile) {
  const auto under = [](const Thresholds& t) {
    const ScopedThresholds scope(t);
    return results();
  };
  Thresholds whole = kUsualThresholds;
  whole.parallel = std::numeric_limits<int64_t>::max();
  expect_same(under(kUsualThresholds), under(whole), threads());
}

/// f32 by the text of the instruction set, others element by element.
TEST(Parallel, ArgmaxOfOneLineIsTheFirst) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [](const Tensor& line, int64_t place) {
    for (const int n : kNumbers) {
      const ScopedThreads on(n);
      EXPECT_EQ(argmax(line, 0).item<int64_t>(), place) << str(line.dtype()) << " " << n;
    }
  };
  for (const DType dtype : {DType::F32, DType::F16, DType::I16}) {
    const Tensor line = full({300'000}, 0, dtype);
    for (const int64_t place : {123'456, 123'457, 250'000}) fill_(select(line, 0, place), 1);
    expect(line, 123'456);
    if (!is_floating(dtype)) continue;
    for (const int64_t place : {200'000, 280'000}) fill_(select(line, 0, place), kNan);
    expect(line, 200'000);
  }
}

}  // namespace
