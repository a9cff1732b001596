// What does a call cost before any arithmetic? Dispatch, allocation, recording, one level of each transform;
// small tensors, one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"

namespace {
using namespace lamella;

/// Retired user instructions of this thread, or -1 where the machine does not count them.
class InstructionCounter {
 public:
  InstructionCounter() {
    perf_event_attr attr{};
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    fd_ = int(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  }
  ~InstructionCounter() {
    if (fd_ >= 0) close(fd_);
  }
  int64_t read() const {
    int64_t n = -1;
    if (fd_ < 0 || ::read(fd_, &n, sizeof n) != sizeof n) return -1;
    return n;
  }

 private:
  int fd_;
};

struct Row {
  const char* name;
  double target_ns;  ///< 0: shown for comparison only
  int units;         ///< operator calls in one run
  std::function<void()> run;
  std::function<void()> baseline;  ///< subtracted: the same work without the level
};

double seconds_of(const std::function<void()>& f, int repeat) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeat; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Median, least and largest ns per unit over 31 rounds; baseline and run are interleaved.
struct Measured {
  double median, low, high, instructions;
};

Measured measure(const Row& row, const InstructionCounter& counter) {
  int repeat = 1;
  while (seconds_of(row.run, repeat) < 2e-3) repeat *= 2;
  std::vector<double> ns;
  for (int round = 0; round < 31; ++round) {
    const double base = row.baseline ? seconds_of(row.baseline, repeat) : 0;
    ns.push_back((seconds_of(row.run, repeat) - base) * 1e9 / repeat / row.units);
  }
  std::sort(ns.begin(), ns.end());
  double instructions = -1;
  const int64_t before = counter.read();
  if (before >= 0) {
    for (int i = 0; i < repeat; ++i) row.run();
    const int64_t middle = counter.read();
    if (row.baseline)
      for (int i = 0; i < repeat; ++i) row.baseline();
    const int64_t base = row.baseline ? counter.read() - middle : 0;
    instructions = double(middle - before - base) / repeat / row.units;
  }
  return {ns[ns.size() / 2], ns.front(), ns.back(), instructions};
}

void define_noops() {
  OpTable::add({.schema = "bench_borrow(Tensor x) -> ()",
                .shape = ShapeClass::Composite,
                .composite = [](Frame&) {},
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kTestOnly,
                .samples = [](Draw&) { return Values{}; },
                .doc = "does nothing"});
  OpTable::add({.schema = "bench_identity(Tensor x) -> Tensor",
                .shape = ShapeClass::Composite,
                .composite = [](Frame& f) { f.results[0] = f.tensor(0); },
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kTestOnly | kNoInPlace | kNoOut,
                .samples = [](Draw&) { return Values{}; },
                .doc = "its argument"});
}

Tensor chain(Tensor x, const Tensor& b, int n) {
  for (int i = 0; i < n; ++i) x = i % 2 ? mul(x, b) : add(x, b);
  return x;
}

std::vector<Row> rows() {
  define_noops();
  static const OpHandle borrow("bench_borrow"), identity("bench_identity");
  static const Tensor a = tensor_of({4}, {1, 2, 3, 4}), b = tensor_of({4}, {1, 1, 1, 1});
  static const Tensor batch = ones({8, 4});
  static const Tensor leaf = requires_grad(a);
  constexpr int kChain = 100;
  const auto in_vmap = [](const Tensor& x, int n) {
    return vmap(Function([n](const Tensors& v) { return Tensors{chain(v[0], v[0], n)}; }),
                VmapOptions{})({x})[0];
  };
  const auto in_jvp = [](int n) {
    return jvp([n](const Tensors& v) { return Tensors{chain(v[0], b, n)}; }, {a}, {b}).values[0];
  };
  const auto in_grad = [](int n) {
    return vjp([n](const Tensors& v) { return Tensors{chain(v[0], b, n)}; }, {a}).values[0];
  };
  return {
      {"no-op, borrowed argument",
       8,
       16,
       [] {
         const void* const args[] = {&a};
         for (int i = 0; i < 16; ++i) {
           Frame f{&*borrow, args, nullptr};
           call(f);
         }
       },
       {}},
      {"no-op returning its argument",
       20,
       16,
       [] {
         const void* const args[] = {&a};
         for (int i = 0; i < 16; ++i) call_one(identity, args);
       },
       {}},
      {"make_tensor({4}) (what operators allocate with)",
       20,
       16,
       [] {
         for (int i = 0; i < 16; ++i) make_tensor(IntArg{4}, DType::F32);
       },
       {}},
      {"empty({4})",
       20,
       16,
       [] {
         for (int i = 0; i < 16; ++i) empty({4});
       },
       {}},
      {"add f32[4]",
       60,
       16,
       [] {
         for (int i = 0; i < 16; ++i) add(a, b);
       },
       {}},
      {"add_ f32[4]",
       0,
       16,
       [] {
         static const Tensor c = clone(a);
         for (int i = 0; i < 16; ++i) add_(c, b);
       },
       {}},
      {"add f32[4] broadcast with f64[1]",
       0,
       16,
       [] {
         static const Tensor c = tensor_of({1}, {2}, DType::F64);
         for (int i = 0; i < 16; ++i) add(a, c);
       },
       {}},
      {"select(x, 0, 1)",
       0,
       16,
       [] {
         for (int i = 0; i < 16; ++i) select(batch, 0, 1);
       },
       {}},
      {"add f32[4], recorded",
       110,
       16,
       [] {
         for (int i = 0; i < 16; ++i) add(leaf, b);
       },
       {}},
      {"forward + backward, chain of 100",
       250,
       kChain,
       [] {
         const Tensor y = chain(leaf, b, kChain);
         backward(y, b);
         clear_grad(leaf);
       },
       {}},
      {"one vmap level", 60, kChain, [=] { in_vmap(batch, kChain); }, [] { chain(batch, batch, kChain); }},
      {"one grad level (recording)", 90, kChain, [=] { in_grad(kChain); }, [] { chain(a, b, kChain); }},
      {"one jvp level (tangents included)", 0, kChain, [=] { in_jvp(kChain); }, [] { chain(a, b, kChain); }},
      {"one jvp level (tangent work subtracted)", 90, kChain, [=] { in_jvp(kChain); },
       [] {
         chain(a, b, kChain);
         for (int i = 0; i < kChain / 2; ++i) mul(a, b);
       }},
      {"vmap entry and exit",
       100,
       1,
       [] {
         static const Function f = vmap(Function([](const Tensors& v) { return v; }), VmapOptions{});
         static const Tensors xs{batch};
         f(xs);
       },
       {}},
  };
}
}  // namespace

int main() {
  const InstructionCounter counter;
  std::printf("%-50s %8s %8s %8s %8s %7s\n", "ns per call", "median", "least", "largest", "target", "instr");
  for (const Row& row : rows()) {
    const Measured m = measure(row, counter);
    char target[16] = "-", instructions[16] = "-";
    if (row.target_ns > 0) std::snprintf(target, sizeof target, "%.0f", row.target_ns);
    if (m.instructions >= 0) std::snprintf(instructions, sizeof instructions, "%.0f", m.instructions);
    std::printf("%-50s %8.1f %8.1f %8.1f %8s %7s\n", row.name, m.median, m.low, m.high, target, instructions);
  }
  return 0;
}
