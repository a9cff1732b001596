// Running base autograd backwards: gradients of leaves and of tensors on the way, hooks around them.
#include <algorithm>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/history.h"
#include "lamella/transforms/tapes/steps.h"
#include "lamella/transforms/writes/content.h"

namespace lamella {

namespace {

/// A gradient that is dense and shares no memory with anything.
Tensor own_dense(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  const bool own = impl.unique() && impl.contiguous && impl.storage && impl.storage->unique() &&
                   impl.storage->nbytes == size_t(impl.numel) * size_t(itemsize(impl.dtype));
  return own ? t : clone(t);
}

Tensor replaced(const Tensor& given, const Tensor& ct, std::string_view who) {
  if (!given.defined()) return ct;
  LAMELLA_CHECK(given.dtype() == ct.dtype(), DType, "backward: {} returned {}, expected {}, or nothing", who,
                given, ct);
  LAMELLA_CHECK(std::ranges::equal(given.sizes(), ct.sizes()), Shape,
                "backward: {} returned {}, expected {}, or nothing", who, given, ct);
  LAMELLA_CHECK(given.device() == ct.device(), Device, "backward: {} returned a tensor on {}, expected {}",
                who, name(given.device()), name(ct.device()));
  return given;
}

/// What `hook` gives for `cts`, which it may not write to: other paths may show the same memory.
template <class F> auto without_writes(TensorSpan cts, std::string_view who, F&& hook) {
  const WritesSeen before(cts);
  auto out = hook();
  if (const auto i = before.written(cts))
    LAMELLA_CHECK(false, Value, "backward: {} wrote to a cotangent, {}; expected it to return a clone", who,
                  cts[*i]);
  return out;
}

/// The hooks of a run, and what it found. Gradients wait until all rules have run: what raises on the way
/// changes none.
class Run final : public TapeHooks {
 public:
  Run(bool create_graph, bool accumulates) : accumulates_(accumulates) { keeps_history = create_graph; }

  void complete(Node& node, std::span<Tensor> cts) override {
    NodeState& state = state_of(node);
    for (const auto& hook : hooks_of(state))
      if (Tensor& ct = cts[hook->output]; hook->tensor && ct.defined())
        ct = replaced(without_writes({&ct, 1}, "a hook of a tensor", [&] { return hook->tensor(ct); }), ct,
                      "a hook of a tensor");
    for (size_t k = 0; accumulates_ && k < cts.size(); ++k)
      if (state.retains(k) && cts[k].defined())
        found_.push_back({NodeRef::share(&node), uint32_t(k), cts[k], {}, {}});
  }

  void before(Node& node, std::span<Tensor> cts) override {
    for (const auto& hook : hooks_of(state_of(node)))
      if (hook->node.before) {
        const Tensors all(cts.begin(), cts.end());
        put(without_writes(all, "a hook before a node", [&] { return hook->node.before(all); }), cts,
            "a hook before a node");
      }
  }

  bool watches(Node& node) override {
    return std::ranges::any_of(hooks_of(state_of(node)), [](const auto& h) { return bool(h->node.after); });
  }

  void after(Node& node, Tensors& to_inputs, TensorSpan cts) override {
    for (const auto& hook : hooks_of(state_of(node)))
      if (hook->node.after) {
        const std::string_view who = "a hook after a node";
        const Tensors from(cts.begin(), cts.end());
        put(without_writes(
                to_inputs, who,
                [&] { return without_writes(from, who, [&] { return hook->node.after(to_inputs, from); }); }),
            to_inputs, who);
      }
  }

  void on_leaf(Node& leaf, const Tensor& ct) override {
    if (accumulates_) found_.push_back({NodeRef::share(&leaf), 0, ct, {}, {}});
  }

  const Shape& type_of(Node& leaf) override { return state_of(leaf).type; }

  Tensor with_history(const Tensor& value, Node& from, uint32_t output) override {
    if (!value.defined()) return value;  // of a list, which no formula reads
    Tensor t = make_alias(value);
    if (is_inexact(t.dtype())) attach(t, {NodeRef::share(&from), output});
    return t;
  }

