// Guarded memory, and what is alive after a case: both are seen to see.
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "lamella/core/allocation.h"
#include "lamella/core/family.h"
#include "lamella/core/guard.h"
#include "lamella/core/pool.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer.h"
#include "lamella/verify/case/heap.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

uint8_t read_at(const Tensor& t, int64_t byte) {
  return static_cast<const volatile uint8_t*>(t.raw_data())[byte];
}
void write_at(const Tensor& t, int64_t byte) { static_cast<volatile uint8_t*>(t.raw_data())[byte] = 1; }

/// What a sanitizer says when it ends the process before anybody else can.
constexpr const char* kEnds = kPoisons ? "" : "(read|write) of byte";

TEST(GuardedMemory, EndsAtAPage) {
  const GuardedMemory guarded(GuardSide::End);
  for (const int64_t n : {0, 1, 7, 13, 16, 17, 1000, 1024, 5000, 60000}) {
    const Tensor t = make_tensor(Dims{n}, DType::F32);
    if (n > 0) write_at(t, 4 * n - 1);
    EXPECT_EQ(uintptr_t(t.raw_data()) % 4, 0u);
    EXPECT_DEATH(read_at(t, 4 * n), kEnds);
    EXPECT_DEATH(write_at(t, 4 * n + 59), kEnds);
  }
  EXPECT_EQ(damaged_memory(), "");
}

TEST(GuardedMemory, BeginsAtAPage) {
  const GuardedMemory guarded(GuardSide::Begin);
  for (const int64_t n : {1, 13, 1000, 5000}) {
    const Tensor t = make_tensor(Dims{n}, DType::F64);
    EXPECT_EQ(uintptr_t(t.raw_data()) % 64, 0u);
    EXPECT_DEATH(read_at(t, -1), kEnds);
    EXPECT_DEATH(write_at(t, -8), kEnds);
  }
}

TEST(GuardedMemory, EndsBlocksOfPoolsAtAPage) {
  const GuardedMemory guarded(GuardSide::Blocks);
  struct {
    int64_t n, room;
  } const sizes[] = {{1, 64}, {16, 64}, {17, 128}, {1024, 4096}, {2000, 8000}};  // header's, pools', own
  for (const auto& [n, room] : sizes) EXPECT_DEATH(write_at(make_tensor(Dims{n}, DType::F32), room), kEnds);
}

TEST(GuardedMemory, LooksAtTheOtherSide) {
  for (const GuardSide side : {GuardSide::End, GuardSide::Begin}) {
    const GuardedMemory guarded(side);
    Tensor t = make_tensor(Dims{13}, DType::F32);
    write_at(t, side == GuardSide::End ? -8 : 52);
    t = {};
    EXPECT_NE(damaged_memory(), "");
  }
}

TEST(GuardedMemory, OutlivesItsScopeAndItsThread) {
  const int64_t before = memory_stats().blocks;
  Tensors kept;
  {
    const GuardedMemory guarded(GuardSide::End);
    for (int k = 0; k < 6000; ++k) kept.push_back(zeros({3}, DType::F64));  // more than there are places
    const MemoryTrial trial({});                                            // a law's own, inside
    kept.push_back(ones({3}, DType::F64));
  }
  kept.push_back(zeros({3}, DType::F64));
  EXPECT_EQ(add(kept[0], kept.back()).to_vector(), std::vector<double>(3, 0.0));
  std::thread([k = std::move(kept)]() mutable { k.clear(); }).join();
  (void)zeros({1});
  EXPECT_EQ(memory_stats().blocks, before);
}

// Operators with an error each, which run_check must see.

void reads_beyond(const Launch& l) {
  const Tensor x = l.frame.tensor(0);
  const auto* const in = static_cast<const volatile double*>(x.raw_data());
  for (int64_t i = 0; i < x.numel() + 15; ++i)
    if (i < x.numel()) l.outs[0].data<double>()[i] = in[i];
    else (void)in[i];
}
// What is lost stays in these, so that a leak checker at the end of the program has nothing to say.
std::vector<const void*>& lost() {
  static std::vector<const void*> all = [] {
    std::vector<const void*> v;
    v.reserve(1000);
    return v;
  }();
  return all;
}
void loses_object(Frame& f) {
  lost().push_back(new int(1));
  f.results[0] = mul(f.tensor(0), 2.0);
}
void loses_shape(Frame& f) {
  f.results[0] = mul(f.tensor(0), 2.0);
  const Tensor t = make_tensor(Dims{1, 1, 1, 1, 1, 1}, DType::F64);
  lost().push_back(t.impl()->heap);
  t.impl()->rank = 0;  // its heap block is nobody's
}
void loses_small_tensor(Frame& f) {
  const Tensor t = make_tensor(Dims{3}, DType::F64);
  t.impl()->retain();
  lost().push_back(t.impl());
  f.results[0] = mul(f.tensor(0), 2.0);
}
void loses_family(Frame& f) {
  const Tensor t = zeros({3}, DType::F64);
  Family::of(t).retain();
  lost().push_back(t.impl()->family());
  f.results[0] = mul(f.tensor(0), 2.0);
}
void keeps_once(Frame& f) {
  static const auto* const kept = new std::vector<int>(10);
  f.results[0] = mul(f.tensor(0), double(kept->size()));
}

