// Running a tape backwards: nodes by descending order, cotangents summed where paths meet.
#include <algorithm>

#include "lamella/ops/functions.h"
#include "lamella/transforms/tape.h"

namespace lamella {

namespace {
/// NOTE: [hidden elements] `where`, `clamp`, `maximum` and `minimum` leave out elements of their arguments,
/// which are often those where another operator below is singular: where(x > 0, sqrt(x), 0). Their cotangent
/// is 0 there, the slope below infinite, and 0 * inf is NaN, although the function is smooth. So these rules
/// say which elements they hide, and pointwise operators below hide them too: what they give back is 0 there
/// at any slope, and so are its derivatives, as the zeros come from `where` itself. Zeros that merely happen
/// are multiplied as ever: their derivatives need not be 0. The mark passes through pointwise operators while
/// sizes stay and all paths to a node agree; what is not pointwise gets zeros and knows nothing of it.
/// `linear` operators have finite slopes and only pass it on.

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
    const uint32_t at = place_of(node);
    if (!hidden_.empty()) [[unlikely]]
      note_hidden(at, {});
    sum_up(at, output, std::move(ct));
  }

  Tensors run() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), Before{pending_});
      const uint32_t at = queue_.back();
      queue_.pop_back();
      Pending p = std::move(pending_[at]);
      pending_[at].node = p.node;
      collect(p);
      if (p.node->op) step(p, at);
      else if (hooks_.on_leaf && p.node->leaf) hooks_.on_leaf(*p.node, p.at(0));
    }
    return std::move(found_);
  }

 private:
  uint32_t place_of(Node* node) {
    uint32_t at = index_.find(node);
    if (at != NodeIndex::kAbsent) return at;
    at = uint32_t(pending_.size());
    index_.insert(node, at);
    pending_.push_back({node, {}, {}});
    queue_.push_back(at);
    std::push_heap(queue_.begin(), queue_.end(), Before{pending_});
    return at;
  }

  void sum_up(uint32_t at, uint32_t output, Tensor ct) {
    Tensor& slot = pending_[at].at(output);
    if (slot.defined()) slot = lamella::add(slot, ct);
    else slot = std::move(ct);
  }

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

  void step(Pending& p, uint32_t at) {
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
      if (formula->hidden || !hidden_.empty()) [[unlikely]] {
        add_hiding(at, e, *formula, args, std::move(ct));
        continue;
      }
      if (e.fix) ct = fit(n, e, ct);
      add(e.node, e.output, std::move(ct));
    }
  }

  /// What is left out at a place: of the first cotangent, then what all have in common.
  void note_hidden(uint32_t at, const Tensor& hidden) {
    if (hidden_.size() <= at) hidden_.resize(at + 1);
    Pending& p = pending_[at];
    Tensor& here = hidden_[at];
    if (p.node->n_outputs > 1) return;
    if (!p.first.defined()) here = hidden;
    else if (here.defined()) here = hidden.defined() ? logical_and(here, hidden) : Tensor();
  }

  static bool is_pointwise(const Node& n) { return n.op && n.op->shape == ShapeClass::Broadcast; }

  /// Adds what the node at `at` gives back, without the elements hidden above, and notes what it hides.
  [[gnu::noinline]] void add_hiding(uint32_t at, const Edge& e, const BoundFormula& formula,
                                    const RuleArgs& args, Tensor ct) {
    Node& n = *pending_[at].node;
    const Tensor above = at < hidden_.size() ? hidden_[at] : Tensor();
    Tensor hidden;
    if (formula.hidden && is_pointwise(*e.node)) hidden = formula.hidden(args);
    if (above.defined() && is_pointwise(n)) {
      if (!n.op->has(kLinear)) ct = where(above, zeros_like(ct), ct);
      hidden = hidden.defined() ? logical_or(above, hidden) : above;
    }
    if (e.fix) {
      const Tensor fitted = fit(n, e, ct);
      if (!std::ranges::equal(ct.sizes(), fitted.sizes())) hidden = {};
      ct = fitted;
    }
    const uint32_t to = place_of(e.node);
    note_hidden(to, hidden);
    sum_up(to, e.output, std::move(ct));
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
  Tensors hidden_;  ///< by place in pending_; shorter, or empty, where nothing is left out
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
