// Running a tape backwards: nodes by descending order, cotangents summed where paths meet.
#include <algorithm>

#include "lamella/core/thresholds.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/machine/tape.h"

namespace lamella {

namespace {
/// NOTE: [hidden elements] `where`, `clamp`, `maximum` and `minimum` leave out elements of their arguments,
/// which are often those where another operator below is singular: where(x > 0, sqrt(x), 0). Their cotangent
/// is 0 there, the slope below infinite, and 0 * inf is NaN, although the function is smooth. So these rules
/// say which elements they hide, and pointwise operators below hide them too: what they give back is 0 there
/// at any slope, and so are its derivatives, as the zeros come from `where` itself. Zeros that merely happen
/// are multiplied as ever: their derivatives need not be 0. The mark passes through pointwise operators,
/// where an element of a broadcast operand is hidden if all that it takes part in is, and through views,
/// whose transposes carry it; what is neither gets zeros and knows nothing of it. All paths to a node have to
/// agree. `linear` operators have finite slopes and only pass it on.

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
    used_ += put({node, at});
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
  /// Whether it is new.
  bool put(Slot s) {
    size_t i = home(s.node);
    while (slots_[i].node && slots_[i].node != s.node) i = (i + 1) & mask();
    const bool fresh = !slots_[i].node;
    slots_[i] = s;
    return fresh;
  }
  void grow() {
    std::vector<Slot> old(std::max<size_t>(slots_.size() * 2, 64), Slot{nullptr, 0});
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.node) put(s);
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
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
  Backward(std::span<const NodeOutput> targets, TapeHooks* hooks, bool frees = false)
      : targets_(targets), hooks_(hooks), watch_(watch_in_force()), frees_(frees), found_(targets.size()) {
    if (hooks && targets.empty()) return;
    lowest_ = ~uint64_t{0};
    for (const NodeOutput& t : targets)
      if (t.node) lowest_ = std::min(lowest_, t.node->order);
  }

  ~Backward() {
    for (const uint32_t at : queue_)  // something has raised
      if (frees_ && pending_[at].node->release()) Node::destroy(pending_[at].node);
  }
  Backward(const Backward&) = delete;

  void add(Node* node, uint32_t output, Tensor ct) {
    const uint32_t at = place_of(node);
    if (!hidden_.empty()) [[unlikely]]
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
      if (hooks_ && p.node->extra) [[unlikely]]
        hooks_->before(*p.node, p.node->n_outputs <= 1 ? std::span(&p.first, 1) : std::span(p.more));
      if constexpr (kWatched) watch_->arrived(*p.node, cotangents_of(p));
      collect(p);
      // Whatever a node is computed from has a lower order: those at and below the lowest target lead to
      // none.
      if (p.node->op && (p.node->order > lowest_ || lowest_ == 0)) run_node<kWatched>(p, at);
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
    } else if (const uint32_t at = index_.find(node); at != NodeIndex::kAbsent) {
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
    if (at < hidden_.size()) hidden_[at] = {};
    return at;
  }

  void sum_up(uint32_t at, uint32_t output, Tensor ct) {
    Tensor& slot = pending_[at].at(output);
    if (watch_ && slot.defined()) return sum_watched(*pending_[at].node, slot, ct);
    if (slot.defined()) slot = lamella::add(slot, ct);
    else slot = std::move(ct);
  }

  /// While formulas of a node run, or its cotangents are added up.
  struct Watched {
    Watched(TapeWatch* the_watch, Node& n) : watch(the_watch) { watch->begin(n); }
    ~Watched() { watch->end(); }
    Watched(const Watched&) = delete;
    TapeWatch* watch;
  };

  /// A NaN here is the node's, and so is what is recorded.
  [[gnu::noinline]] void sum_watched(Node& n, Tensor& sum, const Tensor& ct) {
    const Watched scope(watch_, n);
    sum = lamella::add(sum, ct);
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
      return value && hooks_ && hooks_->keeps_history ? with_history(n, what, value, slot) : value;
    }
    LAMELLA_ASSERT(!"a formula's saved value was not recorded");
    return nullptr;
  }

