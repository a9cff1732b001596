// The law of hooks: what they see, in which order, what they may change, and what is left when one throws.
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/custom.h"
#include "lamella/transforms/saved_hooks.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/hooked_graph.h"

namespace lamella::verify {

namespace {

/// What is saved goes through hooks, which compute without being recorded, and without hooks.
Finding packed_otherwise(const Graph& g) {
  const Tensors want = vjp(g.function(), g.inputs()).pullback(g.cotangents());
  if (!small_numbers(want)) return "";
  const Tensors leaves = g.leaves();
  Tensors roots;
  Finding wrong;
  bool inside = false;
  {
    const SavedTensorHooks hooks([&](const Tensor& value) -> Unpack {
      if (inside) wrong = "a hook of saved tensors is called for what it computes itself";
      inside = true;
      if (is_grad_required(leaves[0] * leaves[0]))
        wrong = "what a hook of saved tensors computes is recorded";
      inside = false;
      return [kept = clone(value)] { return kept; };
    });
    roots = g.function()(leaves);
  }
  const LiveRoots live(roots, g.cotangents());
  if (!live.ys.empty()) backward(live.ys, live.us);
  if (wrong.empty()) wrong = unlike_gradients(grads_of(leaves), want);
  return wrong.empty() ? "" : "with hooks of what is saved: " + wrong;
}

Verdict hooks_see_gradients(Case& c) {
  const Graph g(c);
  const bool throws = c.draw.one_in(3);
  const uint32_t runs = 1 + c.draw.below(2);
  if (!g.valid()) return Verdict::discard();
  HookedGraph hooked(c, g);
  Tensors want;
  const Status s = status_of([&] { want = hooked.wanted(); });
  if (s.raised || !small_numbers(want)) return Verdict::discard();
  Finding wrong;
  hooked.build();
  for (uint32_t r = 0; r < runs && wrong.empty(); ++r) {
    hooked.run();
    wrong = hooked.wrong(want);
  }
  if (wrong.empty()) wrong = hooked.wrong_targets(want);
  if (wrong.empty() && throws) wrong = hooked.broken(want);
  hooked.end();
  if (wrong.empty() && throws) wrong = packed_otherwise(g);
  return wrong.empty() ? Verdict::pass(1) : Verdict::fail(wrong, g.cpp() + hooked.cpp(), 1);
}

/// Hooks of a view whose base was written before they came, and the gradient that it keeps.
Finding stale_view_forgets(const Tensor& root, const Tensor& u) {
  const Tensor z = clone(root), view = reshape(z, {z.numel()}), ct = reshape(plain_copy(u), {u.numel()});
  mul_(z, full({}, 2.0, z.dtype()));
  Tensor seen;
  add_hook(view, [&](const Tensor& given) {
    seen = given;
    return Tensor();
  });
  retain_grad(view);
  backward(view, ct);
  Finding wrong = unlike_gradients({seen}, {ct});
  if (wrong.empty()) wrong = unlike_gradients({grad_of(view)}, {ct});
  // Written after it kept its gradient, and used before anybody asks for it again.
  mul_(z, full({}, 2.0, z.dtype()));
  const Tensor used = view * 1;
  backward(used, ct);
  if (wrong.empty()) wrong = unlike_gradients({grad_of(view)}, {ct});
  if (wrong.empty()) wrong = unlike_gradients(autograd::grad({used}, {view}, {ct}), {ct});
  return wrong.empty() ? "" : "of a view of what was written before: " + wrong;
}

Tensor first_row(const Tensor& x) { return x.rank() > 0 ? slice(x, 0, 0, 1) : unsqueeze(x, 0); }
Tensor last_row(const Tensor& x) { return x.rank() > 0 ? select(x, 0, -1) : unsqueeze(x, 0); }
Tensor in_one_dim(const Tensor& x) { return view(x, {x.numel()}); }
Tensor turned(const Tensor& x) { return x.rank() > 1 ? transpose(x, 0, -1) : unsqueeze(x, -1); }

/// A handle was plain when its memory was written through another one, with derivatives. What is viewed of it
/// since is a function of it: the gradient, its hook and retain_grad see what comes through the view.
Finding late_handle_is_passed(const Tensor& root, const Tensor& u, uint32_t word) {
  static constexpr Tensor (*kViews[])(const Tensor&) = {first_row, last_row, in_one_dim, turned};
  const auto seen_in = kViews[word % 4];
  const Tensor z = zeros(root.sizes(), root.dtype()), other = reshape(z, {z.numel()});
  copy_(other, reshape(root, {root.numel()}));
  Tensor given, want = zeros(u.sizes(), u.dtype());
  const Tensor ct = plain_copy(seen_in(plain_copy(u))), view = seen_in(z), used = word & 4 ? view * 1 : view;
  copy_(seen_in(want), ct);
  Finding wrong = unlike_gradients(autograd::grad({used}, {z}, {ct}, {.allow_unused = true}), {want});
  add_hook(z, [&](const Tensor& of) {
    given = of;
    return Tensor();
  });
  retain_grad(z);
  backward(used, ct);
  if (wrong.empty()) wrong = unlike_gradients({given, grad_of(z)}, {want, want});
  return wrong.empty() ? ""
                       : "of what was plain before its memory was written, through a view of it: " + wrong;
}

/// Of a node of two results one has no cotangent: its hook is given none there, and what it gives goes on.
Finding absent_is_not_filled(const Tensor& u) {
  const Function two = custom_vjp(
      [](const Tensors& xs) {
        return std::pair(Tensors{xs[0] * 2, xs[0] * 4}, Tensors());
      },
      [](const Tensors&, const Tensors& cts) { return Tensors{cts[0] * 2 + cts[1] * 4}; });
  const Tensor leaf = requires_grad(plain_copy(u));
  const Tensors ys = two({leaf});
  bool absent = false;
  add_node_hook(ys[0], {.before = [&](const Tensors& cts) {
                  absent = cts.size() == 2 && !cts[1].defined();
                  return Tensors{Tensor(), cts[0]};
                }});
  backward(ys[0], u);
  if (!absent) return "a hook of a node with two results is not told which of them has no cotangent";
  const Finding wrong = unlike_gradients({grad_of(leaf)}, {u}, 6);
  return wrong.empty() ? "" : "a hook gives a cotangent where there was none: " + wrong;
}

/// A tensor that keeps its gradient does so when it is written; hooks stay with what it was.
Verdict retained_follow_writes(Case& c) {
  const Graph g(c);
  const uint32_t at = c.draw.word();
  const bool part = c.draw.flag();
  if (!g.valid()) return Verdict::discard();
  const Tensors leaves = g.leaves(), roots = g.function()(leaves);
  const size_t k = at % roots.size();
  const Tensor z = clone(roots[k]), u = g.cotangents()[k];
  if (!is_grad_required(z)) return Verdict::discard();
  Tensor factor = full(z.sizes(), 2.0, z.dtype());
  if (part && z.rank() > 0) fill_(slice(factor, 0, 1), 1.0);
  Tensor before;
  add_hook(z, [&](const Tensor& ct) {
    before = ct;
    return Tensor();
  });
  retain_grad(z);
  mul_(z, factor);
  backward(z, u);
  Tensors us;
  for (const Tensor& ct : g.cotangents()) us.push_back(zeros(ct.sizes(), ct.dtype()));
  us[k] = to(u * factor, u.dtype());
  Finding wrong = unlike_gradients({grad_of(z)}, {plain_copy(u)});
  if (!wrong.empty()) wrong = "retained: " + wrong;
  if (wrong.empty() && !(wrong = unlike_gradients({before}, {us[k]})).empty())
    wrong = "a hook added before the write sees: " + wrong;
  if (wrong.empty()) wrong = unlike_gradients(grads_of(leaves), vjp(g.function(), g.inputs()).pullback(us));
  if (wrong.empty() && at >> 31) wrong = stale_view_forgets(roots[k], u);
  if (wrong.empty() && (at >> 30 & 1)) wrong = absent_is_not_filled(u);
  if (wrong.empty() && (at >> 29 & 1)) wrong = late_handle_is_passed(roots[k], u, at >> 26);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong,
                       g.cpp() + format("  const Tensor z = clone(all[{}]);\n", k) +
                           cpp_tensor("factor", factor) + "  retain_grad(z);\n  mul_(z, factor);\n" +
                           cpp_tensor("u", u) +
                           "  backward(z, u);\n  std::cout << \"got      \" << str(grad_of(z)) << "
                           "\"\\nexpected \" << str(u) << '\\n';\n",
                       1);
}

}  // namespace

void add_hook_laws(std::vector<Law>& laws) {
  laws.push_back(
      {87, "hooks_see_gradients", "derivative",
       "Hooks of tensors, nodes and accumulation run once each, in order, see complete cotangents and "
       "sums, change what goes on from there alone, and when one throws nothing has changed.",
       chain_options(), false, chained_smoothly, hooks_see_gradients});
  laws.push_back(
      {87, "retained_follow_writes", "derivative",
       "A tensor that keeps its gradient keeps it when it is written in place; a hook stays with "
       "what it was added to, and one that comes to a view after a write to its base is the view's; views "
       "of what was plain before such a write are functions of it.",
       chain_options(), false, chained_smoothly, retained_follow_writes});
}

}  // namespace lamella::verify
