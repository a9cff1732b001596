// Laws of sizes: long lists, long chains and wide graphs are nothing special.
#include <algorithm>
#include <optional>
#include <pthread.h>

#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/pointwise_unary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

int list_param(const Op& op) {
  for (const uint8_t p : op.tensor_params)
    if (op.schema.params[p].kind == ParamKind::TensorList) return p;
  return -1;
}
bool joins_linearly(const Op& op) { return list_param(op) >= 0 && op.has(kLinear) && both_ways(op); }

/// A list of the case's entries over and over, some of them leaves, some constants, some a leaf again.
struct LongList {
  const Case& c;
  int param;
  Tensors entries, leaves;
  std::vector<int> leaf_of = {};  ///< by entry; -1: a constant

  explicit LongList(Case& the_case) : c(the_case), param(list_param(c.op)) {
    static constexpr uint32_t kLengths[] = {2, 9, 8, 1, 17, 10, 64, 65, 256, 257, 255, 300};
    const auto& given = std::get<Tensors>(c.args[size_t(param)]);
    const uint32_t n = kLengths[the_case.draw.below(12)], w = the_case.draw.word();
    for (uint32_t i = 0; i < n; ++i) {
      const Tensor& like = given[i % given.size()];
      const uint32_t kind = is_inexact(like.dtype()) ? (w * (i + 1) >> 7) % 8 : 7;
      int leaf = -1;
      for (int l = int(leaves.size()) - 1; kind == 6 && l >= 0 && leaf < 0; --l)
        if (std::ranges::equal(leaves[size_t(l)].sizes(), like.sizes()) &&
            leaves[size_t(l)].dtype() == like.dtype())
          leaf = l;
      if (kind != 7 && leaf < 0) {
        leaf = int(leaves.size());
        leaves.push_back(to(like * double(1 + i % 5), like.dtype()));
      }
      leaf_of.push_back(leaf);
      entries.push_back(leaf < 0 ? like : leaves[size_t(leaf)]);
    }
  }
  Tensor of_list(Tensors list) const {
    Values args = c.args;
    args[size_t(param)] = std::move(list);
    return call_boxed(c.op, args)[0];
  }
  Function function() const {
    return [this](const Tensors& xs) {
      Tensors list = entries;
      for (size_t i = 0; i < list.size(); ++i)
        if (leaf_of[i] >= 0) list[i] = xs[size_t(leaf_of[i])];
      return Tensors{of_list(list)};
    };
  }
  /// The operator is linear: its derivative is itself, with zeros where nothing moves.
  Tensor moved(size_t leaf, const Tensor& t) const {
    Tensors list;
    for (size_t i = 0; i < entries.size(); ++i)
      list.push_back(leaf_of[i] == int(leaf) ? t : to(entries[i] * 0.0, entries[i].dtype()));
    return of_list(list);
  }
};

double product(const Tensor& u, const Tensor& y) { return real(sum(conj(u) * y)).item<double>(); }

Verdict lists_of_any_length(Case& c) {
  const LongList l(c);
  const Function f = l.function();
  Tensor y;
  if (l.leaves.empty() || status_of([&] { y = f(l.leaves)[0]; }).raised || !is_inexact(y.dtype()))
    return Verdict::discard();
  const Tensor u = c.direction(y);
  Tensors leaves;
  for (const Tensor& x : l.leaves) leaves.push_back(requires_grad(x));
  const Tensor root = f(leaves)[0];
  backward(root, u);
  const Tensors got = grads_of(leaves), pulled = vjp(f, l.leaves).pullback({u});
  Finding wrong = unlike_gradients(got, pulled);
  const size_t n = leaves.size();
  for (const size_t j : {size_t(0), n - 1, std::min<size_t>(8, n - 1), std::min<size_t>(255, n - 1), n / 2}) {
    const Tensor t = c.direction(l.leaves[j]);
    const Tensor along = l.moved(j, t);
    Tensors ts(n);
    ts[j] = t;
    if (!wrong.empty()) break;
    if (const double a = product(u, along), b = product(pulled[j], t); a != b)
      wrong = format("in entry {} of the leaves <u, J t> = {}, <J^H u, t> = {}", j, a, b);
    else if (wrong = disagrees(jvp(f, l.leaves, ts).tangents[0], along, Agreement::Bitwise); !wrong.empty())
      if (wrong = unlike_gradients(jvp(f, l.leaves, ts).tangents, {along}); !wrong.empty())
        wrong = "jvp: " + wrong;
  }
  if (wrong.empty()) return Verdict::pass(1);
  std::string list;
  for (size_t i = 0; i < l.entries.size(); ++i)
    list += (i ? ", " : "") + (l.leaf_of[i] < 0 ? format("c{}", i) : format("leaves[{}]", l.leaf_of[i]));
  std::string constants;
  for (size_t i = 0; i < l.entries.size(); ++i)
    if (l.leaf_of[i] < 0) constants += cpp_tensor(format("c{}", i), l.entries[i]);
  Values args = c.args;
  return Verdict::fail(format("{} entries, {} leaves: ", l.entries.size(), n) + wrong,
                       constants + cpp_tensors("x", l.leaves) + cpp_tensor("u", u) +
                           "  Tensors leaves;\n  for (const Tensor& x : Tensors" + cpp_names("x", n) +
                           ") leaves.push_back(requires_grad(x));\n  const Tensors list{" + list +
                           "};\n  // " + c.op.name + " of the list\n" +
                           format("  backward({}(list{}), u);\n", c.op.name,
                                  c.args.size() > 1 && std::holds_alternative<int64_t>(c.args[1])
                                      ? format(", {}", std::get<int64_t>(c.args[1]))
                                      : std::string()) +
                           "  for (const Tensor& x : leaves) std::cout << str(grad_of(x)) << '\\n';\n",
                       1);
}