  /// Tapes hold values: a result comes from the node itself, an argument from where its edge leads.
  const void* with_history(Node& n, BoundSave what, const void* value, size_t slot) {
    const auto& params = n.op->schema.params;
    const bool result = what.kind == BoundSave::Result;
    if (!result && what.kind != BoundSave::Argument) return value;
    if (!result && params[what.index].kind != ParamKind::Tensor &&
        params[what.index].kind != ParamKind::TensorList)
      return value;
    const bool is_list = result ? n.op->schema.result_kind == ResultKind::TensorList
                                : params[what.index].kind == ParamKind::TensorList;
    Tensors& kept = kept_[slot];
    if (is_list) kept.assign(lists_[slot].begin(), lists_[slot].end());
    else kept.assign(1, *static_cast<const Tensor*>(value));
    for (size_t k = 0; result && k < kept.size(); ++k)
      kept[k] = hooks_->with_history(kept[k], n, uint32_t(is_list ? k : what.index));
    for (uint32_t i = 0; !result && i < n.n_edges; ++i) {
      const Edge& e = n.edges()[i];
      if (e.input == what.index) kept[e.element] = hooks_->with_history(kept[e.element], *e.node, e.output);
    }
    if (!is_list) return &kept[0];
    return &(lists_[slot] = TensorSpan(kept));
  }

  template <bool kWatched> void run_node(Pending& p, uint32_t at) {
    step<kWatched>(p, at);
    if (!p.node->packed) [[likely]]
      return;
    for (int i = 0; i < p.node->n_saved; ++i) p.node->saved()[i].used();
  }

  /// What a node gives along one edge, and the elements of it that are left out.
  struct Given {
    Tensor cotangent, hidden;
    bool marks = false;
  };

  static Given given_as(Tensor&& ct) { return {std::move(ct), {}}; }
  static Given given_as(Given&& g) { return std::move(g); }

  template <bool kWatched> void step(Pending& p, uint32_t at) {
    Node& n = *p.node;
    const TensorSpan cts = cotangents_of(p);
    const bool hooked = hooks_ && n.extra && hooks_->watches(n);
    if (hooked || kWatched) [[unlikely]]
      return step_whole(n, at, cts, hooked);
    run_rules(n, at, cts, [&](uint32_t i, auto&& g) { deliver(n.edges()[i], std::move(g)); });
  }

  /// Delivers when all formulas have run, and been looked at.
  void step_whole(Node& n, uint32_t at, TensorSpan cts, bool hooked) {
    std::vector<Given> given(n.n_edges);
    const auto run = [&] {
      run_rules(n, at, cts, [&](uint32_t i, auto&& g) { given[i] = given_as(std::move(g)); });
    };
    watch_ ? run_watched(n, given, run) : run();
    if (!hooked) {
      for (uint32_t i = 0; i < n.n_edges; ++i)
        if (given[i].cotangent.defined()) deliver(n.edges()[i], std::move(given[i]));
      return;
    }
    Tensors to_inputs;
    for (Given& g : given) to_inputs.push_back(std::move(g.cotangent));
    hooks_->after(n, to_inputs, cts);
    for (uint32_t i = 0; i < n.n_edges; ++i) {
      if (!to_inputs[i].defined()) continue;
      given[i].cotangent = std::move(to_inputs[i]);
      deliver(n.edges()[i], std::move(given[i]));
    }
  }

  template <class Run> void run_watched(Node& n, const std::vector<Given>& given, const Run& run) {
    {
      const Watched scope(watch_, n);
      try {
        run();
      } catch (const Error& e) { watch_->failed(n, e); }
    }
    for (uint32_t i = 0; i < n.n_edges; ++i)
      if (given[i].cotangent.defined()) watch_->gave(n, n.edges()[i], given[i].cotangent);
  }

  void deliver(const Edge& e, Tensor&& ct) { add(e.node, e.output, std::move(ct)); }
  void deliver(const Edge& e, Given&& g) {
    if (!g.marks) return add(e.node, e.output, std::move(g.cotangent));
    const uint32_t to = place_of(e.node);
    note_hidden(to, g.hidden);
    sum_up(to, e.output, std::move(g.cotangent));
  }

