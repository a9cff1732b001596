// Laws of gradients as tensors: dense, their owner's memory alone, and changed by nobody else.
#include <algorithm>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/graph.h"

namespace lamella::verify {

namespace {

const Storage* memory_of(const Tensor& t) { return t.impl()->storage; }

/// What is wrong with a gradient as a tensor of its own; none of `others` may show its memory.
Finding not_its_own(const Tensor& g, const Tensor& leaf, const Tensors& others) {
  if (!std::ranges::equal(g.sizes(), leaf.sizes()) || g.dtype() != leaf.dtype() ||
      g.device() != leaf.device())
    return format("is {}, expected the sizes, dtype and device of {}", g, leaf);
  int64_t dense = 1;
  for (int d = g.rank() - 1; d >= 0; --d) {
    if (g.size(d) > 1 && g.stride(d) != dense)
      return format("has stride {} in dim {}, expected {}", g.stride(d), d, dense);
    dense *= g.size(d);
  }
  if (const size_t bytes = size_t(g.numel() * itemsize(g.dtype())); memory_of(g)->nbytes != bytes)
    return format("lies in {} bytes, expected {}", memory_of(g)->nbytes, bytes);
  if (is_grad_required(g)) return "has a history that nobody asked for";
  for (const Tensor& other : others)
    if (other.defined() && memory_of(other) == memory_of(g))
      return format("shares its memory with {}", other);
  return "";
}

/// One graph in base autograd, and how backward is asked.
struct Ownership {
  const Graph& graph;
  Tensors leaves, roots;
  LiveRoots live;
  Tensors kept;  ///< of the cotangents as they were
  bool one_by_one, create_graph;
  std::vector<Tensors> seen = {};  ///< gradients after each backward

  Ownership(const Graph& g, uint32_t word)
      : graph(g),
        leaves(g.leaves()),
        roots(g.function()(leaves)),
        live(roots, g.given()),
        one_by_one(word & 1),
        create_graph(word % 6 >= 4) {
    for (Tensor& u : live.us) {
      if (u.defined() && word & 8) u = requires_grad(u);  // derivatives of cotangents are not asked for
      kept.push_back(u.defined() ? plain_copy(u) : Tensor());
    }
  }
  ~Ownership() {
    for (const Tensor& leaf : leaves) clear_grad(leaf);  // with create_graph it holds its leaf
  }
  Ownership(const Ownership&) = delete;

  void run() {
    if (one_by_one)
      for (size_t k = 0; k < live.ys.size(); ++k) backward(live.ys[k], live.us[k], {create_graph});
    else if (!live.ys.empty()) backward(live.ys, live.us, {create_graph});
    seen.push_back(grads_of(leaves));
  }

  Tensors all_but(size_t j) const {
    Tensors out = roots;
    for (const Tensors& some : {live.us, leaves}) out.insert(out.end(), some.begin(), some.end());
    for (size_t r = 0; r < seen.size(); ++r)
      for (size_t k = 0; k < leaves.size(); ++k)
        if (k != j || !(seen[r][k].is_same(seen.back()[k]))) out.push_back(seen[r][k]);
    return out;
  }

  Finding wrong() const {
    const double times = double(seen.size());
    for (size_t r = 0; r < seen.size(); ++r)
      if (const Finding d = unlike_gradients(seen[r], graph.gradients(), double(r + 1)); !d.empty())
        return format("of backward {} of {}, ", r + 1, times) + d;
    for (size_t k = 0; k < kept.size(); ++k)
      if (kept[k].defined() && !differs(live.us[k], kept[k]).empty())
        return format("cotangent {} was written", k);
    for (size_t j = 0; j < leaves.size() && !create_graph; ++j)
      if (const Tensor& g = seen.back()[j]; g.defined())
        if (const Finding d = not_its_own(g, leaves[j], all_but(j)); !d.empty())
          return format("gradient {} ", j) + d;
    return "";
  }