  /// Adds what was found to the leaves. Sums are made before the first leaf changes; where another thread
  /// adds to a leaf meanwhile, that sum is made again.
  void accumulate() {
    for (Found& f : found_) sum_up(f);
    for (Found& f : found_)
      while (!put(f)) sum_up(f);
    for (Found& f : found_)
      for (const auto& hook : hooks_of(state_of(*f.node)))
        if (hook->accumulated && !f.node->op)  // no gradient: the leaf is gone, or a hook has cleared it
          if (const Tensor now = gradient(f); now.defined()) hook->accumulated(now);
  }

 private:
  struct Found {
    NodeRef node;
    uint32_t output;
    Tensor cotangent, seen, total;
    Tensor& sum() const { return state_of(*node).grad(output); }
  };
  using Hooks = std::vector<std::shared_ptr<HookHandle::State>>;

  static Hooks hooks_of(NodeState& state) {
    const std::lock_guard lock(state.mutex);
    if (state.hooks.empty()) return {};
    Hooks live;
    for (const auto& hook : state.hooks)
      if (!hook->removed.load(std::memory_order_acquire)) live.push_back(hook);
    return live;
  }

  static void put(const Tensors& given, std::span<Tensor> into, std::string_view who) {
    LAMELLA_CHECK(given.empty() || given.size() == into.size(), Shape,
                  "backward: {} returned {} tensors, expected {}, or none", who, given.size(), into.size());
    for (size_t k = 0; k < given.size(); ++k)
      into[k] = into[k].defined() ? replaced(given[k], into[k], who) : given[k];
  }

  static Tensor gradient(const Found& f) {
    const std::lock_guard lock(state_of(*f.node).mutex);
    return f.sum();
  }

  void sum_up(Found& f) {
    f.seen = gradient(f);
    if (f.seen.defined()) f.total = add(f.seen, f.cotangent);
    else f.total = keeps_history ? f.cotangent : own_dense(f.cotangent);
  }

  bool put(Found& f) {
    NodeState& state = state_of(*f.node);
    const std::lock_guard lock(state.mutex);
    if (!state.alive || (f.node->op && !state.retains(f.output))) return true;  // the handle is gone
    if (!f.sum().is_same(f.seen)) return false;
    std::swap(f.sum(), f.total);  // the old sum dies with `f`, after the lock is gone
    return true;
  }

  bool accumulates_;
  std::vector<Found> found_;
};

/// Where the roots come from, with a cotangent for each.
struct Roots {
  std::vector<NodeOutput> from;
  Tensors cotangents;

  Roots(const Tensors& roots, const Tensors& cts, std::string_view what) {
    LAMELLA_CHECK(cts.empty() || cts.size() == roots.size(), Shape,
                  "{}: got {} {} for {} roots; expected as many, or none", what, cts.size(),
                  Argument{"cotangents"}, roots.size());
    for (size_t i = 0; i < roots.size(); ++i) add(roots[i], cts.empty() ? Tensor() : cts[i], what);
  }

