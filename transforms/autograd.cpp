// Base autograd: the cell of the autograd key, and backward.
#include "lamella/transforms/autograd.h"

#include <algorithm>

#include "lamella/ops/functions.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/history.h"

namespace lamella {

namespace {

/// The arguments of a call that carry history; those of families are asked for theirs, which lie in `asked`.
struct Inputs {
  std::vector<NodeOutput> asked;
  std::vector<TapeInput> found;

  explicit Inputs(const Frame& f) {
    const Op& op = *f.op;
    size_t most = 0;
    for (const uint8_t i : op.tensor_params)
      if (!f.none(i)) most += op.schema.params[i].kind == ParamKind::Tensor ? 1 : f.tensors(i).size();
    asked.reserve(most), found.reserve(most);  // `found` points into `asked`
    for (const uint8_t i : op.tensor_params) {
      if (f.none(i)) continue;
      if (op.schema.params[i].kind == ParamKind::Tensor) add(f.tensor(i), i, 0);
      else
        for (size_t k = 0; k < f.tensors(i).size(); ++k) add(f.tensors(i)[k], i, int(k));
    }
  }

 private:
  void add(const Tensor& t, int param, int element) {
    NodeOutput from = history_of(t);
    if (!from.node) return;
    asked.push_back(std::move(from));
    found.push_back({param, element, &asked.back()});
  }
};

/// Gives the results of `f` the history that their `inputs` have.
void attach_history(Frame& f, std::span<const TapeInput> inputs) {
  const int n = f.op->schema.n_results;
  NodeRef node = record(f, inputs);
  Tensor& first = f.results[0];
  if (n == 1 && !first.impl()->extra) [[likely]] {
    if (is_inexact(first.dtype()))
      first.impl()->extra = new Meta(std::move(node), 0), first.impl()->keys |= kAutogradBit;
    return;
  }
  for (int k = 0; k < n; ++k) {
    if (!is_inexact(f.results[k].dtype())) continue;
    attach(f.results[k], {k + 1 == n ? std::move(node) : node, uint32_t(k)});
  }
}

[[gnu::noinline]] void general(Frame& f) {
  const Op& op = *f.op;
  const Inputs inputs(f);
  if (!inputs.found.empty()) attach_history(f, inputs.found);
  if (op.is_view()) enter_family(f.tensor(op.tensor_params[0]), f.results[0]);
}

/// Calls without lists and members of families find their histories in the handles.
bool short_way(Frame& f) {
  const Op& op = *f.op;
  if (!op.simple || op.is_view()) return false;
  TapeInput inputs[kMaxArity];
  size_t n = 0;
  for (const uint8_t i : op.tensor_params) {
    const TensorImpl* const t = f.args[i] ? f.arg<Tensor>(i).impl() : nullptr;
    if (!t) continue;
    if (t->family()) return false;
    if (!(t->keys & kAutogradBit)) continue;
    const auto* const meta = static_cast<const Meta*>(t->extra);
    if (meta->from.node) inputs[n++] = {i, 0, &meta->from};
  }
  if (n > 0) attach_history(f, {inputs, n});
  return true;
}

void functional(Frame& f) {
  {
    const Below below(kAutogradKey);
    call(f);
  }
  if (f.op->vjp.empty()) return;
  if (!short_way(f)) general(f);
}

/// A write: the functional call gives value and history, memory is written below, and the target's family
/// follows. What the call saves of the target is copied before.
void written(Frame& f) {
  const Tensor target = f.tensor(0);
  const std::string& arg = f.op->schema.params[0].name;
  Frame base{f.op->base, f.args + (f.op->form == OpForm::Out ? 1 : 0), nullptr};
  check_followed(*base.op, arg, target);
  Tensor result;
  base.results = &result;
  {
    const KeepingCopies keeping(target.impl()->storage);
    call(base);
  }
  ops::check_written(base, arg, target, {result.sizes(), result.dtype()});
  if (result.dtype() != target.dtype()) result = to(result, target.dtype());
  const NodeOutput from = history_of(result);
  {
    const Below below(kAutogradKey);
    copy_(target, result);
  }
  follow_write(target, from);
}

void autograd_cell(Frame& f, int) {
  if (f.op->form != OpForm::Functional) return written(f);
  functional(f);
}

[[maybe_unused]] const bool installed = [] {
  set_autograd_cell(autograd_cell);
  return true;
}();

/// A gradient that is dense and shares no memory with anything.
Tensor own_dense(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  const bool own = impl.contiguous && impl.storage && impl.storage->unique() &&
                   impl.storage->nbytes == size_t(impl.numel) * size_t(itemsize(impl.dtype));
  return own ? t : clone(t);
}

/// Gradients for leaves wait until all rules have run: what raises on the way changes none.
class Gradients final : public TapeHooks {
 public:
  explicit Gradients(bool create_graph) { keeps_history = create_graph; }

