// Columns and types: which line of NOTE: [columns] serves a call, and what is refused where none does.
#include <cstring>

#include "lamella/core/device_hooks.h"
#include "lamella/dispatch/cells.h"
#include "lamella/dispatch/types.h"
#include "lamella/ops/alternatives.h"
#include "lamella/ops/layout.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/grad.h"
#include "lamella/verify/case/law.h"

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

TEST_F(Columns, KernelsByNameThatAreRefused) {
  const auto choosing = [](const char* text) { return refused([=] { choose_kernels("--kernel", {text}); }); };
  EXPECT_INLINE(choosing("softmax"), R"(
      [usage] --kernel: given = "softmax", expected OPERATOR=NAME of sum: built_in, pairwise, plain; \
      softmax: built_in, online, three_pass; mm: built_in, own, openblas; bmm: built_in, own, openblas; \
      mv: built_in, own, openblas; empty: built_in, at_once; clone: built_in, streaming, plain, memcpy; \
      layer_norm: built_in, one_pass; var: built_in, one_pass)");
  EXPECT_INLINE(choosing("neg=own"), R"(
      [usage] --kernel: neg has no alternatives on the CPU; expected one of sum: built_in, pairwise, \
      plain; softmax: built_in, online, three_pass; mm: built_in, own, openblas; bmm: built_in, own, \
      openblas; mv: built_in, own, openblas; empty: built_in, at_once; clone: built_in, streaming, \
      plain, memcpy; layer_norm: built_in, one_pass; var: built_in, one_pass)");
  EXPECT_INLINE(choosing("softmax=nosuch"), R"(
      [usage] --kernel: softmax has no kernel "nosuch"; expected one of built_in, online, three_pass)");
}

TEST_F(Columns, RulesThatAreRefused) {
  const auto set = [](std::string_view op, int key, std::string_view input = "a") {
    OpTable::set_rules(op, key, linear_in({"a", "b"}), {wrt(input, [](Tensor dy) { return dy; })});
  };
  EXPECT_INLINE(refused([&] { set("mul", 5); }), R"(
      [schema] OpTable::set_rules: key = 5, expected 6 to 14: a type)");
  EXPECT_INLINE(refused([&] { set("nosuch", kFirstTypeKey); }), R"(
      [unknown_operator] OpTable::set_rules: there is no operator "nosuch"; expected one that `lamella \
      ops` lists)");
  EXPECT_INLINE(refused([&] { set("mul_", kFirstTypeKey); }), R"(
      [schema] OpTable::set_rules: mul_ is a form; expected an operator that has derivative rules)");
  EXPECT_INLINE(refused([&] { set("matmul", kFirstTypeKey); }), R"(
      [schema] OpTable::set_rules: matmul is a composite; expected an operator that has derivative rules)");
  EXPECT_INLINE(refused([&] { set("mul", kFirstTypeKey, "c"); }), R"(
      [schema] mul: a rule is given for "c", which is no argument)");
  set("mul", kFirstTypeKey);
  EXPECT_INLINE(refused([&] { set("mul", kFirstTypeKey); }), R"(
      [schema] mul: the library sets its rules for key6, and the library has set them; expected one of \
      them)");
}

TEST_F(Columns, WhatServesAllOperatorsIsSetOnce) {
  EXPECT_INLINE(refused([] { OpTable::set_fallback(int(Device::User1), of_composite); }), R"(
      [schema] OpTable::set_fallback: user1, which no column has taken; expected add_column or add_device \
      first)");
  OpTable::set_fallback(14, of_composite);
  EXPECT_INLINE(refused([] { OpTable::set_fallback(14, of_composite); }), R"(
      [schema] OpTable::set_fallback: the library sets the fallback of key14, and the library has set it; \
      expected one of them)");
  {
    const ScopedOrigin plug_in("other.so");
    EXPECT_INLINE(refused([] { OpTable::set_fallback(14, nullptr); }), R"(
        [schema] OpTable::set_fallback: plug-in "other.so" sets the fallback of key14, and the library has \
        set it; expected one of them)");
  }
  OpTable::set_class(ShapeClass::Reduce, 14, of_composite);
  EXPECT_INLINE(refused([] { OpTable::set_class(ShapeClass::Reduce, 14, of_composite); }), R"(
      [schema] OpTable::set_class: the library sets the cell of key14 for class reduce, and the library has \
      set it; expected one of them)");
}

