// Memory that runs out, everywhere: every allocation of blocks and of the standard library is refused once.
#include <gtest/gtest.h>
#include <new>
#include <thread>
#include <utility>

#include "lamella/core/allocation.h"
#include "lamella/ops/all.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/drawn.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

constexpr uint64_t kSweepSeed = 20261121;
constexpr int kSweepCases = 6;

/// The function with one allocation refused: "" when it worked or raised as it should, and left nothing.
Finding refused(const DrawnFunction& s, MemoryTrial::Options options, const Tensors& want) {
  const Snapshot before;
  Finding wrong;
  {
    Tensors ys;
    bool raised = false;
    {
      const MemoryTrial trial(options);
      try {
        ys = s.f(s.xs);
      } catch (const std::bad_alloc&) { raised = true; } catch (const Error& e) {
        raised = true;
        if (e.code() != ErrorCode::OutOfMemory) wrong = raised_by(e, "");
      }
    }
    if (!raised) wrong = disagrees(ys, want, Agreement::Bitwise);
    release(ys);
  }
  if (wrong.empty()) wrong = before.changed();
  if (wrong.empty()) wrong = damaged_memory();
  return wrong;
}

/// What is wrong when each allocation in turn is refused, alone or with all later ones; `asked` counts them.
std::string refused_everywhere(const DrawnFunction& s, const Tensors& want, int64_t& asked) {
  {
    const MemoryTrial trial({});
    s.f(s.xs);
    asked = trial.asked();
  }
  for (const bool sticky : {false, true})
    for (int64_t n = 0; n < asked; ++n)
      if (const Finding wrong = refused(s, {.fail_at = n, .sticky = sticky}, want); !wrong.empty())
        return format("allocation {} of {}{} refused: {}\n", n, asked, sticky ? " and all later ones" : "",
                      wrong.text()) +
               s.program;
  return "";
}

class OutOfMemoryTest : public testing::Test {
 public:
  explicit OutOfMemoryTest(const Op& op) : op_(op) {}
  void TestBody() override {
    const Law& law = *find_law("out_of_memory");
    for (int i = 0; i < kSweepCases && !HasFailure(); ++i) {
      const Choices choices = choices_of(kSweepSeed, law, op_, uint64_t(i));
      Case c(op_, choices, law.options);
      const std::optional<DrawnFunction> s = draw_function(c);
      Tensors want;
      int64_t asked = 0;
      if (!s || status_of([&] { want = s->f(s->xs); }).raised) continue;
      EXPECT_EQ(refused_everywhere(*s, want, asked), "");
    }
  }

 private:
  const Op& op_;
};

[[maybe_unused]] const bool sweeps_added = [] {
  install_operators();  // this runs before main
  for (const Op* op : all_operators())
    if (takes_tensors(*op) && !op->has(kRandom))
      testing::RegisterTest("OutOfMemory", op->name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [op]() -> OutOfMemoryTest* { return new OutOfMemoryTest(*op); });
  return true;
}();

TEST(RefusedMemory, CountsBlocksAndWhatTheStandardLibraryTakes) {
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);
  const ScalarFunction f = [](const Tensors& xs) { return sum(tanh(xs[0])); };
  const DrawnFunction per_lane{vmap(grad(f), VmapOptions{}), {x}, "", 2};
  const Tensors want = per_lane.f({x});
  int64_t asked = 0;
  EXPECT_EQ(refused_everywhere(per_lane, want, asked), "");
  EXPECT_GE(asked, 40);
}

TEST(RefusedMemory, SeesWhatOperatorNewLoses) {
  const Tensor x = tensor_of({3}, {1, 2, 3}, DType::F64);
  const Function loses = [](const Tensors& xs) {
    const auto* kept = new std::vector<int>(10);
    const Tensor y = mul(xs[0], 2.0);
    delete kept;
    return Tensors{y};
  };
  int64_t asked = 0;
  const std::string wrong = refused_everywhere({loses, {x}, "", 0}, loses({x}), asked);
  EXPECT_NE(wrong.find("operator new are alive"), std::string::npos) << wrong;
}

TEST(MemoryStats, CountsSmallTensorsAndTapes) {
  const auto alive = [before = memory_stats()] {
    const MemoryStats now = memory_stats();
    return std::tuple(now.storages - before.storages, now.blocks - before.blocks, now.bytes - before.bytes);
  };
  using Counts = std::tuple<int64_t, int64_t, int64_t>;
  {
    const Tensor small = zeros({2});
    EXPECT_EQ(std::get<1>(alive()), 1);
    const Tensor large = zeros({10000});
    EXPECT_EQ(std::get<0>(alive()), 1);
    EXPECT_EQ(std::get<1>(alive()), 2);
    EXPECT_GE(std::get<2>(alive()), 40000);
    const int64_t untaped = std::get<1>(alive());
    const Tensor y = mul(requires_grad(small), 2.0);
    EXPECT_GE(std::get<1>(alive()), untaped + 3);  // the leaf's node, the call's, the result
  }
  EXPECT_EQ(alive(), Counts(0, 0, 0));
  Tensors many(10000, zeros({2}));
  for (Tensor& t : many) t = zeros({2});
  EXPECT_EQ(std::get<1>(alive()), 10000);
  many.clear();  // more than a pool holds
  EXPECT_EQ(alive(), Counts(0, 0, 0));
  Tensor elsewhere;
  std::thread([&] { elsewhere = zeros({3}); }).join();
  EXPECT_EQ(std::get<1>(alive()), 1);
  std::thread([t = std::exchange(elsewhere, zeros({3}))]() mutable { t = {}; }).join();
  std::thread([t = std::exchange(elsewhere, {})]() mutable { t = {}; }).join();  // given back to this thread
  EXPECT_EQ(alive(), Counts(0, 0, 0));
}

