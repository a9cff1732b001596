// Running a tape backwards: nodes by descending order, cotangents summed where paths meet.
#include <algorithm>

#include "lamella/core/pointer_index.h"
#include "lamella/core/thresholds.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/tapes/hidden.h"
#include "lamella/transforms/tapes/steps.h"
#include "lamella/transforms/tapes/wanted.h"

namespace lamella {

namespace {
/// A node that has received a cotangent and waits for its turn.
struct Pending {
  Node* node;
  uint64_t found;  ///< counts nodes
  Tensor first;    ///< cotangent of output 0
  Tensors more;    ///< all outputs, when there are several
  Tensor& at(uint32_t output) {
    if (node->n_outputs <= 1) return first;
    more.resize(node->n_outputs);
    return more[output];
  }
  std::span<Tensor> cotangents() { return node->n_outputs <= 1 ? std::span(&first, 1) : std::span(more); }
};

class Backward {
 public:
  /// Heap order: the highest node next; among equals the one found first.
  struct Before {
    const std::vector<Pending>& pending;
    bool operator()(uint32_t a, uint32_t b) const {
      const uint64_t x = pending[a].node->order, y = pending[b].node->order;
      return x != y ? x < y : pending[a].found > pending[b].found;
    }
  };

  /// `frees`: nodes that wait are held, so that what nobody else holds is freed once it has run.
  Backward(const Receivers& to, bool frees = false)
      : to_(to), watch_(watch_in_force()), frees_(frees), found_(targets_.size()) {
    if (hooks_ && targets_.empty()) return;
    lowest_ = ~uint64_t{0};
    for (const NodeOutput& t : targets_)
      if (t.node) lowest_ = std::min(lowest_, t.node->order);
  }

  ~Backward() {
    for (const uint32_t at : queue_)  // something has raised
      if (frees_ && pending_[at].node->release()) Node::destroy(pending_[at].node);
  }
  Backward(const Backward&) = delete;

  /// What is added next are the cotangents of these.
  void begin(std::span<const NodeOutput> roots) {
    if (hooks_ && !targets_.empty()) wanted_ = Wanted(roots, targets_);
  }

  void add(Node* node, uint32_t output, Given&& g) {
    if (!wanted_.has(node)) return;
    const uint32_t at = place_of(node);
    if (g.hidden.defined() || hidden_.any()) [[unlikely]]
      if (node->n_outputs <= 1) hidden_.arrive(at, !pending_[at].first.defined(), g.hidden);
    sum_up(at, output, std::move(g.cotangent));
  }

  Tensors run() { return watch_ ? run_all<true>() : run_all<false>(); }

 private:
  static constexpr size_t kFew = size_t(kUsualThresholds.few_waiting);

