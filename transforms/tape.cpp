// Recording nodes and freeing them.
#include "lamella/transforms/tape.h"

#include <algorithm>

#include "lamella/ops/functions.h"

namespace lamella {

namespace {
constexpr size_t kNodeBlock = 192;

size_t node_bytes(int edges, int saved) {
  return sizeof(Node) + size_t(edges) * sizeof(Edge) + size_t(saved) * sizeof(Node::Saved);
}
size_t node_bytes(const Node& n) { return node_bytes(n.n_edges, n.n_saved); }

thread_local std::vector<Node*>* dying = nullptr;  // while a chain is being freed

void free_one(Node* node, std::vector<Node*>& work) {
  for (int i = 0; i < node->n_edges; ++i)
    if (node->edges[i].node->release()) work.push_back(node->edges[i].node);
  for (int i = 0; i < node->n_saved; ++i) {
    Node::Saved& s = node->saved[i];
    if (!s.is_tensor) delete s.value;
    else if (s.tensor && s.tensor->release()) TensorImpl::destroy(s.tensor);
  }
  const bool pooled = node_bytes(*node) <= kNodeBlock;
  node->~Node();
  pooled ? Pool<kNodeBlock>::free(node) : std::free(node);
}
void queued_node(RefCounted* n) { Node::destroy(static_cast<Node*>(n)); }
}  // namespace

Node* Node::create(int edges, int saved) {
  const size_t bytes = node_bytes(edges, saved);
  void* block =
      bytes <= kNodeBlock ? Pool<kNodeBlock>::allocate() : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!block) throw std::bad_alloc();
  Node* node = new (block) Node;
  node->destroy_queued = queued_node;
  node->edges = reinterpret_cast<Edge*>(node + 1);
  node->saved = reinterpret_cast<Saved*>(node->edges + edges);
  return node;
}

/// A saved tensor may be the last handle of another node, so freeing one node can free a chain: the outermost
/// call drains it.
void Node::destroy(Node* node) {
  if (dying) return dying->push_back(node);
  std::vector<Node*> work{node};
  dying = &work;
  while (!work.empty()) {
    Node* next = work.back();
    work.pop_back();
    free_one(next, work);
  }
  dying = nullptr;
}

const Storage* memory_of(const TensorImpl* impl) {
  while (impl && !impl->storage && impl->keys >> kFirstLevelKey)
    impl = static_cast<const Wrapper*>(impl->extra)->value.impl();
  return impl ? impl->storage : nullptr;
}

namespace {
constexpr int kMaxSaved = 16;

struct SavePlan {
  BoundSave what[kMaxSaved];
  int n = 0;
  void add(BoundSave s) {
    for (int i = 0; i < n; ++i)
      if (what[i].kind == s.kind && what[i].index == s.index) return;
    LAMELLA_ASSERT(n < kMaxSaved);
    what[n++] = s;
  }
};

Value own_argument(const Frame& f, int i) {
  if (f.none(i)) return {};
  switch (f.op->schema.params[size_t(i)].kind) {
    case ParamKind::TensorList: return Tensors(f.tensors(i).begin(), f.tensors(i).end());
    case ParamKind::Int: return f.arg<int64_t>(i);
    case ParamKind::Ints: return Dims(f.ints(i));
    case ParamKind::Float: return f.arg<double>(i);
    case ParamKind::Bool: return f.arg<bool>(i);
    case ParamKind::Scalar: return f.arg<Scalar>(i);
    case ParamKind::DType: return f.arg<DType>(i);
    case ParamKind::String: return f.arg<std::string>(i);
    default: return f.tensor(i);
  }
}

void save(Node::Saved& s, const Frame& f, BoundSave what) {
  s.what = what;
  s.version = 0;
  s.is_tensor = what.kind == BoundSave::Result || (what.kind == BoundSave::Argument &&
                                                   f.op->schema.params[what.index].kind == ParamKind::Tensor);
  if (s.is_tensor) {
    const Tensor& t = what.kind == BoundSave::Result ? f.results[what.index] : f.tensor(what.index);
    s.tensor = t.impl();
    if (!s.tensor) return;
    s.tensor->retain();
    if (const Storage* memory = memory_of(s.tensor))
      s.version = memory->version.load(std::memory_order_relaxed);
    return;
  }
  if (what.kind == BoundSave::Argument) s.value = new Value(own_argument(f, what.index));
  else if (what.kind == BoundSave::SizesOf) s.value = new Value(Dims(f.tensor(what.index).sizes()));
  else s.value = new Value(f.tensor(what.index).dtype());
}

const Tensor& input_value(const Frame& f, const TapeInput& in) {
  return f.op->schema.params[size_t(in.param)].kind == ParamKind::Tensor
             ? f.tensor(in.param)
             : f.tensors(in.param)[size_t(in.element)];
}

/// Only broadcasting operators sum and cast; others' formulas return the input's shape and dtype themselves.
bool needs_fix(const Frame& f, const TapeInput& in, const Tensor& result) {
  const Tensor& x = input_value(f, in);
  if (x.dtype() != result.dtype()) return true;
  return f.op->shape == ShapeClass::Broadcast && !std::ranges::equal(x.sizes(), result.sizes());
}
}  // namespace

