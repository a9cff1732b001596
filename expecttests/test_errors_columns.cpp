// Columns and types: which line of NOTE: [columns] serves a call, and what is refused where none does.
#include "lamella/dispatch/cells.h"
#include "lamella/dispatch/types.h"
#include "lamella/ops/layout.h"
#include "lamella/transforms/autograd.h"

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

int explicit_runs = 0;
void of_composite(Frame& f, int) {
  ++explicit_runs;
  f.op->composite(f);
}

/// Registered in a test, gone behind it.
class Columns : public testing::Test {
 protected:
  ~Columns() override { OpTable::take_back(before_); }
  const OpTable* before_ = &OpTable::current();
};

TEST_F(Columns, ACompositeOfAKeysOwnRunsBeforeItIsTakenApart) {
  const Tensor x = ones({2, 3});
  OpTable::set("layer_norm", int(Device::CPU), {"mine", of_composite});
  explicit_runs = 0;
  call("layer_norm", {x, Dims{3}});
  EXPECT_EQ(explicit_runs, 1);
  EXPECT_EQ(OpTable::current().find("layer_norm")->served[int(Device::CPU)], Served::Explicit);
  OpTable::choose("layer_norm", int(Device::CPU), "built_in");
  call("layer_norm", {x, Dims{3}});
  EXPECT_EQ(explicit_runs, 1);
  EXPECT_EQ(OpTable::current().find("layer_norm")->served[int(Device::CPU)], Served::Decompose);
  const Tensor out = zeros({2, 3});
  OpTable::choose("layer_norm", int(Device::CPU), "mine");
  call("layer_norm_out", {out, x, Dims{3}});
  EXPECT_EQ(explicit_runs, 2) << "its forms write what it gives";
}

void twice(const KernelCall& c) {
  for (int64_t i = 0; i < c.outs[0].numel(); ++i) c.outs[0].as<double>()[i] = 2 * c.ins[0].as<double>()[i];
}

TEST_F(Columns, AKernelTakesTheStraightRunsPlace) {
  const Tensor x = tensor_of({2}, {1, 3}, DType::F64);
  OpTable::set("neg", int(Device::CPU), {"twice", nullptr, twice});
  EXPECT_EQ(neg(x).to_vector(), (std::vector<double>{2, 6}));
  EXPECT_EQ(neg_(clone(x)).to_vector(), (std::vector<double>{2, 6}));
  OpTable::choose("neg", int(Device::CPU), "built_in");
  EXPECT_EQ(neg(x).to_vector(), (std::vector<double>{-1, -3}));
}

TEST_F(Columns, WhatIsRefused) {
  const int cpu = int(Device::CPU);
  EXPECT_INLINE(refused([&] {
                  OpTable::set("nosuch", cpu, {"a", of_composite});
                }),
                R"(
      [unknown_operator] OpTable::set: there is no operator "nosuch"; expected one that `lamella ops` \
      lists)");
  EXPECT_INLINE(refused([&] {
                  OpTable::set("add_", cpu, {"a", of_composite});
                }),
                R"(
      [schema] OpTable::set: add_ is a form of add; register for that, its forms write what it gives)");
  EXPECT_INLINE(refused([&] {
                  OpTable::set("add", 20, {"a", of_composite});
                }),
                R"(
      [schema] OpTable::set: key = 20, expected 0 to 15: a device, a layout or a type, or base autograd)");
  EXPECT_INLINE(refused([&] { OpTable::set("add", cpu, {"a"}); }), R"(
      [schema] add: alternative "a" for cpu has neither a cell nor a kernel; expected a cell or a kernel)");
  EXPECT_INLINE(refused([&] {
                  OpTable::set("add", cpu, {"", of_composite});
                }),
                R"(
      [schema] add: an alternative for cpu has no name)");
  EXPECT_INLINE(refused([&] {
                  OpTable::set("view", cpu, {"a", nullptr, twice});
                }),
                R"(
      [schema] view: alternative "a" for cpu is a kernel, but the operator is a view; expected a cell)");
  EXPECT_INLINE(refused([&] {
                  OpTable::set("add", int(Device::Meta), {"a", nullptr, twice});
                }),
                R"(
      [schema] add: alternative "a" is a kernel for meta; expected a cell, or the key of a device with \
      memory)");
  EXPECT_INLINE(refused([&] { OpTable::choose("add", cpu, "a"); }), R"(
      [schema] add: cpu has no alternatives, got "a"; expected built_in)");
  OpTable::set("add", cpu, {"a", of_composite});
  EXPECT_INLINE(refused([&] {
                  OpTable::set("add", cpu, {"a", of_composite});
                }),
                R"(
      [schema] add: the library sets its cell for cpu to "a", and the library has set it to "a"; \
      expected one of them)");
  EXPECT_INLINE(refused([&] { OpTable::choose("add", cpu, "b"); }), R"(
      [schema] add: cpu has no alternative "b"; expected one of built_in, a)");
}