  template <bool kWatched> Tensors run_all() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), Before{pending_});
      const uint32_t at = queue_.back();
      queue_.pop_back();
      Pending p = std::move(pending_[at]);
      const NodeRef held = frees_ ? NodeRef::adopt(p.node) : NodeRef();
      const std::span<Tensor> cts = p.cotangents();
      const bool hooked = hooks_ && p.node->extra;
      if (hooked) [[unlikely]]
        hooks_->complete(*p.node, cts);
      collect(p);
      // Whatever a node is computed from has a lower order: those at and below the lowest target lead to
      // none.
      const bool above = p.node->order > lowest_ || lowest_ == 0;
      const bool runs = p.node->op && above && wanted_.runs(*p.node);
      if (hooked && runs) [[unlikely]]
        hooks_->before(*p.node, cts);
      if constexpr (kWatched) watch_->arrived(*p.node, cts);
      if (runs) run_node<kWatched>(*p.node, at, cts);
      else if (hooks_ && !p.node->op && p.node->extra) hooks_->on_leaf(*p.node, p.at(0));
      free_.push_back(at);
    }
    return std::move(found_);
  }

  /// NOTE: [nodes that wait] A node that has run never comes again. While few wait, looking through them is
  /// cheaper than a table (decision 0004); places of those that have run are taken again.
  uint32_t place_of(Node* node) {
    if (queue_.size() <= kFew) {
      for (const uint32_t at : queue_)
        if (pending_[at].node == node) return at;
    } else if (const uint32_t at = index_.find(node); at != PointerIndex::kAbsent) {
      return at;
    }
    const uint32_t at = new_place(node);
    if (queue_.size() == kFew)
      for (const uint32_t waiting : queue_) index_.insert(pending_[waiting].node, waiting);
    queue_.push_back(at);
    if (frees_) node->retain();
    std::push_heap(queue_.begin(), queue_.end(), Before{pending_});
    if (queue_.size() > kFew) index_.insert(node, at);
    return at;
  }

  uint32_t new_place(Node* node) {
    if (free_.empty()) {
      pending_.push_back({node, count_++, {}, {}});
      return uint32_t(pending_.size() - 1);
    }
    const uint32_t at = free_.back();
    free_.pop_back();
    pending_[at].node = node;
    pending_[at].found = count_++;
    hidden_.forget(at);
    return at;
  }

  void sum_up(uint32_t at, uint32_t output, Tensor ct) {
    Tensor& slot = pending_[at].at(output);
    if (watch_ && slot.defined()) return sum_watched(*watch_, *pending_[at].node, slot, ct);
    if (slot.defined()) slot = lamella::add(slot, ct);
    else slot = std::move(ct);
  }

  void collect(Pending& p) {
    for (size_t i = 0; i < targets_.size(); ++i)
      if (targets_[i].node.get() == p.node) found_[i] = p.at(targets_[i].output);
  }

  /// The saved value a formula's declaration means, as a pointer by the conventions of frames.
  const void* saved(Node& n, BoundSave what, Ints& ints, size_t slot = 0) {
    for (int i = 0; i < n.n_saved; ++i) {
      const Node::Saved& s = n.saved()[i];
      if (s.what.kind != what.kind || s.what.index != what.index) continue;
      const void* value = s.pointer(*n.op, ints, lists_[slot], unpacked_[slot]);
      return value && hooks_ && hooks_->keeps_history
                 ? with_history(*hooks_, n, what, value, lists_[slot], kept_[slot])
                 : value;
    }
    LAMELLA_ASSERT(!"a formula's saved value was not recorded");
    return nullptr;
  }

  template <bool kWatched> void run_node(Node& n, uint32_t at, TensorSpan cts) {
    TapeHooks* const hooks = hooks_ && n.extra && hooks_->watches(n) ? hooks_ : nullptr;
    if (kWatched || hooks) [[unlikely]] {  // delivered when all formulas have run, and been looked at
      std::vector<Given> given(n.n_edges);
      look_at_step(watch_, hooks, n, cts, given,
                   [&] { run_rules(n, at, cts, [&](uint32_t i, Given&& g) { given[i] = std::move(g); }); });
      for (uint32_t i = 0; i < n.n_edges; ++i)
        if (given[i].cotangent.defined()) deliver(n, n.edges()[i], std::move(given[i]));
    } else {
      run_rules(n, at, cts, [&](uint32_t i, Given&& g) { deliver(n, n.edges()[i], std::move(g)); });
    }
    for (int i = 0; n.packed && i < n.n_saved; ++i)
      if (Kept* const kept = n.saved()[i].kept()) kept->used();
  }

  void deliver(const Node& n, const Edge& e, Given&& g) {
    if (!e.node->op) check_gradient(n, e, g.cotangent, to_);
    add(e.node, e.output, std::move(g));
  }

  /// Calls give(edge, what its formula gives) for the edges that get something.
  template <class Give> void run_rules(Node& n, uint32_t at, TensorSpan cts, Give&& give) {
    for (uint32_t i = 0; i < n.n_edges; ++i) {
      const Edge& e = n.edges()[i];
      const BoundFormula* formula = n.op->vjp_of(e.input);
      if (!formula || !wanted_.has(e.node)) continue;
      LAMELLA_ASSERT(formula->saves.size() <= kMaxSaves);
      const void* pointers[kMaxSaves];
      for (size_t k = 0; k < formula->saves.size(); ++k)
        pointers[k] = saved(n, formula->saves[k], ints_[k], k);
      const RuleArgs args{cts, pointers};
      if (formula->many) {
        const Tensors all = formula->many(args);
        const int param = e.input;
        for (; i < n.n_edges && n.edges()[i].input == param; ++i)
          if (const Tensor& ct = entry_of(all, n, n.edges()[i]); ct.defined()) give(i, Given{ct, {}});
        --i;
        continue;
      }
      Tensor ct = formula->one(args);
      if (!ct.defined()) continue;
      if (formula->hidden || hidden_.any()) [[unlikely]] {
        give(i, hidden_.through(n, at, e, *formula, args, std::move(ct),
                                [&](const Tensor& t) { return fit(n, e, t); }));
        continue;
      }
      if (e.fix) ct = fit(n, e, ct);
      give(i, Given{std::move(ct), {}});
    }
  }

  Tensor fit(Node& n, const Edge& e, const Tensor& ct) {
    Ints sizes, unused;
    saved(n, {BoundSave::SizesOf, e.input}, sizes);
    const auto* dtype = static_cast<const DType*>(saved(n, {BoundSave::DTypeOf, e.input}, unused));
    return fit_cotangent(ct, sizes, *dtype);
  }

  const Receivers to_;
  const std::span<const NodeOutput> targets_ = to_.targets;
  TapeHooks* const hooks_ = to_.hooks;
  TapeWatch* const watch_;
  const bool frees_;
  Tensors kept_[kMaxSaves];  ///< saved values with their history, of the formula that runs
  uint64_t lowest_ = 0;      ///< order of the lowest target; 0: everything runs
  Wanted wanted_;
  Tensors found_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> queue_, free_;  ///< places of nodes that wait; places to be taken again
  uint64_t count_ = 0;
  HiddenElements hidden_;  ///< by place in pending_
  PointerIndex index_;
  Ints ints_[kMaxSaves];         ///< saved sizes, of the formula that runs
  TensorSpan lists_[kMaxSaves];  ///< likewise saved lists
  Tensors unpacked_[kMaxSaves];  ///< likewise what was packed
};

void add_roots(Backward& b, std::span<const NodeOutput> roots, const Tensors& cotangents) {
  b.begin(roots);
  for (size_t i = 0; i < roots.size(); ++i)
    if (roots[i].node && cotangents[i].defined())
      b.add(roots[i].node.get(), roots[i].output, {cotangents[i], {}});
}
}  // namespace

Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents, const Receivers& to) {
  Backward b(to);
  add_roots(b, roots, cotangents);
  return b.run();
}

Tensors run_backward_once(std::vector<NodeOutput>& roots, Tensors cotangents, const Receivers& to) {
  Backward b(to, true);
  add_roots(b, roots, cotangents);
  roots.clear(), cotangents.clear();
  return b.run();
}

}  // namespace lamella