Values dense_sample(Draw& d) { return {plain_copy(d.tensor(d.shape(), d.dtype(mask(DType::F64))))}; }

void add_wrong(const char* schema, LaunchFn launch, CompositeFn composite) {
  OpTable::replace({.schema = schema,
                    .shape = composite ? ShapeClass::Composite : ShapeClass::Other,
                    .infer = composite ? nullptr : ops::infer_same,
                    .launch = launch,
                    .composite = composite,
                    .jvp = not_differentiable("a planted bug"),
                    .vjp = not_differentiable("a planted bug"),
                    .properties = kNoInPlace | kNoOut | kTestOnly,
                    .samples = dense_sample,
                    .doc = "A planted bug."});
}

Verdict first_failure(std::string_view law, const char* op, uint64_t n) {
  const Op& row = *OpTable::current().find(op);
  for (uint64_t i = 0; i < n; ++i) {
    Verdict v = run_check(*find_law(law), row, choices_of(7, *find_law(law), row, i));
    if (v.kind == Verdict::Fail) return v;
  }
  return Verdict::pass();
}

TEST(GuardedCases, EndWithWhoReadsBehindAnArgument) {
  add_wrong("reads_beyond(Tensor x) -> Tensor", reads_beyond, nullptr);
  EXPECT_DEATH(first_failure("calls_repeat", "reads_beyond", 200), kEnds);
}

TEST(LeaksOfCases, AreSeenWhenTheyComeEachTime) {
  add_wrong("loses_object(Tensor x) -> Tensor", nullptr, loses_object);
  add_wrong("loses_shape(Tensor x) -> Tensor", nullptr, loses_shape);
  add_wrong("loses_small_tensor(Tensor x) -> Tensor", nullptr, loses_small_tensor);
  add_wrong("loses_family(Tensor x) -> Tensor", nullptr, loses_family);
  add_wrong("keeps_once(Tensor x) -> Tensor", nullptr, keeps_once);
  EXPECT_NE(first_failure("calls_repeat", "loses_object", 5).message.find("operator new"), std::string::npos);
  EXPECT_NE(first_failure("calls_repeat", "loses_shape", 5).message.find("operator new"), std::string::npos);
  EXPECT_NE(first_failure("calls_repeat", "loses_small_tensor", 5).message.find("blocks more"),
            std::string::npos);
  EXPECT_NE(first_failure("calls_repeat", "loses_family", 5).message.find("families"), std::string::npos);
  EXPECT_EQ(first_failure("calls_repeat", "keeps_once", 5).message, "");
}

TEST(CountedHeap, SumsOverThreads) {
  const int64_t before = heap_objects();
  auto* const here = new int(1);
  EXPECT_EQ(heap_objects(), before + 1);
  int* there = nullptr;
  std::thread([&] { there = new int(2); }).join();
  EXPECT_EQ(heap_objects(), before + 2);
  std::thread([&] { delete here; }).join();
  delete there;
  EXPECT_EQ(heap_objects(), before);
}

/// Not inlined: the compiler would warn of what the test is about.
constexpr size_t kKeptBytes = 200;
[[gnu::noinline]] void give_kept_back(uintptr_t p) {
  operator delete(reinterpret_cast<void*>(p), kKeptBytes);
}

/// See NOTE: [kept objects]; sanitizers look at malloc's blocks, which none are kept from.
TEST(KeptObjects, AreUsedAgainAndSeenTwice) {
  if (kPoisons || !kPooling) GTEST_SKIP() << "objects are malloc's";
  const auto made = [](size_t bytes) { return reinterpret_cast<uintptr_t>(operator new(bytes)); };
  const uintptr_t first = made(kKeptBytes);
  give_kept_back(first);
  const uintptr_t second = made(kKeptBytes - 1);
  EXPECT_EQ(second, first);
  give_kept_back(second);
  EXPECT_DEATH(give_kept_back(second), "freed twice");
  const int64_t before = heap_objects();
  const GuardedMemory guarded(GuardSide::End);
  const uintptr_t apart = made(kKeptBytes);
  EXPECT_NE(apart, first) << "in a guarded case it is malloc's";
  give_kept_back(apart);
  EXPECT_EQ(heap_objects(), before);
}

TEST(KeptObjects, AreLetGoWithTheirThread) {
  const int64_t before = heap_objects();
  std::thread([] {
    std::vector<std::unique_ptr<std::array<char, 40>>> many(100);
    for (auto& one : many) one = std::make_unique<std::array<char, 40>>();
  }).join();
  EXPECT_EQ(heap_objects(), before);
}
}  // namespace
