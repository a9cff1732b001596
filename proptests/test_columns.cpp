// Columns: named alternatives, keys that let calls through, modes that take composites whole, rules by type.
#include <gtest/gtest.h>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/types.h"
#include "lamella/ops/layout.h"

#include "support.h"

namespace {
using namespace lamella;
using namespace lamella::tests;

const int kCpu = int(Device::CPU);

/// Registered in a test, gone behind it.
class Columns : public testing::Test {
 protected:
  ~Columns() override { OpTable::take_back(before_); }
  const OpTable* before_ = &OpTable::current();
};

void twice(const KernelCall& c) {
  for (int64_t i = 0; i < c.outs[0].numel(); ++i) c.outs[0].as<double>()[i] = 2 * c.ins[0].as<double>()[i];
}
void thrice(Frame& f, int key) {
  call_built_in(f, key);
  f.results[0] = f.results[0] * -3;
}

TEST_F(Columns, AlternativesHaveNamesAndOneRuns) {
  OpTable::set("neg", kCpu, {"twice", nullptr, twice});
  OpTable::set("neg", kCpu, {"thrice", thrice});
  const auto now = [] { return neg(f64({5})).to_vector()[0]; };
  EXPECT_EQ(now(), 15) << "the last one that was set; what it builds on is the library's, not the other's";
  OpTable::choose("neg", kCpu, "twice");
  EXPECT_EQ(now(), 10);
  OpTable::choose("neg", kCpu, "built_in");
  EXPECT_EQ(now(), -5);
  OpTable::choose("neg", kCpu, "thrice");
  EXPECT_EQ(now(), 15);
  std::string names;
  for (const Alternative& a : OpTable::current().find("neg")->column(kCpu)->alternatives)
    names += a.name + " ";
  EXPECT_EQ(names, "built_in twice thrice ");
}

/// The library's short way for `empty` stands in nobody's way, and goes with its row.
TEST_F(Columns, AShortWayBelongsToItsRow) {
  {
    const ScopedOrigin plug_in("a_plug_in.so");
    OpTable::set("empty", kCpu, {"sevens", [](Frame& f, int) { f.results[0] = f64({7}); }});
  }
  EXPECT_EQ(empty({2}).to_vector(), std::vector<double>{7});
  OpTable::take_back(before_);
  const Op& row = *OpTable::current().find("empty");
  OpTable::replace({.schema = "empty(Size size, *, DType? dtype=None, Device? device=None) -> Tensor",
                    .shape = ShapeClass::Factory,
                    .composite =
                        [](Frame& f) {
                          f.results[0] = f64({1, 2, 3});
                        },
                    .jvp = not_differentiable("it is three numbers"),
                    .vjp = not_differentiable("it is three numbers"),
                    .samples = row.samples,
                    .doc = "Three numbers."});
  EXPECT_EQ(empty({2}).numel(), 3);
}

/// What somebody brought for a device does not see calls that name another one, and its forms are forms.
TEST_F(Columns, ACellIsOfItsDeviceAlone) {
  OpTable::set("zeros_like", kCpu, {"sevens", [](Frame& f, int) { f.results[0] = f64({7}); }});
  EXPECT_EQ(zeros_like(f64({1, 2})).to_vector(), std::vector<double>{7});
  EXPECT_EQ(zeros_like(f64({1, 2}), {}, Device::Reference).device(), Device::Reference);
}

int recorded = 0;
TEST_F(Columns, ACellForBaseAutogradStandsBeforeItsOwn) {
  recorded = 0;
  OpTable::set("exp", kAutogradKey, {"counted", [](Frame& f, int key) {
                                       ++recorded;
                                       call_built_in(f, key);
                                     }});
  const Tensor x = requires_grad(f64({0, 0}));
  backward(sum(exp(x)));
  EXPECT_EQ(grad_of(x).to_vector(), (std::vector<double>{1, 1}));
  EXPECT_EQ(recorded, 1);
  exp(f64({0}));
  EXPECT_EQ(recorded, 1) << "plain calls do not reach the key";
  OpTable::set("exp", kAutogradKey, {"constant", [](Frame& f, int) { f.results[0] = f64({7, 7}); }});
  const Tensor y = x * 1;
  exp_(y);
  EXPECT_EQ(y.to_vector(), (std::vector<double>{7, 7})) << "forms write what the functional cell gives";
}

int cell_runs = 0;
void reads_memory(Frame& f, int) {
  ++cell_runs;
  const Tensor& x = f.tensor(0);
  const Tensor y = make_tensor(x.sizes(), x.dtype());
  for (int64_t i = 0; i < x.numel(); ++i) y.data<double>()[i] = 100 + x.data<double>()[i];
  f.results[0] = y;
}

/// What a class's cells see to themselves is done for a cell that somebody brings.
TEST_F(Columns, ACellNeverSeesWhatItCouldNotRead) {
  OpTable::set("layer_norm", kCpu, {"reads", reads_memory});
  cell_runs = 0;
  call("layer_norm", {f64({1}), Dims{1}, {}, {}, 0.5});
  EXPECT_EQ(cell_runs, 1);
  const Op& op = *OpTable::current().find("layer_norm");
  EXPECT_REFUSED(call_boxed(op, {Tensor(), Dims{1}, {}, {}, 0.5}), "undefined: layer_norm: argument \"x\"");
  const Tensor elsewhere = make_tensor(Dims{1}, DType::F64, Device::Meta);
  EXPECT_REFUSED(call("layer_norm", {f64({1}), Dims{1}, elsewhere}), "device");
  EXPECT_EQ(cell_runs, 1);
}

/// NOTE: [late histories]: derivatives that came after the view was made are not lost.
TEST_F(Columns, ACellNeverHidesALateHistory) {
  for (const char* op : {"softmax", "layer_norm"}) OpTable::set(op, kCpu, {"reads", reads_memory});
  const Tensor x = requires_grad(f64({1, 2})), base = f64({0, 0}), shown = permute(base, Dims{0});
  copy_(base, x);
  cell_runs = 0;
  EXPECT_TRUE(is_grad_required(call("softmax", {shown, int64_t{0}})[0]));
  EXPECT_EQ(cell_runs, 1) << "below base autograd";
  EXPECT_TRUE(is_grad_required(call("layer_norm", {shown, Dims{2}})[0]));
  EXPECT_EQ(cell_runs, 1) << "which takes composites apart";
}

/// Nor do cells that somebody brings for a whole class; forms write what they give.
TEST_F(Columns, ACellOfAClassIsHeldToTheSame) {
  OpTable::set_class(ShapeClass::AlongDim, kCpu, reads_memory);
  cell_runs = 0;
  EXPECT_EQ(call("cumsum", {f64({1, 2}), int64_t{0}})[0].to_vector(), (std::vector<double>{101, 102}));
  const Tensor out = f64({0, 0});
  call("cumsum_out", {out, f64({1, 2}), int64_t{0}});
  EXPECT_EQ(out.to_vector(), (std::vector<double>{101, 102}));
  EXPECT_EQ(cell_runs, 2);
  EXPECT_REFUSED(call_boxed(*OpTable::current().find("cumsum"), {Tensor(), int64_t{0}, {}}),
                 "undefined: cumsum: argument \"x\"");
  const Tensor x = requires_grad(f64({1, 2})), base = f64({0, 0}), shown = permute(base, Dims{0});
  copy_(base, x);
  EXPECT_TRUE(is_grad_required(call("cumsum", {shown, int64_t{0}})[0]));
  EXPECT_EQ(cell_runs, 3) << "below base autograd";
  OpTable::set("cumsum", kCpu, {"mine", [](Frame& f, int key) { call_built_in(f, key); }});
  call("cumsum", {f64({1, 2}), int64_t{0}});
  EXPECT_EQ(cell_runs, 4) << "beneath a cell of the operator's own";
}

/// Neither does the definition of a composite, on the oracle's device.
TEST(LateHistories, AreSeenByDefinitions) {
  const auto there = [](const Tensor& t) { return to_device(t, Device::Reference); };
  const Tensor x = requires_grad(there(f64({1, 2}))), base = there(f64({0, 0}));
  const Tensor shown = permute(base, Dims{0});
  copy_(base, x);
  EXPECT_TRUE(is_grad_required(call("layer_norm", {shown, Dims{2}})[0]));
  EXPECT_TRUE(is_grad_required(mean(shown)));
}

/// Counts products; its own matmul gives ones.
class OwnProduct final : public Transform {
 public:
  explicit OwnProduct(bool whole) { takes_composites = whole; }
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "own_product"; }
  void call(Frame& frame, int key) override {
    seen += frame.op->name + " ";
    const Below below(key);
    if (frame.op->name != "matmul") return lamella::call(frame);
    frame.results[0] = ones({frame.tensor(0).size(0), frame.tensor(1).size(1)}, frame.tensor(0).dtype());
  }
  std::string seen;
};

