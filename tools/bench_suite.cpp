// What the suite asks. Sizes are those that figures of other libraries were published for.
#include "bench_suite.h"

#include "lamella/lamella.h"

#include "kernel_option.h"

namespace lamella::tools::bench {

namespace {
using Set = std::vector<std::pair<std::string, std::string>>;

Asked asked(const char* op, const char* sizes, Set set = {}, Layout layout = Layout::Contiguous,
            DType dtype = DType::F32) {
  return {.op = op, .sizes = parse_sizes(sizes), .dtype = dtype, .layout = layout, .set = std::move(set)};
}

std::vector<Asked> of_memory() {
  const char *large = "2^22", *square = "2048x2048";
  std::vector<Asked> out{asked("add", large),
                         asked("add", square, {}, Layout::Row),
                         asked("add", square, {}, Layout::Column),
                         asked("add", square, {}, Layout::Transposed),
                         asked("add", square, {}, Layout::Stepped),
                         asked("add", large, {}, Layout::Contiguous, DType::F64),
                         asked("add", large, {}, Layout::Contiguous, DType::BF16),
                         asked("clone", square, {}, Layout::Transposed),
                         asked("clone", square)};
  for (const char* op : {"exp", "tanh", "sin", "log"}) out.push_back(asked(op, large));
  out.push_back(asked("where", square));
  for (const char* op : {"rand", "randn"}) out.push_back(asked(op, large));
  return out;
}

std::vector<Asked> along_dims() {
  const char* square = "2048x2048";
  const Set rows{{"dim", "1"}}, columns{{"dim", "0"}};
  std::vector<Asked> out{asked("sum", square), asked("sum", square, rows), asked("sum", square, columns),
                         asked("amax", square, rows), asked("argmax", square, rows)};
  for (const char* op : {"softmax", "log_softmax"}) out.push_back(asked(op, square, rows));
  out.push_back(asked("layer_norm", square));
  out.push_back(asked("var", square, rows));
  out.push_back(asked("cumsum", square, rows));
  out.push_back(asked("cumsum", square, columns));
  out.push_back(asked("sort", square));
  out.push_back(asked("index_select", square));
  for (const char* op : {"gather", "scatter_add"})
    for (const DType index : {DType::I64, DType::I32}) {
      out.push_back(asked(op, square, rows));
      out.back().index = index;
    }
  return out;
}

std::vector<Asked> of_arithmetic() {
  std::vector<Asked> out;
  for (const char* n : {"64", "256", "1024"}) out.push_back(asked("matmul", n));
  out.push_back(asked("bmm", "1024x8x8"));
  out.push_back(asked("bmm", "4096x4x4"));
  out.push_back(asked("cholesky", "256x8x8"));
  out.push_back(asked("linalg_solve_triangular", "256x8x8"));
  return out;
}

Item program(std::string name, PeerText peer, std::function<std::function<void()>()> make,
             std::string against = {}) {
  const auto work = [=] {
    Work w;
    w.name = w.family = name, w.peer = peer, w.against = against;
    w.run = make();
    return w;
  };
  return {name, work, {}};
}

void add_small_calls(std::vector<Item>& out) {
  const std::string pair = "x = torch.ones(4)\ny = torch.ones(4)";
  out.push_back(program("add f32[4]", {pair, "torch.add(x, y)", ""},
                        [] { return [a = ones({4}), b = ones({4})] { add(a, b); }; }));
  out.push_back(program("add_ f32[4]", {pair, "x.add_(y)", ""},
                        [] { return [a = ones({4}), b = zeros({4})] { add_(a, b); }; }));
  out.push_back(program("add f32[4] and a number", {pair, "x + 2.0", ""},
                        [] { return [a = ones({4})] { add(a, Scalar(2.0)); }; }));
  out.push_back(program("select f32[4,4]", {"x = torch.ones(4, 4)", "x.select(0, 1)", ""}, [] {
    return [a = ones({4, 4})] { select(a, 0, 1); };
  }));
  out.push_back(program("empty f32[4]", {"", "torch.empty(4)", ""}, [] { return [] { empty({4}); }; }));
}

constexpr const char* kTanhMap =
    "W = torch.randn(64, 64) / 8\nV = torch.randn(64, 64) / 8\nx = torch.randn(64)\n"
    "def f(x): return torch.tanh(V @ torch.tanh(W @ x))\n";

struct TanhMap {
  Tensor w = div(randn({64, 64}), Scalar(8.0)), v = div(randn({64, 64}), Scalar(8.0)), x = randn({64});
  Tensor operator()(const Tensor& at) const { return tanh(mv(v, tanh(mv(w, at)))); }
};

void add_jacobians(std::vector<Item>& out) {
  out.push_back(program("jacrev of tanh(V tanh(W x)), n = 64", {kTanhMap, "torch.func.jacrev(f)(x)", ""}, [] {
    const TanhMap f;
    return [x = f.x, j = jacrev(UnaryFunction(f))] { j(x); };
  }));
  out.push_back(program("hessian of its sum, n = 64",
                        {kTanhMap, "torch.func.hessian(lambda x: f(x).sum())(x)", ""}, [] {
                          const TanhMap f;
                          const UnaryFunction total = [f](const Tensor& at) { return sum(f(at)); };
                          return [x = f.x, h = hessian(total)] { h(x); };
                        }));
}

/// Mean square of an MLP 64-128-10 at one example: W, b, V, c, x, y.
Tensor loss_of_mlp(const Tensors& v) {
  const Tensor d = sub(add(mv(v[2], tanh(add(mv(v[0], v[4]), v[1]))), v[3]), v[5]);
  return sum(mul(d, d));
}

void add_per_sample(std::vector<Item>& out) {
  const char* const setup =
      "p = [torch.randn(128, 64) / 8, torch.randn(128), torch.randn(10, 128) / 12, torch.randn(10)]\n"
      "x = torch.randn(256, 64)\ny = torch.randn(256, 10)\n"
      "def f(W, b, V, c, x, y): return ((V @ torch.tanh(W @ x + b) + c - y) ** 2).sum()\n"
      "g = torch.func.vmap(torch.func.grad(f, argnums=(0, 1, 2, 3)), in_dims=(None, None, None, None, 0, 0))";
  out.push_back(program("gradients per sample, MLP 64-128-10, 256 of them", {setup, "g(*p, x, y)", ""}, [] {
    const Tensors args{div(randn({128, 64}), Scalar(8.0)),
                       randn({128}),
                       div(randn({10, 128}), Scalar(12.0)),
                       randn({10}),
                       randn({256, 64}),
                       randn({256, 10})};
    const Function each = vmap(grad(ScalarFunction(loss_of_mlp), {0, 1, 2, 3}),
                               InDims{kNone, kNone, kNone, kNone, 0, 0}, InDims{0});
    return [args, each] { each(args); };
  }));
}

/// The same by vmap, by a loop over lanes and by the batched program that a person would write.
void add_lanes(std::vector<Item>& out) {
  const std::string mapped = "vmap of tanh(W x), 256 lanes", by_hand = "tanh(X W^T), by hand",
                    loop = "the loop over 256 lanes";
  const char* const setup = "W = torch.randn(64, 64)\nx = torch.randn(256, 64)\n";
  out.push_back(program(
      mapped, {setup, "torch.func.vmap(lambda x: torch.tanh(W @ x))(x)", ""},
      [] {
        const Tensor w = randn({64, 64});
        const UnaryFunction f = [w](const Tensor& x) { return tanh(mv(w, x)); };
        return [x = randn({256, 64}), g = vmap(f)] { g(x); };
      },
      by_hand));
  out.push_back(program(by_hand, {setup, "torch.tanh(x @ W.mT)", ""}, [] {
    return [w = transpose(randn({64, 64}), 0, 1), x = randn({256, 64})] { tanh(matmul(x, w)); };
  }));
  out.push_back(program(
      loop, {setup, "[torch.tanh(W @ x[i]) for i in range(256)]", ""},
      [] {
        return [w = randn({64, 64}), x = randn({256, 64})] {
          for (int64_t i = 0; i < 256; ++i) tanh(mv(w, select(x, 0, i)));
        };
      },
      mapped));
}

void add_tape(std::vector<Item>& out) {
  const char* const setup =
      "torch.set_grad_enabled(True)\na = torch.ones(4, requires_grad=True)\nb = torch.ones(4)\n"
      "def f():\n  x = a\n  for i in range(100): x = x * b if i % 2 else x + b\n  x.backward(b)\n  a.grad = "
      "None\n";
  out.push_back(program("forward and backward, chain of 100 on f32[4]", {setup, "f()", ""}, [] {
    return [a = requires_grad(ones({4})), b = ones({4})] {
      Tensor x = a;
      for (int i = 0; i < 100; ++i) x = i % 2 ? mul(x, b) : add(x, b);
      backward(x, b);
      clear_grad(a);
    };
  }));
}
}  // namespace

Item item_of(const Asked& a, bool all_kernels) {
  std::string name = format("{} {}{}", a.op, a.dtype, a.sizes);
  return {name, [a] { return work_of(a); }, all_kernels ? kernels_of(a.op) : std::vector<std::string>{}};
}

std::vector<Item> suite_items() {
  std::vector<Item> out;
  for (const std::vector<Asked>& part : {of_memory(), along_dims(), of_arithmetic()})
    for (const Asked& a : part) out.push_back(item_of(a, true));
  add_small_calls(out);
  add_jacobians(out);
  add_per_sample(out);
  add_lanes(out);
  add_tape(out);
  return out;
}

}  // namespace lamella::tools::bench