TEST_F(Columns, ClassesAndTheirCellsAreThere) {
  EXPECT_INLINE(refused([] { OpTable::set_class(ShapeClass(77), 14, of_composite); }), R"(
      [schema] OpTable::set_class: shape = ShapeClass(77); expected one of broadcast to other)");
  EXPECT_INLINE(refused([] { OpTable::set_class(ShapeClass::Reduce, 14, nullptr); }), R"(
      [schema] OpTable::set_class: the cell of key14 for class reduce is null; expected a function)");
  OpTable::set_class(ShapeClass::Reduce, 14, of_composite);
}

TEST_F(Columns, TheLibrarysOwnNameIsTaken) {
  EXPECT_INLINE(refused([] {
                  OpTable::set("neg", int(Device::CPU), {"built_in", of_composite});
                }),
                R"(
      [schema] neg: an alternative for cpu is named "built_in", as what the library has there; expected \
      another name)");
}

OpDef replacing(std::string_view schema) {
  return {.schema = schema,
          .shape = ShapeClass::Composite,
          .composite = [](Frame& f) { f.results[0] = sin(f.tensor(0)); },
          .jvp = not_differentiable("a test's"),
          .vjp = not_differentiable("a test's"),
          .properties = kTestOnly,
          .samples = nullptr,
          .doc = "sin."};
}

/// Compiled calls hand over arguments of the old one.
TEST_F(Columns, WhatReplacesAnOperatorIsCalledLikeIt) {
  EXPECT_INLINE(refused([] { OpTable::replace(replacing("cos_(Tensor x) -> Tensor")); }), R"(
      [schema] cos_: it would be an operator of its own where the library has a form of cos; expected \
      another name)");
  EXPECT_INLINE(refused([] { OpTable::replace(replacing("exp(Tensor x, Tensor y) -> Tensor")); }), R"(
      [schema] exp: its schema exp(Tensor x) -> Tensor is replaced by exp(Tensor x, Tensor y) -> \
      Tensor, and compiled calls hand over what it says; expected parameters and results of these kinds)");
  EXPECT_INLINE(refused([] { OpTable::replace(replacing("exp(Tensor? x) -> Tensor")); }), R"(
      [schema] exp: its schema exp(Tensor x) -> Tensor is replaced by exp(Tensor? x) -> Tensor, and \
      compiled calls hand over what it says; expected parameters and results of these kinds)");
  OpTable::add(replacing("column_own_(Tensor x) -> Tensor"));
  EXPECT_INLINE(refused([] { OpTable::replace(replacing("column_own(Tensor x) -> Tensor")); }), R"(
      [schema] column_own_: it would be a form of column_own where the library has an operator of its \
      own; expected another name)");
  OpTable::replace(replacing("column_own_(Tensor x, Tensor y) -> Tensor"));  // nobody calls it by position
  OpTable::replace(replacing("exp(Tensor x) -> Tensor"));
  EXPECT_EQ(exp(zeros({1})).to_vector(), (std::vector<double>{0}));
}

