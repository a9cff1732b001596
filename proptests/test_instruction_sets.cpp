// One text, one result: what the texts for different instruction sets compute has equal bits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

#include "lamella/core/thresholds.h"
#include "lamella/dispatch/table.h"

#include "support.h"

namespace {
using namespace lamella;

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Of 1003 elements, so that runs end within a register: numbers up to 8. In `all`, every third is of any
/// size, subnormal, infinite or NaN.
template <class T> Tensor numbers(uint64_t seed, bool all) {
  Tensor t = zeros({17, 59}, sizeof(T) == 4 ? DType::F32 : DType::F64);
  T* const p = static_cast<T*>(t.raw_data());
  for (int64_t i = 0; i < t.numel(); ++i) {
    const uint64_t word = mixed(mixed(seed) + uint64_t(i));
    if (all && i % 3 == 0) std::memcpy(p + i, &word, sizeof(T));
    else p[i] = T(int64_t(word)) * T(0x1p-60);
  }
  return t;
}

/// Of the bits of all elements; a NaN is a NaN.
template <class T> uint64_t hash_of(const Tensor& given) {
  const Tensor t = contiguous(given);
  const T* const p = static_cast<const T*>(t.raw_data());
  uint64_t hash = 0;
  for (int64_t i = 0; i < t.numel(); ++i) {
    uint64_t bits = 0;
    if (p[i] == p[i]) std::memcpy(&bits, p + i, sizeof(T));
    hash = mixed(hash ^ bits) + uint64_t(i);
  }
  return hash;
}

/// What a row makes of one or two tensors alone: "" where it wants other arguments.
template <class T> std::string line_of(const Op& op) {
  const bool all = op.shape == ShapeClass::Broadcast;  // of others a NaN would be the only result
  const Tensor a = numbers<T>(1, all), b = numbers<T>(2, all);
  const bool two = op.tensor_params.size() == 2;
  std::string line;
  try {
    const Tensors results = call(op.name, two ? Values{a, b} : Values{a});
    for (const Tensor& y : results)
      if (y.dtype() == a.dtype()) line += format("{} ", hash_of<T>(y));
  } catch (const Error&) { return ""; }
  return line.empty() ? "" : format("{} {} {}\n", op.name, sizeof(T), line);
}

/// Element by element, along dims, and in order: all but products of matrices, which fuse where they can.
bool is_one_text(const Op& op) {
  const bool shape =
      op.shape == ShapeClass::Broadcast || op.shape == ShapeClass::Reduce || op.shape == ShapeClass::AlongDim;
  return shape && op.form == OpForm::Functional && op.tensor_params.size() <= 2 && !op.takes_functions &&
         !op.has(kUnspecified);
}

std::string all_lines() {
  std::string text;
  const ScopedThresholds usual(kUsualThresholds);
  for (const Op* op : OpTable::current().rows())
    if (is_one_text(*op)) text += line_of<float>(*op) + line_of<double>(*op);
  return text;
}

/// A program chooses its instruction set once: each is asked in a process of its own, which begins with this
/// test and ends in it. On a machine without one the next narrower answers.
TEST(InstructionSets, GiveEqualBits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const wish = std::getenv("LAMELLA_ISA");
  const std::string before = wish ? wish : "", here = all_lines();
  EXPECT_NE(here.find("exp 4 "), std::string::npos);
  EXPECT_NE(here.find("pow 8 "), std::string::npos);
  EXPECT_GT(std::count(here.begin(), here.end(), '\n'), 40);
  for (const char* const set : {"scalar", "avx2", "avx512"}) {
    setenv("LAMELLA_ISA", set, 1);
    EXPECT_EXIT((std::fputs(all_lines().c_str(), stderr), std::exit(0)), testing::ExitedWithCode(0),
                testing::Matcher<const std::string&>(testing::Eq(here)))
        << set;
  }
  if (wish) setenv("LAMELLA_ISA", before.c_str(), 1);
  else unsetenv("LAMELLA_ISA");
}

}  // namespace