 private:
  void add(const Tensor& root, Tensor ct, std::string_view what) {
    LAMELLA_CHECK(root.defined(), Undefined, "{}: root is an undefined tensor; expected a defined one", what);
    from.push_back(history_of(root));
    LAMELLA_CHECK(from.back().node, NotDifferentiable,
                  "{}: root is {}, which does not require grad; expected a result of something that does",
                  what, root);
    if (!ct.defined()) {
      LAMELLA_CHECK(root.numel() == 1, Shape, "{}: root is {}, expected one element, or a cotangent", what,
                    root);
      const Below below(kAutogradKey);
      ct = ones_like(root);
    }
    LAMELLA_CHECK(ct.dtype() == root.dtype(), DType, "{}: cotangent is {}, expected {}", what, ct, root);
    LAMELLA_CHECK(std::ranges::equal(ct.sizes(), root.sizes()), Shape, "{}: cotangent is {}, expected {}",
                  what, ct, root);
    LAMELLA_CHECK(ct.device() == root.device(), Device, "{}: cotangent is on {}, expected {} as root", what,
                  name(ct.device()), name(root.device()));
    cotangents.push_back(std::move(ct));
  }
};

/// What asks for a graph gets one, also under NoGrad and in a hook.
template <class F> void recording_if(bool create_graph, F&& f) {
  if (create_graph) {
    const EnableGrad on;
    return f();
  }
  const Excluding no_record(KeySet::of(kAutogradKey));
  f();
}

/// The place of a gradient that x has, if it has one.
struct Place {
  NodeState* state = nullptr;
  uint32_t output = 0;
};
Place place_of(const Tensor& x, std::string_view what) {
  const NodeOutput from = history_of(x);
  const Meta* const meta = meta_of(x);
  Place out;
  if (from.node && (!meta || !meta->leaf ? from.node->op && from.node->extra : true))
    out = {&state_of(*from.node), from.output};
  const bool has = out.state && ((meta && meta->leaf) || out.state->retains(out.output));
  LAMELLA_CHECK(has, Usage,
                "{}: x is {}, which has no gradient of its own; expected a leaf that requires grad, or a "
                "tensor given to "
                "retain_grad",
                what, x);
  return out;
}

}  // namespace

namespace {
template <class Pass> void accumulating(BackwardOptions options, Pass&& pass) {
  Run run(options.create_graph, true);
  recording_if(options.create_graph, [&] {
    pass(&run);
    run.accumulate();
  });
}
}  // namespace

void backward(const Tensors& roots, const Tensors& cotangents, BackwardOptions options) {
  const Roots from(roots, cotangents, "backward");
  accumulating(options, [&](Run* run) { run_backward(from.from, from.cotangents, {{}, {}, run}); });
}

void Tensor::backward() const { lamella::backward(*this); }

void backward(const Tensor& root, const Tensor& cotangent, BackwardOptions options) {
  backward(Tensors{root}, cotangent.defined() ? Tensors{cotangent} : Tensors{}, options);
}

void backward(Tensor&& root, const Tensor& cotangent, BackwardOptions options) {
  Roots from(Tensors{root}, cotangent.defined() ? Tensors{cotangent} : Tensors{}, "backward");
  root = Tensor();
  accumulating(options, [&](Run* run) {
    run_backward_once(from.from, std::move(from.cotangents), {{}, {}, run});
  });
}

Tensors autograd::grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents,
                       GradOptions options) {
  const Roots from(outputs, cotangents, "autograd::grad");
  std::vector<NodeOutput> targets;
  for (const Tensor& x : inputs) {
    targets.push_back(history_of(x));
    LAMELLA_CHECK(targets.back().node, NotDifferentiable,
                  "autograd::grad: {} is {}, which does not require grad; expected one that does",
                  Argument{"inputs"}, x);
  }
  Tensors found;
  Run run(options.create_graph, false);
  recording_if(options.create_graph, [&] {
    found = run_backward(from.from, from.cotangents, {targets, {}, &run});
    for (size_t i = 0; i < found.size(); ++i) {
      LAMELLA_CHECK(found[i].defined() || options.allow_unused, NotDifferentiable,
                    "autograd::grad: no output depends on {}: {}; expected one that does, or allow_unused",
                    Argument{"inputs", format("input {}", i)}, inputs[i]);
      if (found[i].defined() && !options.create_graph) found[i] = own_dense(found[i]);
    }
  });
  return found;
}

Tensor grad_of(const Tensor& x) {
  const Place at = place_of(x, "grad_of");
  const std::lock_guard lock(at.state->mutex);
  return at.state->grad(at.output);
}

void clear_grad(const Tensor& x) {
  const Place at = place_of(x, "clear_grad");
  Tensor last;  // dies after the lock is gone
  const std::lock_guard lock(at.state->mutex);
  std::swap(last, at.state->grad(at.output));
}

}  // namespace lamella