  /// Writes to each gradient in turn.
  Finding written() const {
    if (create_graph) return "";
    Tensors before;
    for (const Tensor& g : seen.back()) before.push_back(g.defined() ? plain_copy(g) : Tensor());
    for (size_t j = 0; j < leaves.size(); ++j) {
      if (!seen.back()[j].defined()) continue;
      fill_(seen.back()[j], double(100 + j));
      for (size_t k = 0; k < leaves.size(); ++k)
        if (const Tensor& g = seen.back()[k]; k != j && g.defined()) {
          if (!differs(g, k < j ? full(g.sizes(), double(100 + k), g.dtype()) : before[k]).empty())
            return format("writing to gradient {} changed gradient {}", j, k);
        }
    }
    return "";
  }
};

/// A cotangent of other sizes or of another dtype is refused, and nothing changes.
Finding accepts_other(const Ownership& o, uint32_t word) {
  if (o.live.ys.empty()) return "";
  const size_t k = word % o.live.ys.size();
  const Tensor& y = o.live.ys[k];
  Dims sizes(y.sizes());
  sizes.insert(word >> 8 & 1 ? y.rank() : 0, 1);
  if (word >> 9 & 1 && y.rank() > 1) sizes = {y.numel()};
  const bool dtype = word >> 10 & 1;
  Tensors us = o.live.us;
  us[k] =
      dtype ? zeros(y.sizes(), y.dtype() == DType::F32 ? DType::F64 : DType::F32) : zeros(sizes, y.dtype());
  for (const bool create_graph : {false, true}) {
    const Status s = status_of([&] { backward(o.live.ys, us, {create_graph}); });
    if (!s.raised || s.code != (dtype ? ErrorCode::DType : ErrorCode::Shape))
      return format("a cotangent {} of {}: ", us[k], y) + str(s);
  }
  for (const Tensor& leaf : o.leaves)
    if (grad_of(leaf).defined()) return "a refused backward changed a gradient";
  return "";
}

Verdict graph_failure(const Graph& g, const Finding& wrong, const std::string& code) {
  return Verdict::fail(wrong,
                       g.cpp() + code +
                           "  for (size_t k = 0; k < leaves.size(); ++k)\n    std::cout << \"got      \" << "
                           "str(grad_of(leaves[k])) << \"\\nexpected \" << str(want[k]) << '\\n';\n",
                       1);
}

/// Roots without a cotangent are roots with zeros, whichever they are.
Finding absent_unlike_zero(const Graph& g, uint32_t word) {
  const VjpResult r = vjp(g.function(), g.inputs());
  Tensors some = g.cotangents(), zero = some;
  for (size_t k = 0; k < some.size(); ++k)
    if (word >> (k % 30) & 1) some[k] = Tensor(), zero[k] = zeros(zero[k].sizes(), zero[k].dtype());
  const Finding d = unlike_gradients(r.pullback(some), r.pullback(zero));
  return d.empty() ? "" : "a pullback without some cotangents, " + d;
}

/// Gradients of tensors on the way and of leaves, asked for together, are those that each has alone, in
/// whichever order they are named, one of them twice.
Finding targets_unlike_alone(const Graph& g, uint32_t word) {
  const Tensors leaves = g.leaves();
  Tensors beside, way;  // beside the tensors on the way fewer steps lead to the leaves: nodes are lower there
  for (const Tensor& x : leaves) beside.push_back(mul(mul(x, 3), 2));
  for (const Tensor& x : leaves) way.push_back(mul(mul(mul(x, x), 1), 1));
  Tensors roots = g.function()(way), us = g.cotangents();
  if (LiveRoots(roots, us).ys.empty()) return "";
  for (const Tensor& y : beside) roots.push_back(y), us.push_back(ones(y.sizes(), y.dtype()));
  const LiveRoots live(roots, us);
  Tensors targets = leaves;
  targets.insert(word & 1 ? targets.begin() : targets.end(), way.begin(), way.end());
  if (word & 2) targets.push_back(targets[word / 4 % targets.size()]);
  const auto grads = [&](const Tensors& of) {
    return autograd::grad(live.ys, of, live.us, {.allow_unused = true});
  };
  const Tensors together = grads(targets);
  for (size_t k = 0; k < targets.size(); ++k) {
    const Tensor alone = grads({targets[k]})[0];
    Finding d;
    if (alone.defined() != together[k].defined()) d = "one of the two is missing";
    else if (alone.defined()) d = unlike_gradients({together[k]}, {alone});
    if (!d.empty())
      return format("autograd::grad of {} targets: that of target {} and alone: ", targets.size(), k) + d;
  }
  return "";
}

Verdict gradients_are_own(Case& c) {
  const Graph g(c);
  const uint32_t word = c.draw.word(), bad = c.draw.word();
  const uint32_t again = c.draw.below(3);
  if (!g.valid()) return Verdict::discard();
  Ownership o(g, word);
  Finding wrong = word % 3 == 1 ? accepts_other(o, bad) : word % 3 == 2 ? absent_unlike_zero(g, bad) : "";
  for (uint32_t r = 0; r <= again && wrong.empty(); ++r) {
    o.run();
    wrong = o.wrong();
  }
  if (wrong.empty() && !o.live.ys.empty()) {
    const Tensors got = autograd::grad(o.live.ys, o.leaves, o.live.us, {.allow_unused = true});
    if (wrong = unlike_gradients(got, g.gradients()); !wrong.empty()) wrong = "autograd::grad: " + wrong;
    for (size_t j = 0; j < got.size() && wrong.empty(); ++j)
      if (got[j].defined()) {
        Tensors others = o.all_but(j);
        for (size_t k = 0; k < got.size(); ++k)
          if (k != j) others.push_back(got[k]);
        others.push_back(o.seen.back()[j]);
        if (wrong = not_its_own(got[j], o.leaves[j], others); !wrong.empty())
          wrong = format("autograd::grad: gradient {} ", j) + wrong;
      }
    if (wrong.empty()) wrong = o.wrong();
  }
  if (wrong.empty()) wrong = o.written();
  if (wrong.empty() && bad % 4 == 3) wrong = targets_unlike_alone(g, bad >> 2);
  if (wrong.empty()) return Verdict::pass(1);
  const char* options = o.create_graph ? ", {.create_graph = true}" : "";
  return graph_failure(
      g, wrong,
      o.one_by_one
          ? format("  for (size_t k = 0; k < roots.size(); ++k) backward(roots[k], us[k]{});\n", options)
          : format("  backward(roots, us{});\n", options));
}

/// Gradients that carry derivatives, differentiated again: in the leaves and in the cotangents that were
/// given.
struct SecondOrder {
  const Graph& graph;
  Tensors inputs, vs = {}, want = {};  ///< leaves, then cotangents; directions of gradients

