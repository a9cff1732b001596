// Cells of composites' own under the laws: rounding is excused, nothing else is, and nothing elsewhere.
#include <cmath>
#include <gtest/gtest.h>

#include "lamella/ops/batch.h"
#include "lamella/verify/oracle/overrides.h"
#include "lamella/verify/run/runner.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::verify;
using namespace lamella::tests;

/// Registered in a test, gone behind it.
class Overrides : public testing::Test {
 protected:
  ~Overrides() override { OpTable::take_back(before_); }
  const OpTable* before_ = &OpTable::current();
};

/// How many of the first `n` cases fail.
int failures(std::string_view law_id, std::string_view op_name, int n) {
  const Law& law = *find_law(law_id);
  const Op& op = *OpTable::current().find(op_name);
  int failed = 0;
  for (int i = 0; i < n; ++i)
    failed += run_check(law, op, choices_of(3, law, op, uint64_t(i))).kind == Verdict::Fail;
  return failed;
}

/// x (1 + k 2^-52): so many roundings, or a wrong number.
template <int k> void scaled_mean(Frame& f, int key) {
  call_built_in(f, key);
  const Tensor& y = f.results[0];
  if (y.dtype() != DType::F64 || !y.is_contiguous() || !y.impl()->storage) return;
  for (int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] *= 1 + k * 0x1p-52;
}

const char* const kLaws[] = {"primals_are_plain", "constants_stay", "identity_transforms",
                             "backward_equals_vjp"};

TEST_F(Overrides, RoundingIsExcused) {
  OpTable::set("mean", int(Device::CPU), {"rounded", scaled_mean<1>});
  ASSERT_TRUE(has_overrides());
  for (const char* law : kLaws) EXPECT_EQ(failures(law, "mean", 300), 0) << law;
}

TEST_F(Overrides, WrongNumbersAreNot) {
  OpTable::set("mean", int(Device::CPU), {"wrong", scaled_mean<1 << 20>});
  for (const char* law : kLaws) EXPECT_GT(failures(law, "mean", 300), 0) << law;
  EXPECT_GT(failures("matches_reference", "mean", 300), 0);
}

/// A cell that is right, but writes into its argument.
TEST_F(Overrides, WhatElseACellDoesIsNot) {
  OpTable::set("mean", int(Device::CPU), {"writes", [](Frame& f, int key) {
                                            call_built_in(f, key);
                                            const Tensor& x = f.tensor(0);
                                            if (x.dtype() == DType::F64 && x.numel() > 1)
                                              x.data<double>()[0] += 1;
                                          }});
  EXPECT_GT(failures("primals_are_plain", "mean", 300), 0);
}

/// exp's batch rule is off by its last bit: seen as well while a composite has a cell of its own.
TEST_F(Overrides, OneUlpElsewhereIsSeen) {
  OpTable::set("layer_norm", int(Device::CPU), {"plain", call_built_in});
  auto* const row = new Op(*OpTable::current().find("exp"));  // rows are never freed
  row->base = row;
  row->straight = 0;
  row->batch = [](BatchCall& b) {
    const Tensor y = exp(b.front(0));
    if (y.dtype() == DType::F64 && y.is_contiguous() && y.impl()->storage)
      for (int64_t i = 0; i < y.numel(); ++i)
        y.data<double>()[i] = std::nextafter(y.data<double>()[i], 1e300);
    b.results[0] = y;
  };
  EXPECT_EQ(failures("vmap_equals_loop", "exp", 300), 0);
  const OpTable* const table = OpTable::current().with(*row);
  const ScopedTable pinned(table);
  ASSERT_TRUE(has_overrides());
  EXPECT_GT(failures("vmap_equals_loop", "exp", 300), 0);
}
}  // namespace
