// Recording nodes and freeing them.
#include "lamella/transforms/machine/tape.h"

#include <algorithm>

#include "lamella/core/thresholds.h"
#include "lamella/transforms/tapes/asked.h"
#include "lamella/transforms/writes/own_header.h"

namespace lamella {

namespace {
/// A saved list; its tensors are values like other saved ones. Packed ones are undefined here.
struct SavedList {
  Tensors values;
  std::vector<std::shared_ptr<Packed>> packed;     ///< empty, or one for each
  std::vector<std::pair<uint32_t, int>> versions;  ///< writes seen, and the last level
};

using IntPool = Pool<64>;
}  // namespace

inline Node::Saved::~Saved() {
  if (held_ == Held::Tensor) [[likely]]
    as<Tensor>().~Tensor();
  else if (held_ > Held::Tensor) drop();
}

void Node::Saved::drop() {
  if (held_ == Held::Wrapper) as<Tensor>().~Tensor();
  if (held_ == Held::List) delete as<SavedList*>();
  if (held_ == Held::MoreInts) n_ints_ <= kPooledInts ? IntPool::free(as<void*>()) : delete[] as<int64_t*>();
  if (held_ == Held::Boxed) delete as<Value*>();
  if (held_ == Held::Packed) std::destroy_at(&as<std::shared_ptr<Packed>>());
}

namespace {
constexpr size_t kNodeBlock = 192, kLargeNodeBlock = 320;

size_t node_bytes(size_t edges, int saved) {
  return sizeof(Node) + edges * sizeof(Edge) + size_t(saved) * sizeof(Node::Saved);
}

/// Nodes being freed: one may hold the last handle of the next, so the outermost call drains the list and a
/// chain of any length is freed without recursion.
thread_local constinit Node* dying = nullptr;
thread_local constinit bool draining = false;

void free_one(Node* node) {
  for (uint32_t i = 0; i < node->n_edges; ++i)
    if (Node* from = node->edges()[i].node; from->release()) Node::destroy(from);
  for (int i = 0; i < node->n_saved; ++i) node->saved()[i].~Saved();
  delete node->extra;
  const size_t bytes = node_bytes(node->room_for_edges, node->room_for_saved);
  node->~Node();
  if (bytes <= kNodeBlock) [[likely]]
    return Pool<kNodeBlock>::free(node);
  bytes <= kLargeNodeBlock ? Pool<kLargeNodeBlock>::free(node) : detail::free_counted(node, bytes);
}
void queued_node(RefCounted* n) { Node::destroy(static_cast<Node*>(n)); }
}  // namespace

Node* Node::create(size_t edges, int saved) {
  const size_t bytes = node_bytes(edges, saved);
  detail::thread_record();  // the first one may fail: before there is a block to lose
  void* const block = bytes <= kNodeBlock        ? Pool<kNodeBlock>::allocate()
                      : bytes <= kLargeNodeBlock ? Pool<kLargeNodeBlock>::allocate()
                                                 : detail::allocate_counted(bytes);
  Node* node = new (block) Node;
  node->destroy_queued = queued_node;
  node->room_for_edges = uint32_t(edges);
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

namespace {
struct SavePlan {
  /// The formulas', and sizes and dtype of each input whose cotangent must be fitted to it.
  static constexpr size_t kRoom = kMaxSavedByNode + 2 * kMaxArity;
  BoundSave what[kRoom];
  int n = 0;
  void add(BoundSave s) {
    for (int i = 0; i < n; ++i)
      if (what[i].kind == s.kind && what[i].index == s.index) return;
    LAMELLA_ASSERT(size_t(n) < kRoom);
    what[n++] = s;
  }
};
}  // namespace

/// After a tensor was constructed in bytes_.
[[gnu::always_inline]] inline void Node::Saved::holds() {
  const TensorImpl* const kept = as<Tensor>().impl();
  const bool plain = kept && kept->storage;
  held_ = plain ? Held::Tensor : Held::Wrapper;
  if (kept) version_ = writes_seen(*kept);
  if (!plain) [[unlikely]]
    bytes_[sizeof(Tensor)] = kept ? uint8_t(last_level(*kept)) : 0;
}

[[gnu::noinline]] void Node::Saved::keep_specially(const Op& op, const Tensor& t) {
  Tensor value = own_value(op, t, key_);
  if (std::shared_ptr<Packed> form = packed_form(op, value, key_)) put(std::move(form), Held::Packed);
  else new (bytes_) Tensor(std::move(value)), holds();
}

/// Results, and values that the level has unwrapped: nobody else has their headers.
[[gnu::noinline]] static bool unwrapped(std::span<const TapeInput> inputs, BoundSave what) {
  if (what.kind == BoundSave::Result) return true;
  for (const TapeInput& in : inputs)
    if (in.param == what.index) return true;
  return false;
}

[[gnu::always_inline]] inline void Node::Saved::keep_tensor(const Op& op, const Tensor& t,
                                                            std::span<const TapeInput> inputs) {
  if (asked_of_tapes.special_saves) [[unlikely]]
    return keep_specially(op, t);
  if (key_ == 0) {
    new (bytes_) Tensor(base_header(op, t));
    return holds();
  }
  const TensorImpl* const impl = t.impl();
  const bool outside = !impl || (impl->storage && impl->storage->birth == 0);
  new (bytes_) Tensor(outside || unwrapped(inputs, what) ? t : own_header(op, t, key_));
  holds();
}

[[gnu::always_inline]] inline Node::Saved::Saved(const Frame& f, BoundSave saved, int key,
                                                 std::span<const TapeInput> inputs)
    : what(saved), key_(uint8_t(key)) {
  const int i = what.index;
  const Tensor* t = nullptr;
  if (what.kind == BoundSave::Argument && f.op->schema.params[size_t(i)].kind == ParamKind::Tensor)
    t = static_cast<const Tensor*>(f.args[i]);
  else if (what.kind == BoundSave::Result && !gives_list(f)) t = &f.results[i];
  if (t) keep_tensor(*f.op, *t, inputs);
  else keep(f);
}

inline void Node::Saved::keep_ints(Ints ints) {
  if (ints.size() > kFewInts) [[unlikely]]
    return keep_more_ints(ints);
  n_ints_ = uint32_t(ints.size());
  held_ = Held::Ints;
  for (size_t i = 0; i < ints.size(); ++i) reinterpret_cast<int64_t*>(bytes_)[i] = ints[i];
}

[[gnu::noinline]] void Node::Saved::keep_more_ints(Ints ints) {
  static_assert(kPooledInts == kUsualThresholds.inline_values);
  const size_t n = ints.size();
  int64_t* const to = n <= kPooledInts ? static_cast<int64_t*>(IntPool::allocate()) : new int64_t[n];
  std::ranges::copy(ints, to);
  n_ints_ = uint32_t(n);
  put(to, Held::MoreInts);
}

/// What is no tensor: numbers and few of them lie in the node itself, the rest elsewhere.
void Node::Saved::keep(const Frame& f) {
  const int i = what.index;
  if (what.kind == BoundSave::SizesOf) return keep_ints(f.tensor(i).sizes());
  if (what.kind == BoundSave::DTypeOf) return put(f.tensor(i).dtype(), Held::Number);
  if (what.kind != BoundSave::Argument) return keep_elsewhere(f);
  if (f.none(i)) return;
  switch (f.op->schema.params[size_t(i)].kind) {
    case ParamKind::Ints: return keep_ints(f.ints(i));
    case ParamKind::Int: return put(f.arg<int64_t>(i), Held::Number);
    case ParamKind::Float: return put(f.arg<double>(i), Held::Number);
    case ParamKind::Bool: return put(f.arg<bool>(i), Held::Number);
    case ParamKind::Scalar: return put(f.arg<Scalar>(i), Held::Number);
    case ParamKind::DType: return put(f.arg<DType>(i), Held::Number);
    case ParamKind::Device: return put(f.arg<Device>(i), Held::Number);
    default: return keep_elsewhere(f);
  }
}

[[gnu::noinline]] void Node::Saved::keep_elsewhere(const Frame& f) {
  const int i = what.index;
  if (what.kind == BoundSave::DeviceOf) return put(f.tensor(i).device(), Held::Number);
  const auto boxed = [&](Value v) { put(new Value(std::move(v)), Held::Boxed); };
  const auto list = [&](TensorSpan ts) {
    auto saved = std::make_unique<SavedList>();
    for (size_t k = 0; k < ts.size(); ++k) {
      Tensor value = is_read(*f.op, what, k) ? own_value(*f.op, ts[k], key_) : Tensor();
      std::shared_ptr<Packed> form = packed_form(*f.op, value, key_);
      if (asked_of_tapes.packer) saved->packed.push_back(form);
      saved->values.push_back(form ? Tensor() : std::move(value));
      const TensorImpl* const kept = saved->values.back().impl();
      saved->versions.push_back({kept ? writes_seen(*kept) : 0, kept ? last_level(*kept) : 0});
    }
    put(saved.release(), Held::List);
  };
  if (what.kind == BoundSave::Result) return list(*f.list);
  if (what.kind == BoundSave::MetaOf) return list(without_elements(f.tensors(i)));
  const ParamKind kind = f.op->schema.params[size_t(i)].kind;
  if (kind == ParamKind::TensorList) return list(f.tensors(i));
  if (kind == ParamKind::String) return boxed(f.arg<std::string>(i));
  LAMELLA_ASSERT(kind == ParamKind::Function);
  boxed(f.arg<FunctionRef>(i));
}

void Node::Saved::used() const {
  if (held_ == Held::Packed) as<std::shared_ptr<Packed>>()->used();
  if (held_ != Held::List) return;
  for (const std::shared_ptr<Packed>& p : as<SavedList*>()->packed)
    if (p) p->used();
}

const void* Node::Saved::pointer(const Op& op, Ints& ints, TensorSpan& list, Tensors& unpacked) const {
  if (held_ == Held::None) return nullptr;
  if (held_ == Held::Number) return bytes_;
  if (held_ == Held::Ints) return &(ints = Ints(reinterpret_cast<const int64_t*>(bytes_), n_ints_));
  if (held_ == Held::MoreInts) return &(ints = Ints(as<const int64_t*>(), n_ints_));
  if (held_ == Held::Tensor || held_ == Held::Wrapper) {
    const Tensor& t = as<Tensor>();
    const TensorImpl* const impl = t.impl();
    if (!impl) return nullptr;
    const bool plain = impl->storage && impl->storage->version.load(std::memory_order_relaxed) == version_;
    const int last = held_ == Held::Tensor ? 0 : bytes_[sizeof(Tensor)];
    return plain ? &t : as_saved(op.name, t, key_, last, version_);
  }
  if (held_ == Held::List) {
    SavedList& saved = *as<SavedList*>();
    for (size_t k = 0; k < saved.values.size(); ++k) {
      if (!saved.values[k].defined()) continue;
      const auto [version, last] = saved.versions[k];
      const Tensor* const then = as_saved(op.name, saved.values[k], key_, last, version);
      if (then != &saved.values[k]) saved.values[k] = Tensor(*then);  // promoted meanwhile
    }
    if (saved.packed.empty()) return &(list = TensorSpan(saved.values));
    unpacked = saved.values;
    for (size_t k = 0; k < unpacked.size(); ++k)
      if (saved.packed[k]) unpacked[k] = saved.packed[k]->unpack();
    return &(list = TensorSpan(unpacked));
  }
  if (held_ == Held::Packed) {
    unpacked.assign(1, as<std::shared_ptr<Packed>>()->unpack());
    return &unpacked[0];
  }
  const Value& v = *as<Value*>();
  if (const auto* function = std::get_if<FunctionRef>(&v)) return function;
  return std::get_if<std::string>(&v);
}

namespace {
/// Only broadcasting operators sum and cast; others' formulas return the input's shape and dtype themselves.
bool needs_fix(const Frame& f, const Tensor& x, const Tensor& result) {
  if (x.dtype() != result.dtype()) return true;
  return f.op->shape == ShapeClass::Broadcast && !x.impl()->has_shape_of(*result.impl());
}

/// What the formulas of these inputs need, and which inputs have to be fitted to.
struct Needs {
  SavePlan plan;
  std::span<const BoundSave> saves;
  bool fixes[kMaxArity];

  Needs(const Frame& f, std::span<const TapeInput> inputs) {
    const Op& op = *f.op;
    if (inputs.size() == 1 && op.simple) {
      const int param = inputs[0].param;
      const BoundFormula* const formula = op.vjp_of(param);
      fixes[param] = needs_fix(f, f.arg<Tensor>(param), f.results[0]);
      if (formula && !fixes[param]) {
        saves = formula->saves;
        return;
      }
    }
    int last = -1;
    for (const TapeInput& in : inputs) {
      if (in.param == last) continue;  // entries of a list share its formula
      last = in.param;
      add(f, last);
    }
    saves = {plan.what, size_t(plan.n)};
  }

 private:
  void add(const Frame& f, int param) {
    const Op& op = *f.op;
    const bool is_list = !op.simple && op.schema.params[size_t(param)].kind == ParamKind::TensorList;
    fixes[param] = !is_list && needs_fix(f, f.tensor(param), f.results[0]);
    if (const BoundFormula* const formula = op.vjp_of(param))
      for (const BoundSave& s : formula->saves) plan.add(s);
    if (!fixes[param]) return;
    plan.add({BoundSave::SizesOf, uint8_t(param)});
    plan.add({BoundSave::DTypeOf, uint8_t(param)});
  }
};
}  // namespace

/// Edges name outputs in 16 bits.
static size_t outputs_of_list(const Frame& f) {
  const size_t n = f.list->size();
  LAMELLA_CHECK(n <= kMaxListResults, Value, "{}: gives {} tensors, expected at most {} where it is recorded",
                f.op->name, n, kMaxListResults);
  return n;
}

NodeRef record(const Frame& f, std::span<const TapeInput> inputs, int key) {
  const Op& op = *f.op;
  const Needs needs(f, inputs);
  const int room = int(needs.saves.size()) + asked_of_tapes.special_nodes;  // a note's, too
  NodeRef owner = NodeRef::adopt(Node::create(inputs.size(), room));
  Node* const node = owner.get();
  node->op = &op;
  node->n_outputs = uint32_t(gives_list(f) ? outputs_of_list(f) : size_t(op.schema.n_results));
  uint64_t order = 0;
  Edge* edge = node->edges();
  for (const TapeInput& in : inputs) {
    Node* const from = in.from->node.get();
    from->retain();
    order = std::max(order, from->order);
    *edge++ = {from, uint32_t(in.element), uint16_t(in.from->output), uint8_t(in.param),
               needs.fixes[in.param]};
  }
  node->order = order + 1;
  node->n_edges = uint32_t(inputs.size());
  Node::Saved* const saved = node->saved();
  for (const BoundSave& what : needs.saves) {
    new (saved + node->n_saved) Node::Saved(f, what, key, inputs);
    ++node->n_saved;
  }
  if (asked_of_tapes.special_nodes) [[unlikely]]
    note_specially(*node, f, key);
  return owner;
}

}  // namespace lamella
