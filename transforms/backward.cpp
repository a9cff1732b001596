// Running a tape backwards: nodes by descending order, cotangents summed where paths meet.
#include <algorithm>

#include "lamella/ops/functions.h"
#include "lamella/transforms/tape.h"

namespace lamella {

namespace {
/// A node that has received a cotangent and waits for its turn.
struct Pending {
  Node* node;
  Tensor first;  ///< cotangent of output 0
  Tensors more;  ///< all outputs, when there are several
  Tensor& at(uint32_t output) {
    if (node->n_outputs <= 1) return first;
    more.resize(node->n_outputs);
    return more[output];
  }
};

/// Node -> place in the list of pending ones: open addressing, no allocation a node.
class NodeIndex {
 public:
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  uint32_t find(const Node* node) const {
    for (size_t i = home(node);; i = (i + 1) & mask())
      if (!slots_[i].node) return kAbsent;
      else if (slots_[i].node == node) return slots_[i].at;
  }
  void insert(const Node* node, uint32_t at) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    put({node, at});
    ++used_;
  }

 private:
  struct Slot {
    const Node* node;
    uint32_t at;
  };
  size_t mask() const { return slots_.size() - 1; }
  size_t home(const Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15u >> 20 & mask();
  }
  void put(Slot s) {
    size_t i = home(s.node);
    while (slots_[i].node) i = (i + 1) & mask();
    slots_[i] = s;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2, Slot{nullptr, 0});
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.node) put(s);
  }
  std::vector<Slot> slots_ = std::vector<Slot>(64, Slot{nullptr, 0});
  size_t used_ = 0;
};

class Backward {
 public:
  /// Heap order: the highest node next; among equals the one found first.
  struct Before {
    const std::vector<Pending>& pending;
    bool operator()(uint32_t a, uint32_t b) const {
      const uint64_t x = pending[a].node->order, y = pending[b].node->order;
      return x != y ? x < y : a > b;
    }
  };

  Backward(std::span<const NodeOutput> targets, TapeHooks hooks)
      : targets_(targets), hooks_(hooks), found_(targets.size()) {}

  void add(Node* node, uint32_t output, Tensor ct) {
    uint32_t at = index_.find(node);
    if (at == NodeIndex::kAbsent) {
      at = uint32_t(pending_.size());
      index_.insert(node, at);
      pending_.push_back({node, {}, {}});
      queue_.push_back(at);
      std::push_heap(queue_.begin(), queue_.end(), Before{pending_});
    }
    Tensor& slot = pending_[at].at(output);
    if (slot.defined()) slot = lamella::add(slot, ct);
    else slot = std::move(ct);
  }

  Tensors run() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), Before{pending_});
      const uint32_t at = queue_.back();
      queue_.pop_back();
      Pending p = std::move(pending_[at]);
      pending_[at].node = p.node;
      collect(p);
      if (p.node->op) step(p);
      else if (hooks_.on_leaf && p.node->leaf) hooks_.on_leaf(*p.node, p.at(0));
    }
    return std::move(found_);
  }

 private:
  void collect(Pending& p) {
    for (size_t i = 0; i < targets_.size(); ++i)
      if (targets_[i].node.get() == p.node) found_[i] = p.at(targets_[i].output);
  }

  /// The saved value a formula's declaration means, as a pointer by the conventions of frames.
  const void* saved(Node& n, BoundSave what, Ints& ints) {
    for (int i = 0; i < n.n_saved; ++i) {
      const Node::Saved& s = n.saved()[i];
      if (s.what.kind != what.kind || s.what.index != what.index) continue;
      const void* value = s.pointer(*n.op, ints, list_);
      if (!hooks_.saved_result || what.kind != BoundSave::Result || !value) return value;
      results_[what.index] = hooks_.saved_result(n, what.index, *static_cast<const Tensor*>(value));
      return &results_[what.index];
    }
    LAMELLA_ASSERT(!"a formula's saved value was not recorded");
    return nullptr;
  }

  void step(Pending& p) {
    Node& n = *p.node;
    const TensorSpan cts = n.n_outputs <= 1 ? TensorSpan(&p.first, 1) : TensorSpan(p.more);
    for (int i = 0; i < n.n_edges; ++i) {
      const Edge& e = n.edges()[i];
      const BoundFormula* formula = n.op->vjp_of(e.input);
      if (!formula) continue;
      LAMELLA_ASSERT(formula->saves.size() <= size_t(kMaxSaves));
      Ints ints[kMaxSaves];
      const void* pointers[kMaxSaves];
      for (size_t k = 0; k < formula->saves.size(); ++k) pointers[k] = saved(n, formula->saves[k], ints[k]);
      const RuleArgs args{cts, pointers};
      if (formula->many) {
        const Tensors all = formula->many(args);
        const int param = e.input;
        for (; i < n.n_edges && n.edges()[i].input == param; ++i) {
          const Edge& to = n.edges()[i];
          if (all[to.element].defined()) add(to.node, to.output, all[to.element]);
        }
        --i;
        continue;
      }
      Tensor ct = formula->one(args);
      if (!ct.defined()) continue;
      if (e.fix) ct = fit(n, e, ct);
      add(e.node, e.output, std::move(ct));
    }
  }

  Tensor fit(Node& n, const Edge& e, const Tensor& ct) {
    Ints sizes, unused;
    saved(n, {BoundSave::SizesOf, e.input}, sizes);
    const auto* dtype = static_cast<const DType*>(saved(n, {BoundSave::DTypeOf, e.input}, unused));
    return fit_cotangent(ct, sizes, *dtype);
  }

  std::span<const NodeOutput> targets_;
  TapeHooks hooks_;
  Tensor results_[kMaxResults];  ///< what hooks_.saved_result gave
  Tensors found_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> queue_;
  NodeIndex index_;
  TensorSpan list_;
};
}  // namespace

Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents,
                     std::span<const NodeOutput> targets, TapeHooks hooks) {
  Backward b(targets, hooks);
  for (size_t i = 0; i < roots.size(); ++i)
    if (roots[i].node && cotangents[i].defined()) b.add(roots[i].node.get(), roots[i].output, cotangents[i]);
  return b.run();
}

}  // namespace lamella