  explicit SecondOrder(Case& c, const Graph& g) : graph(g), inputs(g.inputs()) {
    for (const Tensor& x : inputs) vs.push_back(c.direction(x));
    for (const Tensor& u : g.given())
      if (u.defined()) inputs.push_back(u);
    const Function pulled = [&](const Tensors& all) {
      const size_t n = g.inputs().size();
      return vjp(g.function(), {all.begin(), all.begin() + long(n)}).pullback(cotangents(all, true));
    };
    if (status_of([&] { want = vjp(pulled, inputs).pullback(vs); }).raised) want = {};
  }
  /// Those of `all` for each root; where none was given, ones or none.
  Tensors cotangents(const Tensors& all, bool ones) const {
    Tensors out;
    size_t at = graph.inputs().size();
    for (size_t k = 0; k < graph.given().size(); ++k)
      out.push_back(graph.given()[k].defined() ? all[at++] : ones ? graph.cotangents()[k] : Tensor());
    return out;
  }
  /// Empty when base autograd agrees.
  Finding wrong(bool accumulate) const {
    Tensors leaves;
    for (const Tensor& x : inputs) leaves.push_back(requires_grad(x));
    const size_t n = graph.inputs().size();
    const Tensors xs(leaves.begin(), leaves.begin() + long(n));
    const LiveRoots live(graph.function()(xs), cotangents(leaves, false));
    if (live.ys.empty()) return unlike_gradients(Tensors(n), graph.gradients());
    Tensors first, second(leaves.size());
    if (accumulate) {
      backward(live.ys, live.us, {.create_graph = true});
      first = grads_of(xs);
      for (const Tensor& x : leaves) clear_grad(x);
    } else {
      const NoGrad off;  // who asks for a graph gets one
      first = autograd::grad(live.ys, xs, live.us, {.create_graph = true, .allow_unused = true});
    }
    for (size_t j = 0; j < n; ++j)
      if (!first[j].defined()) first[j] = zeros(xs[j].sizes(), xs[j].dtype());
    const LiveRoots again(first, vs);
    if (!again.ys.empty()) second = autograd::grad(again.ys, leaves, again.us, {.allow_unused = true});
    const Finding d = unlike_gradients(first, graph.gradients());
    if (!d.empty()) return d;
    const Finding d2 = unlike_gradients(second, want);
    return d2.empty() ? "" : "second derivatives (of cotangents behind those of inputs): " + d2;
  }
};

Verdict gradients_go_on(Case& c) {
  const Graph g(c);
  if (!g.valid()) return Verdict::discard();
  const bool accumulate = c.draw.flag();
  const SecondOrder s(c, g);
  if (s.want.empty() || !small_numbers(s.want)) return Verdict::discard();
  const Finding wrong = s.wrong(accumulate);
  if (wrong.empty()) return Verdict::pass(2);
  return Verdict::fail(
      wrong,
      g.cpp() + cpp_tensors("v", s.vs) + cpp_tensors("second", s.want) + "  const Tensors vs" +
          cpp_names("v", s.vs.size()) + ", want2" + cpp_names("second", s.want.size()) +
          ";\n  Tensors inner = leaves;\n  for (Tensor& u : us)\n    if (u.defined()) inner.push_back(u = "
          "requires_grad(u));\n" +
          (accumulate
               ? "  backward(roots, us, {.create_graph = true});\n  Tensors first;\n  for (const Tensor& x : "
                 "leaves) first.push_back(grad_of(x)), clear_grad(x);\n"
               : "  Tensors first;\n  {\n    const NoGrad off;\n    first = autograd::grad(roots, leaves, "
                 "us, "
                 "{.create_graph = true, .allow_unused = true});\n  }\n") +
          "  Tensors ys, by;\n  for (size_t k = 0; k < first.size(); ++k)\n    if (first[k].defined() && "
          "is_grad_required(first[k])) ys.push_back(first[k]), by.push_back(vs[k]);\n"
          "  const Tensors second = autograd::grad(ys, inner, by, {.allow_unused = true});\n"
          "  for (size_t k = 0; k < inner.size(); ++k)\n    std::cout << \"got      \" << str(second[k]) << "
          "\"\\nexpected \" << str(want2[k]) << '\\n';\n",
      2);
}

}  // namespace

void add_graph_laws(std::vector<Law>& laws) {
  laws.push_back({86, "gradients_are_own", "derivative",
                  "Gradients of leaves are those of vjp, dense and each in memory of its own; a second "
                  "backward adds to them and changes none that was read before; gradients of several targets "
                  "together are those of each alone.",
                  chain_options(), false, chained_smoothly, gradients_are_own});
  laws.push_back({86, "gradients_go_on", "derivative",
                  "With create_graph a gradient carries the derivatives that levels give, in cotangents too.",
                  chain_options(), false, chained_smoothly, gradients_go_on});
}

}  // namespace lamella::verify