  /// Calls give(edge, what its formula gives) for the edges that get something.
  template <class Give> void run_rules(Node& n, uint32_t at, TensorSpan cts, Give&& give) {
    for (uint32_t i = 0; i < n.n_edges; ++i) {
      const Edge& e = n.edges()[i];
      const BoundFormula* formula = n.op->vjp_of(e.input);
      if (!formula) continue;
      LAMELLA_ASSERT(formula->saves.size() <= kMaxSaves);
      const void* pointers[kMaxSaves];
      for (size_t k = 0; k < formula->saves.size(); ++k)
        pointers[k] = saved(n, formula->saves[k], ints_[k], k);
      const RuleArgs args{cts, pointers};
      if (formula->many) {
        const Tensors all = formula->many(args);
        const int param = e.input;
        for (; i < n.n_edges && n.edges()[i].input == param; ++i)
          if (const Tensor& ct = all[n.edges()[i].element]; ct.defined()) give(i, Tensor(ct));
        --i;
        continue;
      }
      Tensor ct = formula->one(args);
      if (!ct.defined()) continue;
      if (formula->hidden || !hidden_.empty()) [[unlikely]] {
        give(i, hiding(n, at, e, *formula, args, std::move(ct)));
        continue;
      }
      if (e.fix) ct = fit(n, e, ct);
      give(i, std::move(ct));
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
  static bool carries_marks(const Node& n) { return is_pointwise(n) || (n.op && n.op->is_view()); }

  /// Marks of elements by what moves cotangents of these sizes: hidden where none that is not arrives.
  template <class F> static Tensor moved(const Tensor& marks, Ints sizes, F&& move) {
    const Tensor hidden = std::ranges::equal(marks.sizes(), sizes) ? marks : expand(marks, sizes);
    return eq(move(to(logical_not(hidden), DType::F32)), 0.0);
  }

  /// What the node at `at` gives back, without the elements hidden above, and what it hides itself.
  [[gnu::noinline]] Given hiding(Node& n, uint32_t at, const Edge& e, const BoundFormula& formula,
                                 const RuleArgs& args, Tensor ct) {
    const Tensor above = at < hidden_.size() ? hidden_[at] : Tensor();
    Tensor hidden;
    if (formula.hidden && carries_marks(*e.node)) hidden = formula.hidden(args);
    if (above.defined() && is_pointwise(n)) {
      if (!n.op->has(kLinear)) ct = where(above, zeros_like(ct), ct);
      hidden = hidden.defined() ? logical_or(above, hidden) : above;
    } else if (above.defined() && n.op->is_view() && carries_marks(*e.node)) {
      hidden = moved(above, args.directions[0].sizes(), [&](const Tensor& shown) {
        return formula.one({{&shown, 1}, args.saved});
      });
    }
    if (e.fix) {
      const Tensor fitted = fit(n, e, ct);
      if (hidden.defined() && !std::ranges::equal(ct.sizes(), fitted.sizes()))
        hidden = moved(hidden, ct.sizes(),
                       [&](const Tensor& shown) { return sum_to_size(shown, fitted.sizes()); });
      ct = fitted;
    }
    return {std::move(ct), std::move(hidden), true};
  }

  Tensor fit(Node& n, const Edge& e, const Tensor& ct) {
    Ints sizes, unused;
    saved(n, {BoundSave::SizesOf, e.input}, sizes);
    const auto* dtype = static_cast<const DType*>(saved(n, {BoundSave::DTypeOf, e.input}, unused));
    return fit_cotangent(ct, sizes, *dtype);
  }

  std::span<const NodeOutput> targets_;
  TapeHooks* hooks_;
  TapeWatch* const watch_;
  const bool frees_;
  Tensors kept_[kMaxSaves];  ///< saved values with their history, of the formula that runs
  uint64_t lowest_ = 0;      ///< order of the lowest target; 0: everything runs
  Tensors found_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> queue_, free_;  ///< places of nodes that wait; places to be taken again
  uint64_t count_ = 0;
  Tensors hidden_;  ///< by place in pending_; shorter, or empty, where nothing is left out
  NodeIndex index_;
  Ints ints_[kMaxSaves];         ///< saved sizes, of the formula that runs
  TensorSpan lists_[kMaxSaves];  ///< likewise saved lists
  Tensors unpacked_[kMaxSaves];  ///< likewise what was packed
};
void add_roots(Backward& b, std::span<const NodeOutput> roots, const Tensors& cotangents) {
  for (size_t i = 0; i < roots.size(); ++i)
    if (roots[i].node && cotangents[i].defined()) b.add(roots[i].node.get(), roots[i].output, cotangents[i]);
}
}  // namespace

Tensors run_backward(std::span<const NodeOutput> roots, const Tensors& cotangents,
                     std::span<const NodeOutput> targets, TapeHooks* hooks) {
  Backward b(targets, hooks);
  add_roots(b, roots, cotangents);
  return b.run();
}

Tensors run_backward_once(std::vector<NodeOutput>& roots, Tensors cotangents,
                          std::span<const NodeOutput> targets, TapeHooks* hooks) {
  Backward b(targets, hooks, true);
  add_roots(b, roots, cotangents);
  roots.clear(), cotangents.clear();
  return b.run();
}

}  // namespace lamella
