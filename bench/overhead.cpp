// What does a call cost before any arithmetic? Dispatch, allocation, recording, one level of each transform;
// small tensors, one thread; and where arithmetic begins to matter, beside a loop written by hand.
#include <cstdio>
#include <string_view>

#include "lamella/dispatch/table.h"
#include "lamella/kernels/kernels.h"
#include "lamella/lamella.h"

#include "support/figures.h"
#include "support/gate.h"
#include "support/loops.h"

namespace {
using namespace lamella;
using bench::Count;
using bench::Row;
using bench::Rows;

constexpr int kCalls = 16;   // in one run of a row of single calls
constexpr int kChain = 100;  // operators in one run of a row of chains

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

/// A row of single calls: `body` is one.
template <class Body> Row single(const char* name, double target_ns, Body body) {
  return {.name = name,
          .units = kCalls,
          .run =
              [body] {
                for (int i = 0; i < kCalls; ++i) body();
              },
          .target_ns = target_ns};
}

Tensor chain(Tensor x, const Tensor& b, int n) {
  for (int i = 0; i < n; ++i) x = i % 2 ? mul(x, b) : add(x, b);
  return x;
}

struct Small {
  Tensor a = tensor_of({4}, {1, 2, 3, 4}), b = tensor_of({4}, {1, 1, 1, 1});
  Tensor batch = ones({4, 4});  // 64 bytes, which a tensor carries itself: levels are measured, not malloc
  Tensor leaf = requires_grad(a);
};

void add_call_rows(Rows& rows, const Small& s) {
  static constinit const OpHandle borrow("bench_borrow"), identity("bench_identity");
  rows.push_back(single("no-op, borrowed argument", 8, [=] {
    const void* const args[] = {&s.a};
    Frame f{&*borrow, args, nullptr};
    call_with_keys(f, keys_of_all(s.a));
  }));
  rows.push_back(single("no-op returning its argument", 20, [=] {
    const void* const args[] = {&s.a};
    call_one(identity, args, keys_of_all(s.a));
  }));
  // What operators allocate with, below the operator `empty`.
  rows.push_back(single("make_tensor({4})", 20, [] { make_tensor(IntArg{4}, DType::F32); }));
  rows.push_back(single("empty({4})", 20, [] { empty({4}); }));
  rows.push_back(single("add f32[4]", 60, [=] { add(s.a, s.b); }));
  rows.push_back(single("add f32[8,4]", 0, [x = ones({8, 4})] { add(x, x); }));
  rows.back().count = Count::Shown;  // malloc's share depends on what was freed before
  rows.push_back(single("add_ f32[4]", 0, [c = clone(s.a), b = s.b] { add_(c, b); }));
  const Tensor c = tensor_of({1}, {2}, DType::F64);
  rows.push_back(single("add f32[4] broadcast with f64[1]", 0, [=] { add(s.a, c); }));
  rows.push_back(single("select(x, 0, 1)", 0, [=] { select(s.batch, 0, 1); }));
  rows.push_back(single("add f32[4], recorded", 110, [=] { add(s.leaf, s.b); }));
  rows.push_back(single("mul f32[4], recorded", 110, [=] { mul(s.leaf, s.b); }));
  rows.push_back(single("select, recorded", 0, [leaf = requires_grad(s.batch)] { select(leaf, 0, 1); }));
}

/// What a write through a view costs beside the functional program, backward included.
void add_write_rows(Rows& rows) {
  const Tensor leaf = requires_grad(ones({64})), b = ones({}), all = ones({64}), ct = ones({64});
  const auto back = [=](const Tensor& y) {
    backward(y, ct);
    clear_grad(leaf);
  };
  rows.push_back(single("one element written through a view", 0, [=] {
    const Tensor y = leaf + b;
    mul_(select(y, 0, 5), b);
    back(y);
  }));
  rows.push_back(single("one element by select_scatter", 0, [=] {
    const Tensor y = leaf + b;
    back(select_scatter(y, select(y, 0, 5) * b, 0, 5));
  }));
  rows.push_back(single("64 elements written through a view", 0, [=] {
    const Tensor y = leaf + b;
    mul_(slice(y, 0, 0, 64), all);
    back(y);
  }));
  rows.push_back(single("64 elements by slice_scatter", 0, [=] {
    const Tensor y = leaf + b;
    back(slice_scatter(y, slice(y, 0, 0, 64) * all, 0, 0, 64));
  }));
}

/// What a level costs per operator: a chain under the level, less the same chain without it.
void add_level_rows(Rows& rows, const Small& s) {
  const auto under_vmap = [=] {
    vmap(Function([](const Tensors& v) { return Tensors{chain(v[0], v[0], kChain)}; }),
         VmapOptions{})({s.batch});
  };
  const auto body = [=](const Tensors& v) { return Tensors{chain(v[0], s.b, kChain)}; };
  const auto under_grad = [=] { vjp(body, {s.a}); };
  const auto under_jvp = [=] { jvp(body, {s.a}, {s.b}); };
  const auto plain = [=] { chain(s.a, s.b, kChain); };
  const auto plain_and_tangents = [=] {
    chain(s.a, s.b, kChain);
    for (int i = 0; i < kChain / 2; ++i) mul(s.a, s.b);
  };
  const auto backward_too = [=] {
    backward(chain(s.leaf, s.b, kChain), s.b);
    clear_grad(s.leaf);
  };
  rows.push_back({"forward + backward, chain of 100", kChain, backward_too, {}, 250});
  rows.push_back({"one vmap level", kChain, under_vmap, [=] { chain(s.batch, s.batch, kChain); }, 60});
  rows.push_back({"one grad level (recording)", kChain, under_grad, plain, 90});
  rows.push_back({"one jvp level (tangents included)", kChain, under_jvp, plain});
  rows.push_back({"one jvp level (tangent work subtracted)", kChain, under_jvp, plain_and_tangents, 90});
  const Function map = vmap(Function([](const Tensors& v) { return v; }), VmapOptions{});
  rows.push_back(single("vmap entry and exit", 100, [=, xs = Tensors{s.batch}] { map(xs); }));
}

/// f32 add into a given output, beside the loop by hand on the same memory.
void add_large_rows(Rows& rows, int log2, Count count, double target) {
  const std::string size = ", 2^" + std::to_string(log2);
  const int64_t n = int64_t(1) << log2;
  const Tensor a = ones({n}), b = ones({n}), out = ones({n});
  const auto hand = [=](auto f) {
    return [=] { f(out.data<float>(), a.data<float>(), b.data<float>(), size_t(n)); };
  };
  rows.push_back({.name = "add f32, out=" + size,
                  .run = [=] { add_out(out, a, b); },
                  .count = count,
                  .loop = "loop by hand" + size,
                  .target_of_loop = target});
  const Count shown = count == Count::Never ? Count::Never : Count::Shown;
  rows.push_back({.name = "loop by hand" + size, .run = hand(bench::add_by_hand), .count = shown});
  if (count == Count::Never)
    rows.push_back({.name = "loop by hand, streaming" + size,
                    .run = hand(bench::add_by_hand_streaming),
                    .count = Count::Never,
                    .loop = "loop by hand" + size});
}

Rows all_rows() {
  define_noops();
  Rows rows;
  const Small small;
  add_call_rows(rows, small);
  add_write_rows(rows);
  add_level_rows(rows, small);
  for (int64_t n : {4, 64}) {
    const Tensor x = ones({n, n});
    // OpenBLAS multiplies the larger ones.
    rows.push_back({.name = "matmul f32[" + std::to_string(n) + "," + std::to_string(n) + "]",
                    .run = [=] { matmul(x, x); },
                    .count = n > 4 ? Count::Shown : Count::Gated});
  }
  add_large_rows(rows, 16, Count::Gated, 0.85);
  return rows;
}

/// The peer's program runs by itself, after ours.
int compare(Rows rows, bool count_peer) {
  add_large_rows(rows, 25, Count::Never, 0.9);
  const bench::Figures ours = bench::measure(rows, "lamella", kernels::cpu_isa(), true);
  const std::string command = std::string("'" LAMELLA_PEER "' --figures") + (count_peer ? " --all" : "");
  const bench::Figures peer =
      LAMELLA_HAVE_TORCH ? bench::read_figures(command) : bench::Figures{"", "", LAMELLA_TORCH_WHY, {}};
  bench::print_machine(kernels::cpu_isa());
  bench::print_table(rows, ours, peer);
  if (peer.rows.empty()) std::printf("no libtorch: %s\n", peer.why_not.c_str());
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  lamella::set_threads(1);  // times are those of this thread
  const std::string_view option = argc > 1 ? argv[1] : "";
  const std::string figures = argc > 2 ? argv[2] : LAMELLA_SOURCE_DIR "/bench/instructions.txt";
  if (option.empty() || option == "--all") return compare(all_rows(), !option.empty());
  if (option == "--counted") return bench::run_counted(all_rows(), kernels::cpu_isa());
  if (option == "--check") return bench::check_instructions(all_rows(), figures);
  if (option == "--update") return bench::update_instructions(all_rows(), figures);
  std::printf(
      "usage: overhead [--all]           times, instructions, and libtorch beside them where it was found;\n"
      "                                  --all counts libtorch's instructions too (a minute)\n"
      "       overhead --check [FILE]    instructions against the committed ones; 77: nothing to compare\n"
      "       overhead --update [FILE]   rewrites them\n");
  return option == "--help" ? 0 : 2;
}