/// Runs f on a thread whose stack is too small for recursion along a graph.
template <class F> void on_small_stack(F&& f) {
  struct Call {
    F& f;
    std::exception_ptr raised = {};
  } call{f};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{512} << 10);
  pthread_t thread;
  const int status = pthread_create(
      &thread, &attributes,
      [](void* p) -> void* {
        auto& c = *static_cast<Call*>(p);
        try {
          c.f();
        } catch (...) { c.raised = std::current_exception(); }
        return nullptr;
      },
      &call);
  pthread_attr_destroy(&attributes);
  LAMELLA_CHECK(status == 0, Internal, "a thread could not be started: {}", status);
  pthread_join(thread, nullptr);
  if (call.raised) std::rethrow_exception(call.raised);
}

/// Where the stack of this thread ends.
const char* end_of_stack() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t size = 0;
  LAMELLA_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0, Internal, "a thread knows no stack");
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return static_cast<char*>(lowest);
}

/// Runs f where 32 KB of the stack are left: calls that nest two thousand deep have no room there, and a
/// chain that takes them so far is made and run in 2 ms, not in the 20 ms that fill the whole stack.
template <class F> [[gnu::noinline]] void on_little_stack(F&& f, const char* end = end_of_stack()) {
  constexpr ptrdiff_t kLeft = 32 << 10;
  volatile char taken[2048];
  taken[0] = 0;
  if (static_cast<char*>(__builtin_frame_address(0)) - end > kLeft + ptrdiff_t(2 * sizeof taken))
    on_little_stack(f, end);
  else f();
  taken[1] = taken[0];  // the call above is no jump
}

/// What is built on each result z of a graph: n nodes one after the other, or side by side.
struct Extension {
  int64_t n;
  bool wide;
  /// Each has n + 1 times the derivative of z.
  Tensor operator()(const Tensor& z) const {
    if (wide) {
      Tensors parts(1, z);
      for (int64_t i = 0; i < n; ++i) parts.push_back(i % 3 ? z * 1 : neg(neg(z)));
      return sum(stack(parts, 0), Dims{0});
    }
    Tensor y = z;
    for (int64_t i = 0; i < n; ++i) y = y + z;
    return y;
  }
};

Verdict graphs_of_any_size(Case& c) {
  static constexpr int64_t kSizes[] = {1, 9, 8, 40, 64, 65, 130, 257, 300};
  const Graph g(c);
  const uint32_t w = c.draw.word();
  const bool base = c.draw.flag();
  if (!g.valid()) return Verdict::discard();
  Extension extension{kSizes[w % 9], bool(w >> 8 & 1)};
  if (!extension.wide && (w >> 16) % 8 == 7) extension.n = 2000;
  if (!extension.wide && (w >> 9) % 128 == 127) extension.n = 20000;
  Tensors got;
  on_small_stack([&] {
    const Function f = [&](const Tensors& xs) {
      Tensors ys = g.function()(xs);
      ys.back() = extension(ys.back());
      return ys;
    };
    Tensors us = g.cotangents();
    const double by = 1.0 / 8;  // of which n + 1 are small numbers still
    us.back() = to(us.back() * by, us.back().dtype());
    if (!base) {
      std::optional<VjpResult> made = vjp(f, g.inputs());
      got = made->pullback(us);
      on_little_stack([&] { made.reset(); });
      return;
    }
    const Tensors leaves = g.leaves();
    std::optional<LiveRoots> live(std::in_place, f(leaves), us);
    if (!live->ys.empty()) backward(live->ys, live->us);
    got = grads_of(leaves);
    on_little_stack([&] { live.reset(); });
  });
  // Linear in the last cotangent: what is wanted is the pullback of (n + 1) / 8 of it.
  Tensors us = g.cotangents();
  us.back() = to(us.back() * (double(extension.n + 1) / 8), us.back().dtype());
  const Tensors want = vjp(g.function(), g.inputs()).pullback(us);
  const Finding wrong = unlike_gradients(got, want);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      wrong,
      g.cpp() +
          format("  // the last root behind {} nodes {}, its cotangent divided by 8: {}\n", extension.n,
                 extension.wide ? "side by side" : "one after the other", base ? "backward" : "vjp") +
          "  Tensor y = roots.back();\n" +
          (extension.wide ? format("  Tensors parts(1, y);\n  for (int i = 0; i < {}; ++i) parts.push_back(i "
                                   "% 3 ? y * 1 : neg(neg(y)));\n"
                                   "  y = sum(stack(parts, 0), Dims{0});\n",
                                   extension.n)
                          : format("  for (int i = 0; i < {}; ++i) y = y + roots.back();\n", extension.n)) +
          "  backward(y, ones_like(y));\n  for (const Tensor& x : leaves) std::cout << str(grad_of(x)) << "
          "'\\n';\n",
      1);
}

}  // namespace

void add_size_laws(std::vector<Law>& laws) {
  laws.push_back(
      {92, "lists_of_any_length", "derivative",
       "In a list of any length, of leaves, constants and one leaf several times, each has its own "
       "derivative.",
       chain_options(), false, joins_linearly, lists_of_any_length});
  laws.push_back({92, "graphs_of_any_size", "derivative",
                  "Thousands of nodes one after the other, and hundreds side by side, add up, and are let go "
                  "without recursion.",
                  chain_options(), false, chained_smoothly, graphs_of_any_size});
}

}  // namespace lamella::verify