TEST_F(Columns, AKernelThatALaunchLacksIsNamed) {
  OpTable::add_column(Device::User0, "a_test");
  OpTable::set("clamp", int(Device::User0), {"mine", nullptr, twice});
  const Tensor x = make_tensor(Dims{2}, DType::F64, Device::User0);
  EXPECT_INLINE(refused([&] { clamp(x, x, x); }), R"(
      [no_kernel] clamp: a kernel that it runs is missing for its device; expected a cell of that \
      device's own, or tensors on the CPU)");
  EXPECT_INLINE(refused([&] { add(x, x); }), R"(
      [no_kernel] add: no kernel for key user0 with arguments (f64[2], f64[2], 1))");
}

TEST_F(Columns, Layouts) {
  EXPECT_INLINE(refused([] { layout_of(Tensor()); }), R"(
      [undefined] layout_of: the tensor is undefined; expected a defined one)");
  EXPECT_INLINE(refused([] { to_layout(ones({2}), "nosuch"); }), R"(
      [value] to_layout: layout = "nosuch", expected one of strided)");
  EXPECT_EQ(layout_of(ones({2})), "strided");
}

/// A type that takes nothing and has no strided values.
struct Opaque : TensorLayout {
  using TensorLayout::TensorLayout;
  std::string str() const override { return " of nothing"; }
};
Tensor opaque(int key) {
  return make_of_layout(Dims{2}, DType::F64, Device::CPU, Ref<TensorLayout>::adopt(new Opaque(key)));
}

TEST(Types, ThoseThatDeclineAreNamed) {
  const auto declines = [](Frame&, int) { return false; };
  const int first = add_tensor_type({.name = "first", .handle = declines});
  const int second = add_tensor_type({.name = "second", .handle = declines, .derives_from = first});
  EXPECT_TRUE(is_derived(second, first));
  EXPECT_FALSE(is_derived(first, second));
  EXPECT_EQ(find_tensor_type("second"), second);
  const Tensor a = opaque(first), b = opaque(second);
  EXPECT_INLINE(refused([&] { add(a, b); }), R"(
      [no_kernel] add: no type of its arguments takes the call: second, first; expected one that does)");
  EXPECT_INLINE(str(b), R"(f64[2] of nothing)");
  EXPECT_EQ(layout_of(b), "second");
  EXPECT_INLINE(refused([&] { add_tensor_type({.name = "first", .handle = declines}); }), R"(
      [schema] add_tensor_type: there is a type "first" already; expected another name)");
  EXPECT_INLINE(refused([&] { add_tensor_type({.name = "third"}); }), R"(
      [schema] add_tensor_type: "third" has neither handle nor to_strided; expected one at least)");
  const Tensor leaf = requires_grad(a);
  EXPECT_TRUE(is_leaf(leaf) && layout_of(leaf) == "first");
}
}  // namespace
