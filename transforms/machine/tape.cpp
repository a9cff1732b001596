// Recording nodes and freeing them.
#include "lamella/transforms/machine/tape.h"

#include <algorithm>

#include "lamella/core/thresholds.h"
#include "lamella/transforms/tapes/asked.h"
#include "lamella/transforms/writes/own_header.h"

namespace lamella {

using IntPool = Pool<64>;

inline Node::Saved::~Saved() {
  if (held_ == Held::Tensor) [[likely]]
    as<Tensor>().~Tensor();
  else if (held_ > Held::Tensor) drop();
}

void Node::Saved::drop() {
  if (held_ == Held::Wrapper) as<Tensor>().~Tensor();
  if (held_ == Held::MoreInts) n_ints_ <= kPooledInts ? IntPool::free(as<void*>()) : delete[] as<int64_t*>();
  delete kept();
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
  if (std::shared_ptr<Packed> form = packed_form(op, value, key_))
    put<Kept*>(new KeptForm(std::move(form)), Held::Elsewhere);
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
  if (what.kind == BoundSave::DeviceOf) return put(f.tensor(i).device(), Held::Number);
  if (what.kind == BoundSave::Argument) {
    if (f.none(i)) return;
    switch (f.op->schema.params[size_t(i)].kind) {
      case ParamKind::Ints: return keep_ints(f.ints(i));
      case ParamKind::Int: return put(f.arg<int64_t>(i), Held::Number);
      case ParamKind::Float: return put(f.arg<double>(i), Held::Number);
      case ParamKind::Bool: return put(f.arg<bool>(i), Held::Number);
      case ParamKind::Scalar: return put(f.arg<Scalar>(i), Held::Number);
      case ParamKind::DType: return put(f.arg<DType>(i), Held::Number);
      case ParamKind::Device: return put(f.arg<Device>(i), Held::Number);
      default: break;
    }
  }
  put(kept_of(f, what, key_).release(), Held::Elsewhere);
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
  return as<Kept*>()->pointer(op, list, unpacked);
}

namespace {
/// Only broadcasting operators sum and cast; others' formulas return the input's shape and dtype themselves.
bool needs_fix(const Frame& f, const Tensor& x, const Tensor& result) {
  if (x.dtype() != result.dtype()) return true;
  return f.op->shape == ShapeClass::Broadcast && !x.impl()->has_shape_of(*result.impl());
}

/// What the formulas of these inputs need, each once, and which inputs have to be fitted to.
struct Needs {
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
      add_input(f, last);
    }
    saves = {room_, n_};
  }

 private:
  void add_input(const Frame& f, int param) {
    const Op& op = *f.op;
    fixes[param] = (op.simple || !is_list(op, param)) && needs_fix(f, f.tensor(param), f.results[0]);
    if (const BoundFormula* const formula = op.vjp_of(param))
      for (const BoundSave& s : formula->saves) add(s);
    if (!fixes[param]) return;
    add({BoundSave::SizesOf, uint8_t(param)});
    add({BoundSave::DTypeOf, uint8_t(param)});
  }
  void add(BoundSave s) {
    for (size_t i = 0; i < n_; ++i)
      if (room_[i].kind == s.kind && room_[i].index == s.index) return;
    LAMELLA_ASSERT(n_ < std::size(room_));
    room_[n_++] = s;
  }
  /// The formulas', and sizes and dtype of each input whose cotangent must be fitted to it.
  BoundSave room_[kMaxSavedByNode + 2 * kMaxArity];
  size_t n_ = 0;
};
}  // namespace

NodeRef record(const Frame& f, std::span<const TapeInput> inputs, int key) {
  const Op& op = *f.op;
  const Needs needs(f, inputs);
  const int room = int(needs.saves.size()) + asked_of_tapes.special_nodes;  // a note's, too
  NodeRef owner = NodeRef::adopt(Node::create(inputs.size(), room));
  Node* const node = owner.get();
  node->op = &op;
  const size_t n = results_of(f).size();  // edges name outputs in 16 bits
  LAMELLA_CHECK(n <= kMaxListResults, Value, "{}: gives {} tensors, expected at most {} where it is recorded",
                op.name, n, kMaxListResults);
  node->n_outputs = uint32_t(n);
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
