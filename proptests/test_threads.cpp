// Threads that call under different stacks while another registers and replaces operators.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "lamella/ops/all.h"
#include "lamella/ops/functions.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/drawn.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

constexpr uint64_t kSeed = 20261121;
constexpr int kThreads = 4, kRounds = 60, kRegistrations = 120;

void doubled(Frame& f) { f.results[0] = mul(f.tensor(0), 2.0); }
void added(Frame& f) { f.results[0] = add(f.tensor(0), f.tensor(0)); }

OpDef definition(std::string_view schema, CompositeFn body) {
  return {.schema = schema,
          .shape = ShapeClass::Composite,
          .composite = body,
          .jvp = not_differentiable("a composite has none of its own"),
          .vjp = not_differentiable("a composite has none of its own"),
          .properties = kNoInPlace | kNoOut | kTestOnly,
          .samples = [](Draw& d) -> Values { return {d.tensor(d.shape(), d.dtype(mask(DType::F64)))}; },
          .doc = "Twice x."};
}

/// Replaces what the others call, by a body that computes the same, and adds operators.
void keep_registering(std::atomic<int>& registered, const std::atomic<bool>& stop) {
  for (int i = 0; !stop; ++i) {
    OpTable::replace(definition("twice(Tensor x) -> Tensor", i % 2 ? doubled : added));
    if (i % 4 == 0) OpTable::add(definition(format("registered_{}(Tensor x) -> Tensor", i), doubled));
    ++registered;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

/// Functions of drawn operators under drawn stacks, and what they return.
struct Work {
  std::vector<std::vector<uint32_t>> words;  // that the cases draw from
  std::vector<Case> cases;
  std::vector<DrawnFunction> functions;
  std::vector<Tensors> want;

  explicit Work(int thread) {
    const Law& law = *find_law("threads_are_apart");
    const std::vector<const Op*> ops = all_operators();
    cases.reserve(ops.size()), words.reserve(ops.size());
    for (size_t i = size_t(thread); i < ops.size() && functions.size() < 8; i += 11) {
      if (!law.applies(*ops[i])) continue;
      words.push_back(choices_of(kSeed, law, *ops[i], uint64_t(thread) + 1));
      cases.emplace_back(*ops[i], words.back(), law.options);
      std::optional<DrawnFunction> s = draw_function(cases.back());
      Tensors ys;
      if (!s || status_of([&] { ys = s->f(s->xs); }).raised) continue;
      functions.push_back(std::move(*s));
      want.push_back(std::move(ys));
    }
  }
  std::string wrong(size_t k) const {
    return disagrees(functions[k].f(functions[k].xs), want[k], Agreement::Bitwise).text();
  }
};

/// One round of a thread: its own stacks, the operator that is being replaced, an exception in the middle.
std::string one_round(const Work& work, int round, const Tensor& shared) {
  const std::string wrong = work.wrong(size_t(round) % work.functions.size());
  if (!wrong.empty()) return wrong;
  const ScalarFunction square = [](const Tensors& xs) { return sum(mul(call("twice", {xs[0]})[0], xs[0])); };
  const Function slope = vmap(grad(square), VmapOptions{});
  if (slope({shared})[0].to_vector() != std::vector<double>{4, 8, 12, 16})
    return "the gradient of 2 x^2 is not 4 x";
  try {
    vmap(Function([](const Tensors& xs) {
           return Tensors{add(call("twice", {xs[0]})[0], ones({7}, DType::F64))};
         }),
         VmapOptions{})({shared});
    return "sizes that do not broadcast were accepted";
  } catch (const Error&) {}
  return dispatch_state().depth ? "a level is left" : "";
}

TEST(Threads, CallUnderStacksWhileOneRegisters) {
  install_operators();
  OpTable::replace(definition("twice(Tensor x) -> Tensor", doubled));
  const Tensor shared = tensor_of({2, 2}, {1, 2, 3, 4}, DType::F64);
  std::vector<Work> work;
  for (int k = 0; k < kThreads; ++k) work.emplace_back(k);
  std::vector<std::string> wrong(kThreads);
  std::atomic<bool> stop{false};
  std::atomic<int> registered{0};
  std::thread registrar([&] { keep_registering(registered, stop); });
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back([&, k] {
      try {
        const auto more = [&](int round) { return round < kRounds || registered < kRegistrations; };
        for (int round = 0; more(round) && wrong[size_t(k)].empty(); ++round)
          wrong[size_t(k)] = one_round(work[size_t(k)], round, shared);
      } catch (const std::exception& e) { wrong[size_t(k)] = e.what(); }
    });
  for (std::thread& t : threads) t.join();
  stop = true;
  registrar.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
  EXPECT_GE(work[0].functions.size(), 4u);
  EXPECT_GE(registered, kRegistrations);  // all of them beside the callers
}

void negated_again(Frame& f, int key) { call_built_in(f, key); }
std::atomic<int> class_cell_runs = 0;
void summed_on_cpu(Frame& f, int) {
  ++class_cell_runs;
  f.results[0] = make_tensor({}, f.tensor(0).dtype()), fill_(f.results[0], 3.0);
}

/// Every change makes rows anew and publishes them; who calls meets the old ones or the new ones, whole.
TEST(Threads, CallWhileOneRegistersForSingleKeys) {
  const OpTable* const before = &OpTable::current();
  constexpr int kCpu = int(Device::CPU);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0, calls = 0;
  const auto is_right = [](const Tensor& x) {
    const Tensor slope = grad([](const Tensor& y) { return sum(neg(y)); })(x);
    return sum(x).item<double>() == 3 && slope.to_vector() == std::vector<double>{-1, -1, -1};
  };
  class_cell_runs = 0;
  {
    std::vector<std::jthread> callers;
    for (int t = 0; t < kThreads - 1; ++t)
      callers.emplace_back([&] {
        const Tensor x = full({3}, 1.0);
        for (; !stop; ++calls) try {
            wrong += !is_right(x);
          } catch (const std::exception&) { ++wrong; }
      });
    while (calls == 0) std::this_thread::yield();
    for (int i = 0; i < kRegistrations; ++i) {
      OpTable::set("neg", kCpu, {.name = format("again{}", i), .cell = negated_again});
      OpTable::choose("neg", kCpu, i % 2 ? "built_in" : "again0");
      if (i % 16 == 0)
        OpTable::set_rules("neg", kFirstTypeKey + i / 16, linear_in({"x"}),
                           {wrt("x", [](Tensor dy) { return neg(dy); })});
      if (i == kRegistrations / 2) OpTable::set_class(ShapeClass::Reduce, kCpu, summed_on_cpu);
    }
    for (const int then = calls; calls < then + 2 * kThreads;) std::this_thread::yield();
    stop = true;
  }
  OpTable::take_back(before);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(class_cell_runs, 0);
}

/// Tensors made on one thread and let go on another, both ways, while their makers go on or have ended.
TEST(Threads, HandlesMayDieAnywhere) {
  const int64_t before = memory_stats().storages;
  Tensors kept(kThreads);
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 200; ++i) {
        Tensor t = full({40}, double(i), DType::F64);
        std::thread([t] { (void)add(t, t); }).join();
        std::thread([u = std::move(t)]() mutable { u = {}; }).join();
      }
      kept[size_t(k)] = full({40}, double(k), DType::F64);
    });
  for (std::thread& t : threads) t.join();
  for (int k = 0; k < kThreads; ++k) EXPECT_EQ(kept[size_t(k)].to_vector()[39], k);
  kept.clear();
  (void)zeros({1});  // the owner merges what others gave back
  EXPECT_EQ(memory_stats().storages, before);
}
}  // namespace
