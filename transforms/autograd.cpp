// Base autograd: the cell of the autograd key, and backward.
#include "lamella/transforms/autograd.h"

#include <algorithm>

#include "lamella/ops/functions.h"
#include "lamella/transforms/tape.h"

namespace lamella {

namespace {

struct Meta : TensorExtra {
  static void* operator new(size_t) { return Pool<64>::allocate(); }
  static void operator delete(void* p) { Pool<64>::free(p); }
  NodeOutput from;
  Tensor grad;  ///< leaves only
  bool leaf = false;
  std::string str() const override { return leaf ? " requires grad" : " with grad history"; }
  ~Meta() override {
    if (leaf && from.node) from.node->leaf = nullptr;
  }
};

constexpr uint64_t kBit = KeySet::of(kAutogradKey).bits;

Meta* meta_of(const Tensor& t) {
  return t.defined() && (t.keys() & kBit) && !(t.keys() >> kFirstLevelKey)
             ? static_cast<Meta*>(t.impl()->extra)
             : nullptr;
}

void attach(Tensor& t, NodeOutput from) {
  if (t.impl()->extra) t = make_view_unchecked(t, t.sizes(), t.strides(), t.impl()->offset);
  auto* meta = new Meta;
  meta->from = std::move(from);
  t.impl()->extra = meta;
  t.impl()->keys |= kBit;
}

/// A handle without history for the record of its own node: saving the result itself would keep the node
/// alive for ever.
Tensor alias_of(const Tensor& t) { return make_view_unchecked(t, t.sizes(), t.strides(), t.impl()->offset); }

/// The arguments of a call that carry history.
struct Inputs {
  TapeInput few[8];
  std::vector<TapeInput> many;
  size_t n = 0;

  explicit Inputs(const Frame& f) {
    const Op& op = *f.op;
    for (const uint8_t i : op.tensor_params) {
      if (f.none(i)) continue;
      if (op.schema.params[i].kind == ParamKind::Tensor) add(f.tensor(i), i, 0);
      else
        for (size_t k = 0; k < f.tensors(i).size(); ++k) add(f.tensors(i)[k], i, int(k));
    }
  }
  std::span<const TapeInput> found() const { return many.empty() ? std::span(few, n) : std::span(many); }

 private:
  void add(const Tensor& t, int param, int element) {
    const Meta* m = meta_of(t);
    if (!m || !m->from.node) return;
    if (n == 8 && many.empty()) many.assign(few, few + n);
    if (n++ < 8) few[n - 1] = {param, element, &m->from};
    else many.push_back({param, element, &m->from});
  }
};

/// Gives the results of `f` the history that their `inputs` have.
void attach_history(Frame& f, std::span<const TapeInput> inputs) {
  const Op& op = *f.op;
  const int n = op.schema.n_results;
  NodeRef node;
  if (op.vjp_saves_result) {  // through handles without history, or the node would own itself
    Tensor aliases[kMaxResults];
    for (int k = 0; k < n; ++k) aliases[k] = alias_of(f.results[k]);
    node = record(Frame{&op, f.args, aliases}, inputs);
  } else {
    node = record(f, inputs);
  }
  for (int k = 0; k < n; ++k) {
    if (!is_inexact(f.results[k].dtype())) continue;
    attach(f.results[k], {k + 1 == n ? std::move(node) : node, uint32_t(k)});
  }
}

[[gnu::noinline]] void with_lists(Frame& f) {
  const Inputs inputs(f);
  if (inputs.n > 0) attach_history(f, inputs.found());
}

void functional(Frame& f) {
  const Op& op = *f.op;
  {
    const Below below(kAutogradKey);
    call(f);
  }
  if (op.vjp.empty()) return;
  if (!op.simple || op.tensor_params.size() > 8) return with_lists(f);
  TapeInput inputs[8];
  size_t n = 0;
  for (const uint8_t i : op.tensor_params) {
    const Meta* m = f.args[i] ? meta_of(f.arg<Tensor>(i)) : nullptr;
    if (m && m->from.node) inputs[n++] = {i, 0, &m->from};
  }
  if (n > 0) attach_history(f, {inputs, n});
}

/// A write to a tensor with history: memory is written below, and the handle's history becomes that of the
/// functional result.
void written(Frame& f) {
  const Tensor target = f.tensor(0);
  Frame base{f.op->base, f.args + (f.op->form == OpForm::Out ? 1 : 0), nullptr};
  Meta* meta = meta_of(target);
  LAMELLA_CHECK(!meta || !meta->leaf, Value,
                "{}: {} is {}, a leaf that requires grad; expected a result: write to a clone of it",
                base.op->name, f.op->schema.params[0].name, target);
  const bool shared = target.impl()->storage && !target.impl()->storage->unique();
  const bool view = target.impl()->storage && (target.impl()->offset != 0 || shared);
  const Inputs inputs(base);
  LAMELLA_CHECK(
      inputs.n == 0 || !view || meta, Value,
      "{}: {} is {}, which shares its memory with other tensors; expected a clone of it, for the value "
      "written carries history",
      base.op->name, f.op->schema.params[0].name, target);
  Tensor result;
  base.results = &result;
  call(base);
  {
    const Below below(kAutogradKey);
    copy_(target, result);
  }
  const Meta* from = meta_of(result);
  if (!from) {
    if (meta) meta->from = {};
    return;
  }
  if (meta) meta->from = from->from;
  else {
    auto* fresh = new Meta;
    fresh->from = from->from;
    target.impl()->extra = fresh;
    target.impl()->keys |= kBit;
  }
}

void autograd_cell(Frame& f, int) {
  if (f.op->form != OpForm::Functional) return written(f);
  functional(f);
}

[[maybe_unused]] const bool installed = [] {
  set_autograd_cell(autograd_cell);
  return true;
}();

void add_to_leaf(Node& node, const Tensor& ct) {
  auto* meta = static_cast<Meta*>(node.leaf);
  meta->grad = meta->grad.defined() ? add(meta->grad, ct) : ct;
}

/// A result was saved without its history (alias_of); derivatives of the gradient go through it.
Tensor with_history(Node& node, uint32_t output, const Tensor& saved) {
  Tensor t = alias_of(saved);
  if (is_inexact(t.dtype())) attach(t, {NodeRef::share(&node), output});
  return t;
}

}  // namespace

Tensor detach(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "detach: the tensor is undefined; expected a defined one");
  LAMELLA_CHECK(x.impl()->storage, Level, "detach: {} is wrapped by a transform; expected a plain tensor", x);
  return alias_of(x);
}