NodeRef record(const Frame& f, std::span<const TapeInput> inputs) {
  const Op& op = *f.op;
  SavePlan plan;
  const Tensor& first = f.results[0];
  int last_param = -1;
  for (const TapeInput& in : inputs) {
    const BoundFormula* formula = op.vjp_of(in.param);
    if (formula && in.param != last_param)
      for (const BoundSave& s : formula->saves) plan.add(s);
    last_param = in.param;
    if (needs_fix(f, in, first) && op.schema.params[size_t(in.param)].kind == ParamKind::Tensor) {
      plan.add({BoundSave::SizesOf, uint8_t(in.param)});
      plan.add({BoundSave::DTypeOf, uint8_t(in.param)});
    }
  }
  Node* node = Node::create(int(inputs.size()), plan.n);
  node->op = &op;
  node->n_outputs = uint8_t(op.schema.n_results);
  for (const TapeInput& in : inputs) {
    Node* from = in.from->node.get();
    from->retain();
    node->order = std::max(node->order, from->order + 1);
    const bool fix = op.schema.params[size_t(in.param)].kind == ParamKind::Tensor && needs_fix(f, in, first);
    node->edges[node->n_edges++] = {from, uint8_t(in.from->output), uint8_t(in.param), uint16_t(in.element),
                                    fix};
  }
  for (int i = 0; i < plan.n; ++i) save(node->saved[node->n_saved++], f, plan.what[i]);
  return NodeRef::adopt(node);
}

FrameSaves::FrameSaves(const Frame& f, const BoundFormula& formula) {
  LAMELLA_ASSERT(formula.saves.size() <= 12);
  for (size_t i = 0; i < formula.saves.size(); ++i) {
    const BoundSave s = formula.saves[i];
    if (s.kind == BoundSave::Argument) pointers_[i] = f.args[s.index];
    else if (s.kind == BoundSave::Result) pointers_[i] = &f.results[s.index];
    else if (s.kind == BoundSave::SizesOf) pointers_[i] = &(ints_[i] = f.tensor(s.index).sizes());
    else pointers_[i] = &(dtypes_[i] = f.tensor(s.index).dtype());
  }
}

Tensor transpose_of(const Op& op, const Values& args, const Tensor& dy) {
  const BoxedArgs boxed(op, args);
  Tensor unused[4];
  const Frame f{&op, boxed.data(), unused};
  const BoundFormula* formula = op.vjp_of(op.tensor_params[0]);
  LAMELLA_ASSERT(formula && formula->one);
  const FrameSaves saved(f, *formula);
  return formula->one({{&dy, 1}, saved.data()});
}

Tensor fit_cotangent(const Tensor& t, Ints sizes, DType dtype) {
  Tensor out = t;
  if (is_complex(out.dtype()) && !is_complex(dtype)) out = real(out);
  if (!std::ranges::equal(out.sizes(), sizes)) out = sum_to_size(out, sizes);
  return out.dtype() == dtype ? out : to(out, dtype);
}

}  // namespace lamella
