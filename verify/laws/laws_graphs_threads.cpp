// Laws of graphs that threads share, and of what is alive when graphs, threads and hooks are gone.
#include <algorithm>
#include <malloc.h>
#include <optional>
#include <thread>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/operators.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

/// While the thread that it watches runs, another one does all of `work` at some of its operator calls.
class InBetween final : public Observer {
 public:
  InBetween(uint32_t when, std::function<void()> work) : when_(when), work_(std::move(work)) {}
  void on_call(const Frame&, KeySet, int) override {
    if (!(when_ >> calls_++ % 32 & 1) || times_ == kMost) return;
    ++times_;
    std::thread(work_).join();
  }
  void on_return(const Frame&) override {}
  int times() const { return times_; }

 private:
  static constexpr int kMost = 5;
  uint32_t when_, calls_ = 0;
  int times_ = 0;
  std::function<void()> work_;
};

/// Threads that add to the same leaves.
struct SharedLeaves {
  const Graph& graph;
  bool one_graph;  ///< shared too; else each has its own
  Tensors leaves = graph.leaves();
  std::optional<LiveRoots> shared = {};
  Tensors retained = {};

  SharedLeaves(const Graph& g, bool one) : graph(g), one_graph(one) {
    if (!one) return;
    shared.emplace(graph.function()(leaves), graph.given());
    for (const Tensor& y : shared->ys) {
      retain_grad(y);
      retained.push_back(y);
    }
  }
  void run() const {
    if (shared) {
      if (!shared->ys.empty()) backward(shared->ys, shared->us);
      return;
    }
    const LiveRoots own(graph.function()(leaves), graph.given());
    if (!own.ys.empty()) backward(own.ys, own.us);
  }
};

constexpr uint32_t kRounds = 6;

Verdict threads_add_up(Case& c) {
  const Graph g(c);
  const bool one_graph = c.draw.flag(), free_running = c.draw.one_in(4);
  const uint32_t threads = 2 + c.draw.below(2), when = c.draw.word();
  if (!g.valid()) return Verdict::discard();
  const SharedLeaves s(g, one_graph);
  s.run();
  const Tensors first = grads_of(s.leaves);
  int times = 1;
  Status raised;
  if (free_running) {
    std::vector<Status> of(threads);
    std::vector<std::thread> running;
    for (uint32_t k = 0; k < threads; ++k)
      running.emplace_back([&, k] {
        of[k] = status_of([&] {
          for (uint32_t r = 0; r < kRounds; ++r) s.run();
        });
      });
    for (std::thread& t : running) t.join();
    for (const Status& one : of)
      if (one.raised) raised = one;
    times += int(threads * kRounds);
  } else {
    InBetween other(when, [&] {
      const Status one = status_of([&] { s.run(); });
      if (one.raised) raised = one;
    });
    {
      const ScopedObserver scope(&other);
      s.run();
    }
    times += 1 + other.times();
  }
  Finding wrong = raised.raised ? "on another thread: " + str(raised) : "";
  if (wrong.empty()) wrong = unlike_gradients(grads_of(s.leaves), g.gradients(), times);
  if (wrong.empty() && !(wrong = unlike_gradients(first, g.gradients())).empty())
    wrong = "read before the others ran: " + wrong;
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      wrong + format(" after {} backwards", times),
      g.cpp() +
          format("  // {} backwards of {}, {}; shown: the sum of one\n", times,
                 one_graph ? "this graph" : "such graphs, one each, of these leaves",
                 free_running ? format("on {} threads at once", threads)
                              : std::string("all but two on other threads, while this one is at an "
                                            "operator of its backward")) +
          "  backward(roots, us);\n  for (size_t k = 0; k < leaves.size(); ++k)\n    std::cout << \"got      "
          "\" << str(grad_of(leaves[k])) << \"\\nexpected \" << str(want[k]) << '\\n';\n",
      1);
}

/// What a case leaves behind, one way or another.
struct Leftovers {
  const Graph& graph;
  uint32_t way;
  static constexpr uint32_t kWays = 7;
  static constexpr int64_t kLayer = 4096;  ///< bytes
  static constexpr const char* kNames[kWays] = {
      "backward, in one go",
      "results of a thread that has ended",
      "leaves and results let go by another thread",
      "leaves gone before backward with create_graph",
      "hooks that hold tensors, and one that throws",
      "create_graph, and gradients taken by their owner",
      "handles of hooks and retained gradients that outlive all else"};

  void run(const LiveRoots& r, bool create_graph = false) const {
    if (!r.ys.empty()) backward(r.ys, r.us, {create_graph});
  }
  struct Made {
    Tensors leaves;
    Tensors roots;
  };
  Made make() const {
    Made out;
    for (const Tensor& x : graph.inputs()) out.leaves.push_back(requires_grad(plain_copy(x)));
    out.roots = graph.function()(out.leaves);
    return out;
  }
  void hooks(bool throws) const {
    const Made m = make();
    for (const Tensor& y : m.roots)
      if (is_grad_required(y))
        add_hook(y, [held = plain_copy(m.leaves[0]), throws](const Tensor& ct) {
          if (throws) throw 1;
          return held.defined() ? Tensor() : ct;
        });
    try {
      run({m.roots, graph.given()});
    } catch (int) {}
  }
  void once() const {
    Made m;
    if (way == 1) {
      std::thread([&] {
        m = make();
        run({m.roots, graph.given()});
      }).join();
    } else if (way == 4) {
      hooks(false), hooks(true);
    } else {
      m = make();
    }
    for (Tensor& y : m.roots)  // times themselves: of what is linear no gradient has a history
      if ((way == 3 || way == 5) && is_grad_required(y)) y = y * y;
    if (way == 2) std::thread([made = std::move(m), this] { run({made.roots, graph.given()}); }).join();
    else if (way == 3 || way == 5) {
      if (way == 3) m.leaves.clear();
      run({m.roots, graph.given()}, true);
      for (const Tensor& leaf : m.leaves) clear_grad(leaf);
    } else if (way == 6) {
      std::vector<HookHandle> handles;
      for (const Tensor& y : m.roots)
        if (is_grad_required(y)) {
          retain_grad(y);
          handles.push_back(add_hook(y, [](const Tensor& ct) { return ct * 2; }));
        }
      const Tensors gone = std::move(m.leaves);
      run({m.roots, graph.given()});
      m = {};
      for (HookHandle& h : handles) h.remove();
    } else {
      run({m.roots, graph.given()});
    }
  }
};