TEST(MemoryTrial, RefusesTheBlockItIsToldTo) {
  const MemoryTrial trial({.fail_at = 1});
  const Tensor first = make_tensor(Dims{2}, DType::F64);
  EXPECT_THROW(make_tensor(Dims{2}, DType::F64), Error);
  EXPECT_NO_THROW(make_tensor(Dims{2}, DType::F64));
  EXPECT_EQ(trial.refused(), 1);
}

TEST(MemoryTrial, FillsFreshMemory) {
  const MemoryTrial trial({.poison = 0x7F});
  const Tensor t = make_tensor(Dims{100}, DType::U8);
  EXPECT_EQ(t.data<uint8_t>()[0], 0x7F);
  EXPECT_EQ(t.data<uint8_t>()[99], 0x7F);
}

TEST(MemoryTrial, SeesWritesBesideABlock) {
  const MemoryTrial trial({});
  Tensor t = make_tensor(Dims{100}, DType::U8);
  EXPECT_EQ(damaged_memory(), "");
  static_cast<volatile uint8_t*>(t.raw_data())[100] = 1;
  EXPECT_NE(damaged_memory(), "");
  static_cast<volatile uint8_t*>(t.raw_data())[100] = 0xFB;
  EXPECT_EQ(damaged_memory(), "");
  static_cast<volatile uint8_t*>(t.raw_data())[-1] = 1;
  t = {};
  EXPECT_NE(damaged_memory(), "");
}

TEST(MemoryTrial, BlocksOutliveIt) {
  const int64_t before = guarded_blocks();
  Tensor kept, large;
  {
    const MemoryTrial trial({});
    kept = tensor_of({2}, {1, 2});
    large = zeros({1000});
  }
  EXPECT_GT(guarded_blocks(), before);
  std::thread([&] { EXPECT_EQ(add(kept, kept).to_vector()[1], 4); }).join();
  std::thread([t = std::move(large)]() mutable { t = {}; }).join();
  kept = make_tensor(Dims{2}, DType::F64);
  EXPECT_EQ(damaged_memory(), "");
}

// Laws that must be seen red: one operator for each way to be wrong.

void copy_but(const Launch& l, int64_t left_out, int64_t beyond) {
  const Tensor x = l.frame.tensor(0);
  auto* out = static_cast<volatile double*>(l.outs[0].raw_data());
  int64_t at = 0;
  each_element(x, [&](int64_t offset) {
    if (at != left_out) out[at] = static_cast<const double*>(x.raw_data())[offset];
    ++at;
  });
  if (beyond) out[x.numel() + beyond - 1] = 0;
}
void leaves_out(const Launch& l) { copy_but(l, l.outs[0].numel() > 8 ? 3 : -1, 0); }
void writes_beyond(const Launch& l) { copy_but(l, -1, l.outs[0].numel() > 8 ? 1 : 0); }

Values sample(Draw& d) { return {d.tensor(d.shape(), d.dtype(mask(DType::F64)))}; }

void loses_memory(Frame& f) {
  const Tensor t = zeros({32}, DType::F64);
  t.impl()->retain();
  f.results[0] = mul(f.tensor(0), 2.0);  // when this fails, nobody gives the count back
  (void)t.impl()->release();
}
void forgets_masks(Frame& f) {
  const uint64_t saved = dispatch_state().exclude;
  dispatch_state().exclude |= KeySet::of(kAutogradKey).bits;
  f.results[0] = mul(f.tensor(0), 2.0);
  dispatch_state().exclude = saved;
}

/// The first failing verdict among `n` cases.
Verdict first_failure(std::string_view law, const char* op, uint64_t n) {
  const Op& row = *OpTable::current().find(op);
  for (uint64_t i = 0; i < n; ++i) {
    Verdict v = run_check(*find_law(law), row, choices_of(kSweepSeed, *find_law(law), row, i));
    if (v.kind == Verdict::Fail) return v;
  }
  return Verdict::pass();
}

void add_wrong(const char* schema, LaunchFn launch, CompositeFn composite) {
  OpTable::replace({.schema = schema,
                    .shape = composite ? ShapeClass::Composite : ShapeClass::Other,
                    .infer = composite ? nullptr : ops::infer_same,
                    .launch = launch,
                    .composite = composite,
                    .jvp = not_differentiable("a planted bug"),
                    .vjp = not_differentiable("a planted bug"),
                    .properties = kNoInPlace | kNoOut | kTestOnly,
                    .samples = sample,
                    .doc = "A planted bug."});
}

TEST(MemoryLaws, AreSeenRed) {
  add_wrong("leaves_out(Tensor x) -> Tensor", leaves_out, nullptr);
  add_wrong("writes_beyond(Tensor x) -> Tensor", writes_beyond, nullptr);
  add_wrong("loses_memory(Tensor x) -> Tensor", nullptr, loses_memory);
  add_wrong("forgets_masks(Tensor x) -> Tensor", nullptr, forgets_masks);
  EXPECT_NE(first_failure("poison_is_invisible", "leaves_out", 200).message.find("fresh memory"),
            std::string::npos);
  EXPECT_NE(first_failure("poison_is_invisible", "writes_beyond", 200).message.find("beside a block"),
            std::string::npos);
  EXPECT_NE(first_failure("out_of_memory", "loses_memory", 50).message.find("alive"), std::string::npos);
  EXPECT_NE(first_failure("out_of_memory", "forgets_masks", 50).message.find("masked keys"),
            std::string::npos);
  EXPECT_NE(first_failure("state_restored", "forgets_masks", 50).message.find("masked keys"),
            std::string::npos);
}
}  // namespace
