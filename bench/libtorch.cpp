// What do the rows of overhead.cpp cost with libtorch's C++ API? The same work under the same names; one
// thread.
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/_make_dual.h>
#include <ATen/ops/_unpack_dual.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/select.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <cstdio>
#include <string_view>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/headeronly/version.h>
#include <torch/library.h>

#include "support/figures.h"

namespace {
namespace ft = at::functorch;
using at::Tensor;
using bench::Count;
using bench::Row;
using bench::Rows;

constexpr int kCalls = 16;
constexpr int kChain = 100;

// Operators of its dispatcher that do nothing, as those of overhead.cpp.
TORCH_LIBRARY(lamella_bench, library) {
  library.def("borrow(Tensor x) -> ()", [](const Tensor&) {});
  library.def("identity(Tensor x) -> Tensor", [](const Tensor& x) { return x; });
}

template <class Signature> auto handle(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

/// A row of single calls: `body` is one. Never gated: these counts are not ours.
template <class Body> Row single(const char* name, Body body) {
  return {.name = name,
          .units = kCalls,
          .run =
              [body]() mutable {
                for (int i = 0; i < kCalls; ++i) body();
              },
          .count = Count::Shown};
}

/// The same in inference mode, in which libtorch keeps no books for derivatives: its fastest.
template <class Body> Row inferred(const char* name, Body body) {
  Row row = single(name, body);
  row.run = [run = row.run] {
    const c10::InferenceMode guard;
    run();
  };
  return row;
}

Tensor chain(Tensor x, const Tensor& b, int n) {
  for (int i = 0; i < n; ++i) x = i % 2 ? at::mul(x, b) : at::add(x, b);
  return x;
}

struct Small {
  Tensor a = at::arange(1.f, 5.f), b = at::ones({4});
  Tensor batch = at::ones({4, 4}), leaf = at::arange(1.f, 5.f);
};

Small normal_tensors() {
  Small s;
  s.leaf.set_requires_grad(true);
  return s;
}

Small inference_tensors() {
  const c10::InferenceMode guard;
  return {};
}

void add_call_rows(Rows& rows, const Small& normal) {
  const Small s = inference_tensors();
  const auto borrow = handle<void(const Tensor&)>("lamella_bench::borrow");
  const auto identity = handle<Tensor(const Tensor&)>("lamella_bench::identity");
  rows.push_back(inferred("no-op, borrowed argument", [=] { borrow.call(s.a); }));
  rows.push_back(inferred("no-op returning its argument", [=] { identity.call(s.a); }));
  rows.push_back(inferred("make_tensor({4})", [] { at::detail::empty_cpu({4}, at::kFloat); }));
  rows.push_back(inferred("empty({4})", [] { at::empty({4}); }));
  rows.push_back(inferred("add f32[4]", [=] { at::add(s.a, s.b); }));
  rows.push_back(single("add f32[4], not in inference mode", [=] { at::add(normal.a, normal.b); }));
  rows.push_back(inferred("add f32[8,4]", [x = at::cat({s.batch, s.batch})] { at::add(x, x); }));
  rows.push_back(inferred("add_ f32[4]", [c = s.a.clone(), b = s.b] { c.add_(b); }));
  const Tensor c = at::ones({1}, at::kDouble);
  rows.push_back(inferred("add f32[4] broadcast with f64[1]", [=] { at::add(s.a, c); }));
  rows.push_back(inferred("select(x, 0, 1)", [=] { at::select(s.batch, 0, 1); }));
  rows.push_back(single("add f32[4], recorded", [=] { at::add(normal.leaf, normal.b); }));
  rows.push_back(single("mul f32[4], recorded", [=] { at::mul(normal.leaf, normal.b); }));
}

/// A live transform of functorch; the calls are those of torch.func's Python code.
class Level {
 public:
  explicit Level(ft::TransformType type, std::optional<c10::SymInt> size = std::nullopt)
      : number_(ft::initAndPushDynamicLayer(type, std::move(size), ft::RandomnessType::Error, true, true)) {}
  ~Level() { ft::popDynamicLayerAndDeleteMetadata(); }
  Level(const Level&) = delete;
  int64_t number() const { return number_; }

 private:
  int64_t number_;
};

Tensor under_vmap(const Tensor& batch, int n) {
  const Level level(ft::TransformType::Vmap, batch.size(0));
  const Tensor lane = ft::addBatchDim(batch, 0, level.number());
  return std::get<0>(ft::unwrapTensorAtLevel(chain(lane, lane, n), level.number()));
}

Tensor under_grad(const Small& s) {
  const Level level(ft::TransformType::Grad);
  const Tensor x = ft::makeTensorWrapper(s.a, level.number());
  x.set_requires_grad(true);
  return std::get<0>(ft::unwrapTensorAtLevel(chain(x, s.b, kChain), level.number()));
}

Tensor under_jvp(const Small& s) {
  using torch::autograd::ForwardADLevel;
  const Level level(ft::TransformType::Jvp);
  const uint64_t index = ForwardADLevel::get_next_idx();
  const Tensor x = at::_make_dual(ft::makeTensorWrapper(s.a, level.number()),
                                  ft::makeTensorWrapper(s.b, level.number()), int64_t(index));
  const Tensor tangent = std::get<1>(at::_unpack_dual(chain(x, s.b, kChain), int64_t(index)));
  TORCH_CHECK(tangent.defined(), "the chain lost its tangent");
  const Tensor result = std::get<0>(ft::unwrapTensorAtLevel(tangent, level.number()));
  ForwardADLevel::release_idx(index);
  return result;
}

void add_level_rows(Rows& rows, const Small& s) {
  const auto plain = [=] { chain(s.a, s.b, kChain); };
  const auto plain_and_tangents = [=] {
    chain(s.a, s.b, kChain);
    for (int i = 0; i < kChain / 2; ++i) at::mul(s.a, s.b);
  };
  const auto backward_too = [=] {
    chain(s.leaf, s.b, kChain).backward(s.b);
    s.leaf.mutable_grad() = Tensor();
  };
  const auto add = [&](const char* name, std::function<void()> run, std::function<void()> baseline) {
    rows.push_back({name, kChain, std::move(run), std::move(baseline), 0, Count::Shown});
  };
  add("forward + backward, chain of 100", backward_too, {});
  add(
      "one vmap level", [=] { under_vmap(s.batch, kChain); }, [=] { chain(s.batch, s.batch, kChain); });
  add(
      "one grad level (recording)", [=] { under_grad(s); }, plain);
  add(
      "one jvp level (tangents included)", [=] { under_jvp(s); }, plain);
  add(
      "one jvp level (tangent work subtracted)", [=] { under_jvp(s); }, plain_and_tangents);
  rows.push_back(single("vmap entry and exit", [=] { under_vmap(s.batch, 0); }));
}

void add_large_rows(Rows& rows, int log2, Count count) {
  const c10::InferenceMode guard;
  const int64_t n = int64_t(1) << log2;
  const Tensor a = at::ones({n}), b = at::ones({n});
  Tensor out = at::ones({n});
  Row row = inferred("", [=]() mutable { at::add_out(out, a, b); });
  row.name = "add f32, out=, 2^" + std::to_string(log2);
  row.count = count;
  rows.push_back(std::move(row));
}

Rows all_rows() {
  at::set_num_threads(1);
  Rows rows;
  const Small small = normal_tensors();
  add_call_rows(rows, small);
  add_level_rows(rows, small);
  for (int64_t n : {4, 64}) {
    Row row = inferred("", [x = inference_tensors().a.new_ones({n, n})] { at::matmul(x, x); });
    row.name = "matmul f32[" + std::to_string(n) + "," + std::to_string(n) + "]";
    rows.push_back(std::move(row));
  }
  add_large_rows(rows, 16, Count::Shown);
  add_large_rows(rows, 25, Count::Never);
  return rows;
}
}  // namespace

int main(int argc, char** argv) {
  const auto has = [&](std::string_view option) {
    return std::find(argv + 1, argv + argc, option) != argv + argc;
  };
  const Rows rows = all_rows();
  const std::string isa = at::get_cpu_capability();
  if (has("--counted")) return bench::run_counted(rows, isa);
  const bench::Figures figures = bench::measure(rows, "libtorch " TORCH_VERSION, isa, has("--all"));
  if (has("--figures")) return bench::write_figures(figures), 0;
  bench::print_machine(isa);
  bench::print_table(rows, figures, {});
  return 0;
}