/// Bytes beside blocks and storages that malloc gives each time and never gets back: 0 unless it is so each
/// time, more often than its caches have places.
size_t heap_growth(const Leftovers& leftovers) {
  size_t least = ~size_t{0};
  for (int again = 0; again < 30 && least > 0; ++again) {
    const size_t before = mallinfo2().uordblks;
    leftovers.once();
    const size_t after = mallinfo2().uordblks;
    least = after > before ? std::min(least, after - before) : 0;
  }
  return least;
}

/// Bytes that are held when backward comes to a leaf from four layers above what the graph gives, each of
/// which saves `kLayer` bytes; -1: it comes to none.
int64_t held_at_a_leaf(const Leftovers& leftovers, bool given) {
  const Leftovers::Made m = leftovers.make();
  int64_t held = -1;
  std::vector<HookHandle> handles;
  for (const Tensor& leaf : m.leaves)
    handles.push_back(add_hook(leaf, [&held](const Tensor&) {
      held = memory_stats().bytes;
      return Tensor();
    }));
  Tensor y;
  for (const Tensor& root : m.roots)
    if (is_grad_required(root) && !y.defined()) y = sum(is_complex(root.dtype()) ? real(root) : root);
  if (y.defined()) {
    y = y + zeros({Leftovers::kLayer / 8}, DType::F64);
    for (int k = 0; k < 4; ++k) y = tanh(y);
    y = sum(y);
    given ? backward(std::move(y)) : backward(y);
  }
  for (HookHandle& h : handles) h.remove();
  return held;
}

/// Of a root that is given away nothing is held that backward has gone past.
Finding holds_what_is_past(const Leftovers& leftovers) {
  const int64_t kept = held_at_a_leaf(leftovers, false), given = held_at_a_leaf(leftovers, true);
  if (kept < 0 || kept - given >= 4 * Leftovers::kLayer) return "";
  return {What::Leak,
          format("at a leaf backward of a root that is given away holds {} bytes less than of one that "
                 "is kept; expected {} of what it has gone past",
                 kept - given, 4 * Leftovers::kLayer)};
}

Verdict graphs_leave_nothing(Case& c) {
  const Graph g(c);
  const uint32_t way = c.draw.below(Leftovers::kWays);
  if (!g.valid()) return Verdict::discard();
  const Leftovers leftovers{g, way};
  leftovers.once();  // what is made once and kept is made now
  if (way == 0)
    if (const Finding d = holds_what_is_past(leftovers); !d.empty())
      return Verdict::fail(d, g.cpp() + "  // " + d.text() + "\n", 1);
  MemoryStats before = memory_stats(), after{};
  bool grows = true;
  for (int again = 0; again < 3 && grows; ++again) {  // what leaks, leaks each time
    if (again) before = after;
    leftovers.once();
    after = memory_stats();
    grows = before.blocks != after.blocks || before.bytes != after.bytes || before.storages != after.storages;
  }
  if (!grows) {
    // Threads that end leave what they freed to malloc's caches.
    const size_t bytes = way == 1 || way == 2 ? 0 : heap_growth(leftovers);
    if (bytes == 0) return Verdict::pass(1);
    return Verdict::fail(
        {What::Leak, format("{}: {} bytes of the heap are lost each time", Leftovers::kNames[way], bytes)},
        g.cpp(), 1);
  }
  return Verdict::fail(
      {What::Leak,
       format("{}: {} blocks ({} bytes) and {} storages stay alive each time", Leftovers::kNames[way],
              after.blocks - before.blocks, after.bytes - before.bytes, after.storages - before.storages)},
      g.cpp() + "  // " + Leftovers::kNames[way] +
          "\n  const auto before = memory_stats();\n  {\n    Tensors own;\n    for (const Tensor& x "
          ": inputs) own.push_back(requires_grad(clone(x)));\n    g(own);\n  }\n  std::cout << "
          "\"got      \" << memory_stats().blocks << \"\\nexpected \" << before.blocks << "
          "'\\n';\n",
      1);
}

}  // namespace

void add_thread_laws(std::vector<Law>& laws) {
  laws.push_back({91, "threads_add_up", "derivative",
                  "Backwards of several threads into one leaf add up, also when one runs as a whole while "
                  "another is between any two of its operators.",
                  chain_options(), false, chained_smoothly, threads_add_up});
  laws.push_back(
      {93, "graphs_leave_nothing", "derivative",
       "When handles are gone, in any order and on any thread, nothing of a graph is alive, nor of its "
       "hooks and gradients; of a root that is given away nothing that backward has gone past.",
       chain_options(), false, chained_smoothly, graphs_leave_nothing});
}

}  // namespace lamella::verify
