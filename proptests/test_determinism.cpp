// Kernels that vary: refused, replaced or told of where determinism is asked for.
#include <gtest/gtest.h>
#include <thread>

#include "lamella/dispatch/determinism.h"
#include "lamella/dispatch/table.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;

const int kCpu = int(Device::CPU);

std::vector<std::string> told;

/// Registered in a test, gone behind it.
class Varying : public testing::Test {
 protected:
  Varying() {
    told.clear(), watch_varying([](const std::string& text) { told.push_back(text); });
  }
  ~Varying() override {
    watch_varying(nullptr);
    OpTable::take_back(before_);
  }
  const OpTable* before_ = &OpTable::current();
};

/// Another result each time.
void counts_up(const KernelCall& c) {
  static double calls = 100;
  ++calls;
  for (int64_t i = 0; i < c.outs[0].numel(); ++i) c.outs[0].as<double>()[i] = calls;
}
void counts_up_cell(Frame& f, int) {
  static double calls = 100;
  f.results[0] = f64({++calls});
}
double negated() { return neg(f64({5})).to_vector()[0]; }
Alternative varying(std::string instead) {
  return {.name = "atomic", .kernel = counts_up, .varies = true, .instead = std::move(instead)};
}
const char* const kRefused =
    "no_kernel: neg: kernel \"atomic\" for cpu may give other bits each time it is called; expected one that "
    "repeats: determinism is required";

TEST_F(Varying, RunsWhereItMay) {
  OpTable::set("neg", kCpu, varying(""));
  EXPECT_NE(negated(), negated());
  const Deterministic off(false);
  EXPECT_NE(negated(), negated());
  EXPECT_TRUE(told.empty());
}

TEST_F(Varying, IsRefusedWhereNothingStandsIn) {
  OpTable::set("neg", kCpu, varying(""));
  const Deterministic on(true);
  EXPECT_EQ(first_line(refusal([] { negated(); })), kRefused);
  const Tensor x = f64({5});
  EXPECT_NE(refusal([&] { neg_(x); }).find("may give other bits"), std::string::npos);
  EXPECT_EQ(x.to_vector(), std::vector<double>{5});
  EXPECT_NE(refusal([] {
              vmap([](const Tensor& y) { return neg(y); })(f64({1, 2}));
            }).find("under: vmap#1"),
            std::string::npos);
  {
    const Deterministic off(false);
    EXPECT_GT(negated(), 100);
  }
  EXPECT_EQ(first_line(refusal([] { negated(); })), kRefused);
  EXPECT_TRUE(only_varies(*OpTable::current().find("neg"), kCpu));
  EXPECT_TRUE(only_varies(*OpTable::current().find("neg_"), kCpu));
  EXPECT_FALSE(only_varies(*OpTable::current().find("abs"), kCpu));
}

TEST_F(Varying, IsReplacedByWhatItNames) {
  OpTable::set("neg", kCpu, varying("built_in"));
  EXPECT_GT(negated(), 100);
  const Deterministic on(true);
  EXPECT_EQ(negated(), -5);
  const Tensor x = f64({5}), out = f64({0});
  neg_(x), neg_out(out, x);
  EXPECT_EQ(x.to_vector(), std::vector<double>{-5});
  EXPECT_EQ(out.to_vector(), std::vector<double>{5});
  EXPECT_EQ(vmap([](const Tensor& y) { return neg(y); })(f64({1, 2})).to_vector(),
            (std::vector<double>{-1, -2}));
  const Tensor leaf = requires_grad(f64({3}));
  backward(sum(neg(leaf)));
  EXPECT_EQ(grad_of(leaf).to_vector(), std::vector<double>{-1});
}

TEST_F(Varying, CellsVaryAsKernelsDo) {
  OpTable::set("neg", kCpu, {.name = "steady", .cell = [](Frame& f, int) { f.results[0] = f64({7}); }});
  OpTable::set("neg", kCpu, {.name = "atomic", .cell = counts_up_cell, .varies = true, .instead = "steady"});
  EXPECT_NE(negated(), negated());
  const Deterministic on(true);
  EXPECT_EQ(negated(), 7);
  const Tensor x = f64({5});
  neg_(x);
  EXPECT_EQ(x.to_vector(), std::vector<double>{7});
}

TEST_F(Varying, IsToldOfWhereThatIsAsked) {
  OpTable::set("neg", kCpu, varying("built_in"));
  const Deterministic warned(Determinism::Warned);
  EXPECT_GT(negated(), 100);
  EXPECT_EQ(told, std::vector<std::string>{
                      "neg: kernel \"atomic\" for cpu may give other bits each time it is called"});
}

TEST_F(Varying, AChosenOneThatRepeatsIsFree) {
  OpTable::set("neg", kCpu, varying(""));
  OpTable::choose("neg", kCpu, "built_in");
  const Deterministic on(true);
  EXPECT_EQ(negated(), -5);
}

TEST_F(Varying, CapturedStatesCarryIt) {
  OpTable::set("neg", kCpu, varying("built_in"));
  double plain = 0, captured = 0;
  const Deterministic on(true);
  const DispatchState::Captured state = DispatchState::capture();
  std::thread([&] {
    plain = negated();
    const ScopedState acting(state);
    captured = negated();
  }).join();
  EXPECT_GT(plain, 100);
  EXPECT_EQ(captured, -5);
}

TEST_F(Varying, WhatStandsInIsThereAndRepeats) {
  const auto set = [](Alternative a) { return first_line(refusal([&] { OpTable::set("neg", kCpu, a); })); };
  EXPECT_EQ(
      set(varying("nothing")),
      "schema: neg: alternative \"atomic\" for cpu names \"nothing\" instead; expected one of the column "
      "that does not vary");
  Alternative steady = varying("built_in");
  steady.varies = false;
  EXPECT_EQ(
      set(steady),
      "schema: neg: alternative \"atomic\" for cpu names another one instead; expected one that varies");
  EXPECT_EQ(first_line(refusal([] {
              OpTable::set("neg", kAutogradKey, {.name = "odd", .cell = counts_up_cell, .varies = true});
            })),
            "schema: neg: alternative \"odd\" for autograd varies; expected a key below it");
}

}  // namespace