  void before(Node&, std::span<Tensor>) override {}
  void on_leaf(Node& leaf, const Tensor& ct) override {
    found_.push_back({NodeRef::share(&leaf), ct, {}, {}});
  }
  Tensor with_history(const Tensor& value, Node& from, uint32_t output) override {
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
  }

 private:
  struct Found {
    NodeRef leaf;
    Tensor cotangent, seen, total;
    LeafState& state() const { return *static_cast<LeafState*>(leaf->extra); }
  };

  void sum_up(Found& f) {
    {
      const std::lock_guard lock(f.state().mutex);
      f.seen = f.state().grad;
    }
    if (f.seen.defined()) f.total = add(f.seen, f.cotangent);
    else f.total = keeps_history ? f.cotangent : own_dense(f.cotangent);
  }

  bool put(Found& f) {
    const std::lock_guard lock(f.state().mutex);
    if (!f.state().alive) return true;
    if (!f.state().grad.is_same(f.seen)) return false;
    std::swap(f.state().grad, f.total);  // the old sum dies with `f`, after the lock is gone
    return true;
  }

  std::vector<Found> found_;
};

}  // namespace

Tensor detach(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "detach: the tensor is undefined; expected a defined one");
  LAMELLA_CHECK(x.impl()->storage, Level, "detach: {} is wrapped by a transform; expected a plain tensor", x);
  return make_alias(x);
}

Tensor requires_grad(const Tensor& x) {
  Tensor leaf = detach(x);
  LAMELLA_CHECK(is_inexact(x.dtype()), DType, "requires_grad: got {}, expected floating point or complex", x);
  NodeRef node = NodeRef::adopt(Node::create(0, 0));
  node->extra = new LeafState;
  attach(leaf, {std::move(node), 0});
  meta_of(leaf)->leaf = true;
  return leaf;
}

bool is_grad_required(const Tensor& x) { return bool(history_of(x).node); }

void backward(const Tensor& root, const Tensor& cotangent, BackwardOptions options) {
  const NodeOutput from = history_of(root);
  LAMELLA_CHECK(from.node, NotDifferentiable,
                "backward: {} does not require grad; expected a result of something that does", root);
  Tensor ct = cotangent;
  if (!ct.defined()) {
    LAMELLA_CHECK(root.numel() == 1, Shape, "backward: got {}, expected one element, or a cotangent", root);
    const Below below(kAutogradKey);
    ct = ones_like(root);
  }
  LAMELLA_CHECK(std::ranges::equal(ct.sizes(), root.sizes()) && ct.dtype() == root.dtype(), Shape,
                "backward: the cotangent is {}, expected {}", ct, root);
  Gradients gradients(options.create_graph);
  const auto run = [&] {
    run_backward({&from, 1}, {ct}, {}, &gradients);
    gradients.accumulate();
  };
  if (options.create_graph) return run();
  const Excluding no_record(KeySet::of(kAutogradKey));
  run();
}

Tensor grad_of(const Tensor& leaf) {
  LeafState* const state = leaf_state(leaf);
  LAMELLA_CHECK(state, Usage, "grad_of: {} has no gradient of its own; expected a leaf that requires grad",
                leaf);
  const std::lock_guard lock(state->mutex);
  return state->grad;
}

void clear_grad(const Tensor& leaf) {
  LeafState* const state = leaf_state(leaf);
  LAMELLA_CHECK(state, Usage, "clear_grad: {} has no gradient of its own; expected a leaf that requires grad",
                leaf);
  Tensor last;  // dies after the lock is gone
  const std::lock_guard lock(state->mutex);
  std::swap(last, state->grad);
}

NoGrad::NoGrad() : saved_(dispatch_state().exclude) { dispatch_state().exclude |= kAutogradBit; }
NoGrad::~NoGrad() {
  dispatch_state().exclude = (dispatch_state().exclude & ~kAutogradBit) | (saved_ & kAutogradBit);
}

}  // namespace lamella