TEST_F(Columns, BeneathAClassThereIsNothing) {
  OpTable::set_class(ShapeClass::AlongDim, int(Device::CPU),
                     [](Frame& f, int key) { call_built_in(f, key); });
  EXPECT_INLINE(refused([] {
                  call("cumsum", {ones({2}), int64_t{0}, {}});
                }),
                R"(
      [usage] cumsum: call_built_in: no cell of the operator's own runs for cpu; expected a call from one)");
  OpTable::set("cumsum", int(Device::CPU), {"mine", [](Frame& f, int key) { call_built_in(f, key); }});
  EXPECT_INLINE(refused([] {
                  call("cumsum", {ones({2}), int64_t{0}, {}});
                }),
                R"(
      [usage] cumsum: call_built_in: no cell of the operator's own runs for cpu; expected a call from one)");
}

/// Nothing is registered: both are refused, and a law cannot be taken back.
TEST_F(Columns, ALawsNumberAndIdAreItsOwn) {
  const auto adds = [](int number, std::string_view id) {
    const ScopedOrigin plug_in("a_plug_in.so");
    verify::add_law({.number = number,
                     .id = id,
                     .group = "value",
                     .statement = "Nothing is wrong.",
                     .applies = [](const Op&) { return true; },
                     .check = [](verify::Case&) { return verify::Verdict::pass(); }});
  };
  EXPECT_INLINE(refused([&] { adds(54, "mine"); }), R"(
      [schema] add_law: plug-in "a_plug_in.so" adds "mine" of number 54, and the library has \
      "table_is_a_map" of number 54; expected another number)");
  EXPECT_INLINE(refused([&] { adds(1999, "table_is_a_map"); }), R"(
      [schema] add_law: plug-in "a_plug_in.so" adds "table_is_a_map" of number 1999, and the library has \
      "table_is_a_map" of number 54; expected another id)");
}

/// A device whose memory the host could read.
constexpr auto copy_on_host = [](void* to, const void* from, size_t n) { std::memcpy(to, from, n); };
constexpr DeviceHooks kHostMemory{
    .allocate = [](size_t n) { return std::aligned_alloc(64, (n + 63) / 64 * 64); },
    .free = [](void* p, size_t) { std::free(p); },
    .copy_to = copy_on_host,
    .copy_from = copy_on_host,
    .copy_within = copy_on_host};

TEST_F(Columns, AKernelThatALaunchLacksIsNamed) {
  OpTable::add_device(Device::User0, kHostMemory);
  OpTable::set("clamp", int(Device::User0), {"mine", nullptr, twice});
  const Tensor x = make_tensor(Dims{2}, DType::F64, Device::User0);
  EXPECT_INLINE(refused([&] { clamp(x, x, x); }), R"(
      [no_kernel] clamp: a kernel that it runs is missing for its device; expected a cell of that \
      device's own, or tensors on the CPU)");
  EXPECT_INLINE(refused([&] { add(x, x); }), R"(
      [no_kernel] add: no kernel for key user0 with arguments (f64[2], f64[2], 1))");
}

TEST_F(Columns, Layouts) {
  (void)verify::laws();  // one of which brings a type, in this process or before
  EXPECT_INLINE(refused([] { layout_of(Tensor()); }), R"(
      [undefined] layout_of: x is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([] { to_layout(ones({2}), "nosuch"); }), R"(
      [value] to_layout: layout = "nosuch", expected one of strided, verify.box)");
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
      [schema] add_tensor_type: the library adds "first", and the library has a type of this name; \
      expected another one)");
  EXPECT_INLINE(refused([&] { add_tensor_type({.name = "", .handle = declines}); }), R"(
      [schema] add_tensor_type: the type has no name; expected one)");
  EXPECT_INLINE(refused([&] { add_tensor_type({.name = "third"}); }), R"(
      [schema] add_tensor_type: "third" has neither handle nor to_strided; expected one at least)");
  const Tensor leaf = requires_grad(a);
  EXPECT_TRUE(is_leaf(leaf) && layout_of(leaf) == "first");
}

/// They were bits of other keys, or beyond all: internal errors, and reads of tensors that have no elements.
TEST_F(Columns, LayoutsAreOfATypesKey) {
  const auto made = [](Ref<TensorLayout> layout) {
    return refused([&] { make_of_layout(Dims{2}, DType::F64, Device::CPU, std::move(layout)); });
  };
  EXPECT_INLINE(made({}), R"(
      [usage] make_of_layout: layout is null; expected one of a type)");
  EXPECT_INLINE(made(Ref<TensorLayout>::adopt(new Opaque(15))), R"(
      [schema] make_of_layout: layout is of key 15, expected 6 to 14: a type's)");
  EXPECT_INLINE(made(Ref<TensorLayout>::adopt(new Opaque(0))), R"(
      [schema] make_of_layout: layout is of key 0, expected 6 to 14: a type's)");
  EXPECT_INLINE(made(Ref<TensorLayout>::adopt(new Opaque(77))), R"(
      [schema] make_of_layout: layout is of key 77, expected 6 to 14: a type's)");
  EXPECT_INLINE(
      refused([] { add_tensor_type({.name = "strided", .handle = [](Frame&, int) { return false; }}); }),
      R"(
      [schema] add_tensor_type: "strided" is what tensors without a type are called; expected another \
      name)");
}

/// Levels and in-place forms crashed.
TEST_F(Columns, CellsGiveResults) {
  OpTable::set("neg", int(Device::CPU), {"none", [](Frame&, int) {}});
  const Tensor x = ones({2});
  EXPECT_INLINE(refused([&] { neg(x); }), R"(
      [undefined] neg: what serves it for cpu left result 0 undefined; expected a tensor)");
  EXPECT_INLINE(refused([&] { neg_(x); }), R"(
      [undefined] neg: what serves it for cpu left result 0 undefined; expected a tensor)");
  EXPECT_INLINE(refused([&] { grad([](const Tensor& t) { return sum(neg(t)); })(x); }), R"(
      [undefined] neg: what serves it for cpu left result 0 undefined; expected a tensor
        under: grad#1)");
  const int idle = add_tensor_type({.name = "idle", .handle = [](Frame&, int) { return true; }});
  EXPECT_INLINE(refused([&] { neg(opaque(idle)); }), R"(
      [undefined] neg: what serves it for idle left result 0 undefined; expected a tensor)");
}

int wrong = 0;  // what the next type's functions give instead
int key_of_wrong = -1;
Tensor strided_wrongly(const Tensor& t) {
  return wrong == 1 ? Tensor() : wrong == 2 ? t : wrong == 3 ? ones({3}, t.dtype()) : ones({2}, DType::F32);
}
Tensor laid_out_wrongly(const Tensor& t) {
  return wrong == 1   ? Tensor()
         : wrong == 2 ? t
         : wrong == 3 ? opaque(key_of_wrong)
                      : opaque(key_of_wrong - 1);
}

/// Results had other sizes or dtypes, the written tensor another type, or the program crashed.
TEST_F(Columns, ATypesFunctionsGiveTheSameTensor) {
  const auto declines = [](Frame&, int) { return false; };
  add_tensor_type({.name = "none", .handle = declines});
  key_of_wrong =
      add_tensor_type({.name = "wrong", .to_strided = strided_wrongly, .from_strided = laid_out_wrongly});
  const auto strided = [](int how) { return refused([how] { wrong = how, neg(opaque(key_of_wrong)); }); };
  const auto laid_out = [](int how, const Tensor& x) {
    return refused([how, &x] { wrong = how, to_layout(x, "wrong"); });
  };
  EXPECT_INLINE(strided(1), R"(
      [value] wrong: to_strided of f64[2] gave undefined; expected an ordinary tensor of its sizes and \
      dtype)");
  EXPECT_INLINE(strided(2), R"(
      [value] wrong: to_strided of f64[2] gave f64[2]; expected an ordinary tensor of its sizes and \
      dtype)");
  EXPECT_INLINE(strided(3), R"(
      [value] wrong: to_strided of f64[2] gave f64[3]; expected an ordinary tensor of its sizes and \
      dtype)");
  EXPECT_INLINE(strided(4), R"(
      [value] wrong: to_strided of f64[2] gave f32[2]; expected an ordinary tensor of its sizes and \
      dtype)");
  const Tensor x = ones({2}, DType::F64);
  EXPECT_INLINE(laid_out(1, x), R"(
      [value] wrong: from_strided of f64[2] gave undefined; expected a tensor of the type, of its sizes \
      and dtype)");
  EXPECT_INLINE(laid_out(2, x), R"(
      [value] wrong: from_strided of f64[2] gave f64[2]; expected a tensor of the type, of its sizes \
      and dtype)");
  EXPECT_INLINE(laid_out(3, ones({3}, DType::F64)), R"(
      [value] wrong: from_strided of f64[3] gave f64[2]; expected a tensor of the type, of its sizes \
      and dtype)");
  EXPECT_INLINE(laid_out(4, x), R"(
      [value] wrong: from_strided of f64[2] gave f64[2]; expected a tensor of the type, of its sizes \
      and dtype)");
  wrong = 3;
  EXPECT_EQ(layout_of(to_layout(x, "wrong")), "wrong");
}

/// It was refused, and yet there from then on: without a fallback, under a name that was taken.
TEST_F(Columns, ATypePassesByKeysThatOthersServe) {
  const auto declines = [](Frame&, int) { return false; };
  const int before = add_tensor_type({.name = "one before", .handle = declines});
  OpTable::set_fallback(before + 1, fall_through);
  EXPECT_EQ(add_tensor_type({.name = "one behind", .handle = declines}), before + 2);
}
}  // namespace