TEST(Modes, TakeCompositesWholeIfTheyAsk) {
  const Tensor a = f64({1, 2}, {3, 4}), b = f64({2, 1}, {5, 6});
  OwnProduct whole(true), parts(false);
  {
    const Level level(whole);
    EXPECT_EQ(matmul(a, b).to_vector(), std::vector<double>{1});
    EXPECT_EQ(mm(a, b).to_vector(), std::vector<double>{39});
  }
  EXPECT_EQ(whole.seen, "matmul mm ");
  {
    const Level level(parts);
    EXPECT_EQ(matmul(a, b).to_vector(), std::vector<double>{39});
  }
  EXPECT_EQ(parts.seen, "mm ") << "its body alone";
}

/// The transforms inside take the composite apart first: what reaches the mode is theirs.
TEST(Modes, AreBelowTheTransformsInside) {
  OwnProduct whole(true);
  const Level level(whole);
  const Tensor lanes = f64({2, 1, 2}, {1, 2, 3, 4}), b = f64({2, 1}, {5, 6});
  const Tensor y = vmap([&](const Tensor& a) { return mm(a, b); })(lanes);
  EXPECT_NE(whole.seen.find("matmul"), std::string::npos) << whole.seen;  // mm's batch rule calls it
  EXPECT_EQ(y.numel(), 2);
}

