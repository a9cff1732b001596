// The library's second kernels: beside a plug-in's, chosen by name, and what each of them computes.
#include <gtest/gtest.h>

#include "lamella/dispatch/table.h"
#include "lamella/ops/alternatives.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;

const int kOfCpu = int(Device::CPU);

/// Registered in a test, gone behind it.
class Alternatives : public testing::Test {
 protected:
  ~Alternatives() override { OpTable::take_back(before_); }
  const OpTable* before_ = &OpTable::current();
};

std::string names_of(const char* op) {
  std::string out;
  for (const Alternative& a : OpTable::current().find(op)->column(kOfCpu)->alternatives) out += a.name + " ";
  return out;
}
std::string chosen(const char* op) { return OpTable::current().find(op)->column(kOfCpu)->now().name; }

void sevens(const KernelCall& c) {
  for (int64_t i = 0; i < c.outs[0].numel(); ++i) c.outs[0].as<double>()[i] = 7;
}

TEST_F(Alternatives, StandBesideAPlugInsThatCameFirst) {
  {
    const ScopedOrigin plug_in("a_plug_in.so");
    OpTable::set("softmax", kOfCpu, {"online", nullptr, sevens});
    OpTable::set("sum", kOfCpu, {"mine", nullptr, sevens});
    OpTable::choose("sum", kOfCpu, "built_in");
  }
  add_alternatives();
  EXPECT_EQ(names_of("softmax"), "built_in online three_pass ");
  EXPECT_EQ(chosen("softmax"), "online") << "what the program chose stays chosen";
  EXPECT_EQ(softmax(f64({1, 2}), 0).to_vector(), (std::vector<double>{7, 7})) << "and is the plug-in's";
  EXPECT_EQ(names_of("sum"), "built_in mine pairwise plain ");
  EXPECT_EQ(chosen("sum"), "built_in");
  const OpTable* const once = &OpTable::current();
  add_alternatives();
  EXPECT_EQ(&OpTable::current(), once) << "nothing is added twice";
}

TEST_F(Alternatives, ArePutBackByName) {
  choose_kernels("test", {"matmul=own", "sum=plain"});
  for (const char* op : {"mm", "bmm", "mv"}) EXPECT_EQ(chosen(op), "own") << op;
  EXPECT_EQ(chosen("sum"), "plain");
  EXPECT_EQ(chosen_kernel("matmul"), "own");
  choose_kernels("test", {"matmul=built_in", "sum=built_in"});
  EXPECT_EQ(chosen("mm") + chosen("sum"), "built_inbuilt_in");
  EXPECT_EQ(kernels_of("copy"), std::vector<std::string>{"built_in"}) << "calls of copy do not run clone's";
  choose_kernels("test", {"copy=plain"});
  EXPECT_EQ(chosen("clone"), "plain") << "but they launch one kernel";
}

/// Two dims of which one is reduced, both, and none; in memory order and across it.
TEST_F(Alternatives, PlainSumsAddInTheOrderOfIndices) {
  choose_kernels("test", {"sum=plain"});
  const Tensor x = to(randn({7, 33}), DType::F32), y = transpose(x, 0, 1);
  const Accessor<float, 2> at(x);
  std::vector<double> rows;
  for (int64_t i = 0; i < 7; ++i) {
    float all = at(i, 0);
    for (int64_t j = 1; j < 33; ++j) all += at(i, j);
    rows.push_back(all);
  }
  EXPECT_EQ(sum(x, IntArg({1})).to_vector(), rows);
  EXPECT_EQ(sum(y, IntArg({0})).to_vector(), rows) << "of columns that lie as rows";
  EXPECT_EQ(sum(contiguous(y), IntArg({0})).to_vector(), rows) << "across memory";
  float all = 0;
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t j = 0; j < 33; ++j) all = i + j == 0 ? at(0, 0) : all + at(i, j);
  EXPECT_EQ(sum(x).item<float>(), all);
}

/// Equal terms round the same way each time: a row of them drifts off, pairs do not.
TEST_F(Alternatives, PairsAreMoreExactThanARow) {
  const Tensor x = full({1 << 20}, 0.1, DType::F32);
  const double exact = double(0.1f) * (1 << 20);
  const auto error = [&](const char* kernel) {
    choose_kernels("test", {std::string("sum=") + kernel});
    return std::abs(sum(x).item<float>() - exact) / exact;
  };
  const double in_pairs = error("pairwise"), in_a_row = error("plain");
  EXPECT_LE(in_pairs, 1e-6);
  EXPECT_GE(in_a_row, 1e-4);
}

TEST_F(Alternatives, SoftmaxInOtherWays) {
  const Tensor x = randn({3, 1500}) * 20;
  const std::vector<double> want = softmax(to(x, DType::F64), 1).to_vector();
  for (const char* kernel : {"softmax=online", "softmax=three_pass"}) {
    choose_kernels("test", {kernel});
    const std::vector<double> got = softmax(x, 1).to_vector();
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 2e-6) << kernel << ", element " << i;
  }
}
}  // namespace
