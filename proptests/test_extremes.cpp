// amax, amin and argmax of rows with NaN: wherever it lies, and whatever lies beside it.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "lamella/lamella.h"

namespace {
using namespace lamella;

Tensor rising(int64_t n, DType dtype) { return to(arange(n), dtype); }
void put(const Tensor& x, int64_t at, double value) { fill_(select(x, 0, at), value); }

/// About registers, blocks and tiles: the last step of a row takes elements a second time.
constexpr int64_t kSizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 95, 100, 1023, 1024, 1025, 2048, 3001};

TEST(Extremes, NanAtAnyPlace) {
  for (const DType d : {DType::F32, DType::F64})
    for (const int64_t n : kSizes)
      for (const int64_t at : {int64_t{0}, n / 3, n / 2, 2 * n / 3, n - 2, n - 1}) {
        if (at < 0) continue;
        const Tensor x = rising(n, d);
        put(x, at, std::nan(""));
        EXPECT_TRUE(std::isnan(amax(x).item<double>())) << n << ' ' << at;
        EXPECT_TRUE(std::isnan(amin(x).item<double>())) << n << ' ' << at;
        EXPECT_EQ(argmax(x, 0).item<int64_t>(), at) << n;
        put(x, n - 1, std::nan(""));
        EXPECT_EQ(argmax(x, 0).item<int64_t>(), at) << n << ": the first of two";
      }
}

TEST(Extremes, GreatestAtAnyPlace) {
  for (const DType d : {DType::F32, DType::F64, DType::I32, DType::I64})
    for (const int64_t n : kSizes)
      for (const int64_t at : {int64_t{0}, n / 3, n / 2, n - 1}) {
        const Tensor x = rising(n, d);
        put(x, at, double(n + 5));
        EXPECT_EQ(amax(x).item<double>(), double(n + 5)) << n << ' ' << at;
        EXPECT_EQ(argmax(x, 0).item<int64_t>(), at) << n;
        put(x, at, -7);
        EXPECT_EQ(amin(x).item<double>(), -7) << n << ' ' << at;
      }
}

}  // namespace