struct Marked : TensorLayout {
  using TensorLayout::TensorLayout;
};
Tensor marked(int key) {
  return make_of_layout(Dims{2}, DType::F64, Device::CPU, Ref<TensorLayout>::adopt(new Marked(key)));
}

int taker = -1;
bool take_all(Frame& f, int) {
  f.results[0] = f64({7, 7});
  return true;
}

/// A key that lets every operator through by its fallback: the next key of the arguments decides.
TEST(Fallbacks, AKeyMayLetEverythingThrough) {
  constexpr int kThrough = 14;
  taker = add_tensor_type({.name = "taker", .handle = take_all});
  const OpTable* const before = &OpTable::current();
  ASSERT_LT(taker, kThrough);
  EXPECT_REFUSED(add(marked(kThrough), marked(taker)), "no_kernel: add: no kernel for key key14");
  OpTable::set_fallback(kThrough, fall_through);
  EXPECT_EQ(add(marked(kThrough), marked(taker)).to_vector(), (std::vector<double>{7, 7}));
  OpTable::set("add", kThrough, {"own", [](Frame& f, int) { f.results[0] = f64({1, 2}); }});
  EXPECT_EQ(add(marked(kThrough), marked(taker)).to_vector(), (std::vector<double>{1, 2}));
  EXPECT_EQ(mul(marked(kThrough), marked(taker)).to_vector(), (std::vector<double>{7, 7}));
  OpTable::take_back(before);
}

int halves = -1;
bool numbers_of_halves(Frame& f, int) {
  FrameCopy values(f);
  for_each_tensor(f, [&](const Tensor& t, int i, int k) {
    if (t.defined() && layout_at<TensorLayout>(t, halves)) values.set(i, k, f64({4, 8}));
  });
  Frame lower = values.into(f.results, f.list);
  call(lower);
  return true;
}

OpDef product(std::string_view schema) {
  const Op& row = *OpTable::current().find("mul");
  return {.schema = schema,
          .shape = ShapeClass::Broadcast,
          .kernel = row.kernel,
          .jvp = linear_in({"a", "b"}),
          .vjp = {wrt("a", saves("b"), [](Tensor dy, Tensor b) { return dy * b; }),
                  wrt("b", saves("a"), [](Tensor dy, Tensor a) { return dy * a; })},
          .samples = row.samples,
          .doc = "The product."};
}

/// The type's formula where it is among the arguments, at every level; the row's own elsewhere.
TEST(Rules, ATypeHasItsOwn) {
  halves = add_tensor_type({.name = "halves", .handle = numbers_of_halves});
  const OpTable* const before = &OpTable::current();
  OpTable::set_rules("mul", halves, linear_in({"a", "b"}),
                     {wrt("a", saves("b"), [](Tensor dy, Tensor) { return dy * 1000; }),
                      wrt("b", saves("a"), [](Tensor dy, Tensor) { return dy * 2000; })});
  const Tensor h = marked(halves), x = f64({1, 2});
  const auto f = [&](const Tensor& v) { return sum(v * h); };
  EXPECT_EQ(grad(f)(x).to_vector(), (std::vector<double>{1000, 1000}));
  EXPECT_EQ(grad([&](const Tensor& v) { return sum(h * v); })(x).to_vector(),
            (std::vector<double>{2000, 2000}));
  EXPECT_EQ(grad([](const Tensor& v) { return sum(v * v); })(x).to_vector(), (std::vector<double>{2, 4}));
  const Tensor leaf = requires_grad(x);
  backward(f(leaf));
  EXPECT_EQ(grad_of(leaf).to_vector(), (std::vector<double>{1000, 1000}));
  const Function tangent = [&](const Tensors& v) { return Tensors{v[0] * h}; };
  EXPECT_EQ(jvp(tangent, {x}, {x}).tangents[0].to_vector(), (std::vector<double>{4, 16}));
  const auto written = [&](const Tensor& v) {
    const Tensor w = v * 1;
    mul_(w, h);
    return sum(w);
  };
  EXPECT_EQ(grad(written)(x).to_vector(), (std::vector<double>{1000, 1000})) << "forms run their operator";
  OpTable::replace(product("mul(Tensor a, Tensor b) -> Tensor"));
  EXPECT_EQ(grad(f)(x).to_vector(), (std::vector<double>{1000, 1000})) << "a new row keeps rules of types";
  EXPECT_EQ(grad(written)(x).to_vector(), (std::vector<double>{1000, 1000})) << "and its forms have none";
  EXPECT_REFUSED(OpTable::replace(product("mul(Tensor b, Tensor a) -> Tensor")), "types have rules for it");
  OpTable::take_back(before);
  EXPECT_EQ(grad(f)(x).to_vector(), (std::vector<double>{4, 8})) << "mul's own";
}
}  // namespace
