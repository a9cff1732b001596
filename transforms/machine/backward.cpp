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

  void add(Node* node, uint32_t output, Tensor ct) {
    if (!wanted_.has(node)) return;
    const uint32_t at = place_of(node);
    if (hidden_.any()) [[unlikely]]
      note_hidden(at, {});
    sum_up(at, output, std::move(ct));
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
      const std::span<Tensor> cts = p.node->n_outputs <= 1 ? std::span(&p.first, 1) : std::span(p.more);
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
      if constexpr (kWatched) watch_->arrived(*p.node, cotangents_of(p));
      if (runs) run_node<kWatched>(p, at);
      else if (hooks_ && !p.node->op && p.node->extra) hooks_->on_leaf(*p.node, p.at(0));
      free_.push_back(at);
    }
    return std::move(found_);
  }

  static TensorSpan cotangents_of(const Pending& p) {
    return p.node->n_outputs <= 1 ? TensorSpan(&p.first, 1) : TensorSpan(p.more);
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

  template <bool kWatched> void run_node(Pending& p, uint32_t at) {
    step<kWatched>(p, at);
    if (!p.node->packed) [[likely]]
      return;
    for (int i = 0; i < p.node->n_saved; ++i) p.node->saved()[i].used();
  }

  static Given given_as(Tensor&& ct) { return {std::move(ct), {}}; }
  static Given given_as(Given&& g) { return std::move(g); }

  template <bool kWatched> void step(Pending& p, uint32_t at) {
    Node& n = *p.node;
    const TensorSpan cts = cotangents_of(p);
    const bool hooked = hooks_ && n.extra && hooks_->watches(n);
    if (hooked || kWatched) [[unlikely]]
      return step_whole(n, at, cts, hooked ? hooks_ : nullptr);
    run_rules(n, at, cts, [&](uint32_t i, auto&& g) { deliver(n, n.edges()[i], std::move(g)); });
  }

  /// Delivers when all formulas have run, and been looked at.
  void step_whole(Node& n, uint32_t at, TensorSpan cts, TapeHooks* hooks) {
    std::vector<Given> given(n.n_edges);
    look_at_step(watch_, hooks, n, cts, given, [&] {
      run_rules(n, at, cts, [&](uint32_t i, auto&& g) { given[i] = given_as(std::move(g)); });
    });
    for (uint32_t i = 0; i < n.n_edges; ++i)
      if (given[i].cotangent.defined()) deliver(n, n.edges()[i], std::move(given[i]));
  }

  void deliver(const Node& n, const Edge& e, Tensor&& ct) {
    if (!e.node->op) check_gradient(n, e, ct, to_);
    add(e.node, e.output, std::move(ct));
  }
  void deliver(const Node& n, const Edge& e, Given&& g) {
    if (!g.marks || !e.node->op || !wanted_.has(e.node)) return deliver(n, e, std::move(g.cotangent));
    const uint32_t to = place_of(e.node);
    note_hidden(to, g.hidden);
    sum_up(to, e.output, std::move(g.cotangent));
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
          if (const Tensor& ct = entry_of(all, n, n.edges()[i]); ct.defined()) give(i, Tensor(ct));
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
      give(i, std::move(ct));
    }
  }

  void note_hidden(uint32_t at, const Tensor& hidden) {
    const Pending& p = pending_[at];
    if (p.node->n_outputs <= 1) hidden_.arrive(at, !p.first.defined(), hidden);
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
    if (roots[i].node && cotangents[i].defined()) b.add(roots[i].node.get(), roots[i].output, cotangents[i]);
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
