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

/// Nodes being freed: one may hold the last handle of the next, so the outermost call drains the list and a
/// chain of any length is freed without recursion.
thread_local constinit Node* dying = nullptr;
thread_local constinit bool draining = false;

void free_one(Node* node) {
  for (int i = 0; i < node->n_edges; ++i)
    if (Node* from = node->edges()[i].node; from->release()) Node::destroy(from);
  for (int i = 0; i < node->n_saved; ++i) node->saved()[i].~Saved();
  const bool pooled = node_bytes(node->room_for_edges, node->room_for_saved) <= kNodeBlock;
  node->~Node();
  pooled ? Pool<kNodeBlock>::free(node) : free_raw(node);
}
void queued_node(RefCounted* n) { Node::destroy(static_cast<Node*>(n)); }
}  // namespace

Node* Node::create(int edges, int saved) {
  const size_t bytes = node_bytes(edges, saved);
  detail::thread_record();  // the first one may fail: before there is a block to lose
  void* const block = bytes <= kNodeBlock ? Pool<kNodeBlock>::allocate() : allocate_block(bytes);
  Node* node = new (block) Node;
  node->destroy_queued = queued_node;
  node->room_for_edges = uint8_t(edges);
  node->room_for_saved = uint8_t(saved);
  return node;
}

void Node::destroy(Node* node) {
  node->next_dying = dying;
  dying = node;
  if (draining) return;
  draining = true;
  while (Node* next = dying) {
    dying = next->next_dying;
    free_one(next);
  }
  draining = false;
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

}  // namespace

template <class T> void Node::Saved::put(const T& v, Held held) {
  new (bytes_) T(v);
  held_ = held;
}

void Node::Saved::keep(const Frame& f) {
  const int i = what.index;
  const auto boxed = [&](Value v) { put(new Value(std::move(v)), Held::Boxed); };
  const auto tensor = [&](const Tensor& t) {
    put(t, Held::Tensor);
    if (const Storage* memory = memory_of(t.impl()))
      version_ = memory->version.load(std::memory_order_relaxed);
  };
  if (what.kind == BoundSave::Result) return tensor(f.results[i]);
  if (what.kind == BoundSave::SizesOf) return boxed(Dims(f.tensor(i).sizes()));
  if (what.kind == BoundSave::DTypeOf) return put(f.tensor(i).dtype(), Held::Number);
  if (f.none(i)) return;
  switch (f.op->schema.params[size_t(i)].kind) {
    case ParamKind::TensorList: return boxed(Tensors(f.tensors(i).begin(), f.tensors(i).end()));
    case ParamKind::Ints: return boxed(Dims(f.ints(i)));
    case ParamKind::String: return boxed(f.arg<std::string>(i));
    case ParamKind::Int: return put(f.arg<int64_t>(i), Held::Number);
    case ParamKind::Float: return put(f.arg<double>(i), Held::Number);
    case ParamKind::Bool: return put(f.arg<bool>(i), Held::Number);
    case ParamKind::Scalar: return put(f.arg<Scalar>(i), Held::Number);
    case ParamKind::DType: return put(f.arg<DType>(i), Held::Number);
    default: return tensor(f.tensor(i));
  }
}

Node::Saved::~Saved() {
  if (held_ == Held::Tensor) as<Tensor>().~Tensor();
  if (held_ == Held::Boxed) delete as<Value*>();
}

const void* Node::Saved::pointer(const Op& op, Ints& ints, TensorSpan& list) const {
  if (held_ == Held::None) return nullptr;
  if (held_ == Held::Number) return bytes_;
  if (held_ == Held::Tensor) {
    const Tensor& t = as<Tensor>();
    if (!t.defined()) return nullptr;
    const Storage* memory = memory_of(t.impl());
    LAMELLA_CHECK(!memory || memory->version.load(std::memory_order_relaxed) == version_, Value,
                  "backward: a value that {} saved was written in place later: version {}, expected {}; "
                  "clone it first",
                  op.name, memory->version.load(), version_);
    return &t;
  }
  const Value& v = *as<Value*>();
  if (const auto* dims = std::get_if<Dims>(&v)) return &(ints = Ints(*dims));
  if (const auto* tensors = std::get_if<Tensors>(&v)) return &(list = TensorSpan(*tensors));
  return std::get_if<std::string>(&v);
}

namespace {
/// Only broadcasting operators sum and cast; others' formulas return the input's shape and dtype themselves.
bool needs_fix(const Frame& f, const Tensor& x, const Tensor& result) {
  if (x.dtype() != result.dtype()) return true;
  return f.op->shape == ShapeClass::Broadcast && !x.impl()->has_shape_of(*result.impl());
}
}  // namespace

NodeRef record(const Frame& f, std::span<const TapeInput> inputs) {
  const Op& op = *f.op;
  LAMELLA_ASSERT(inputs.size() <= 255);
  SavePlan plan;
  bool fixes[256];
  int last_param = -1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TapeInput& in = inputs[k];
    const bool is_list = op.schema.params[size_t(in.param)].kind == ParamKind::TensorList;
    fixes[k] = !is_list && needs_fix(f, f.tensor(in.param), f.results[0]);
    const BoundFormula* formula = in.param == last_param ? nullptr : op.vjp_of(in.param);
    if (formula)
      for (const BoundSave& s : formula->saves) plan.add(s);
    last_param = in.param;
    if (!fixes[k]) continue;
    plan.add({BoundSave::SizesOf, uint8_t(in.param)});
    plan.add({BoundSave::DTypeOf, uint8_t(in.param)});
  }
  NodeRef owner = NodeRef::adopt(Node::create(int(inputs.size()), plan.n));
  Node* const node = owner.get();
  node->op = &op;
  node->n_outputs = uint8_t(op.schema.n_results);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TapeInput& in = inputs[k];
    Node* const from = in.from->node.get();
    from->retain();
    node->order = std::max(node->order, from->order + 1);
    node->edges()[node->n_edges++] = {from, uint8_t(in.from->output), uint8_t(in.param), uint16_t(in.element),
                                      fixes[k]};
  }
  for (int i = 0; i < plan.n; ++i) {
    new (&node->saved()[i]) Node::Saved(f, plan.what[i]);
    ++node->n_saved;
  }
  return owner;
}

FrameSaves::FrameSaves(const Frame& f, const BoundFormula& formula) {
  LAMELLA_ASSERT(formula.saves.size() <= size_t(kMaxSaves));
  int n_sizes = 0;
  for (size_t i = 0; i < formula.saves.size(); ++i) {
    const BoundSave s = formula.saves[i];
    LAMELLA_ASSERT(s.kind != BoundSave::SizesOf || n_sizes < kMaxSizes);
    if (s.kind == BoundSave::Argument) pointers_[i] = f.args[s.index];
    else if (s.kind == BoundSave::Result) pointers_[i] = &f.results[s.index];
    else if (s.kind == BoundSave::SizesOf) pointers_[i] = &(ints_[n_sizes++] = f.tensor(s.index).sizes());
    else pointers_[i] = &(dtypes_[i] = f.tensor(s.index).dtype());
  }
}

Tensor transpose_of(const Op& op, const Values& args, const Tensor& dy) {
  const BoxedArgs boxed(op, args);
  Tensor unused[kMaxResults];
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