Tensor requires_grad(const Tensor& x) {
  Tensor leaf = detach(x);
  LAMELLA_CHECK(is_inexact(x.dtype()), DType, "requires_grad: got {}, expected floating point or complex", x);
  attach(leaf, {NodeRef::adopt(Node::create(0, 0)), 0});
  Meta* meta = meta_of(leaf);
  meta->leaf = true;
  meta->from.node->leaf = meta;
  return leaf;
}

bool is_grad_required(const Tensor& x) {
  const Meta* m = meta_of(x);
  return m && m->from.node;
}

void backward(const Tensor& root, const Tensor& cotangent, BackwardOptions options) {
  const Meta* meta = meta_of(root);
  LAMELLA_CHECK(meta && meta->from.node, NotDifferentiable,
                "backward: {} does not require grad; expected a result of something that does", root);
  Tensor ct = cotangent;
  if (!ct.defined()) {
    LAMELLA_CHECK(root.numel() == 1, Shape, "backward: got {}, expected one element, or a cotangent", root);
    const Below below(kAutogradKey);
    ct = ones_like(root);
  }
  LAMELLA_CHECK(std::ranges::equal(ct.sizes(), root.sizes()) && ct.dtype() == root.dtype(), Shape,
                "backward: the cotangent is {}, expected {}", ct, root);
  const NodeOutput from = meta->from;
  if (options.create_graph) {
    run_backward({&from, 1}, {ct}, {}, {add_to_leaf, with_history});
    return;
  }
  const Excluding no_record(KeySet::of(kAutogradKey));
  run_backward({&from, 1}, {ct}, {}, {add_to_leaf});
}

Tensor grad_of(const Tensor& leaf) {
  const Meta* m = meta_of(leaf);
  LAMELLA_CHECK(m && m->leaf, Usage,
                "grad_of: {} has no gradient of its own; expected a leaf that requires grad", leaf);
  return m->grad;
}

void clear_grad(const Tensor& leaf) {
  Meta* m = meta_of(leaf);
  LAMELLA_CHECK(m && m->leaf, Usage,
                "clear_grad: {} has no gradient of its own; expected a leaf that requires grad", leaf);
  m->grad = {};
}

NoGrad::NoGrad() : saved_(dispatch_state().exclude) { dispatch_state().exclude |= kBit; }
NoGrad::~NoGrad() { dispatch_state().exclude = (dispatch_state().exclude & ~kBit) | (saved_ & kBit); }

}  // namespace lamella
