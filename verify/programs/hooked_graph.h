// A graph whose values have hooks, drawn, and what they must be given.
#pragma once

#include <optional>

#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/programs/graph.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Hooks of one value: the inputs of the graph, then the results of its chain.
struct HooksOfValue {
  std::vector<double> factors;   ///< of its tensor hooks; 1: the hook looks, and returns nothing
  double before = 0, after = 0;  ///< of each of its node hooks; 0: it has none
  int at_node = 1;               ///< how many these are
  bool retains = false, removed = false;
  /// What the value's cotangent is multiplied with before its node's rule has it, and in all.
  double by_tensors() const {
    double out = 1;
    for (const double f : factors) out *= f;
    return out;
  }
  double total() const {
    double out = by_tensors();
    for (int k = 0; k < at_node && before; ++k) out *= before * after;
    return out;
  }
};

/// A graph with hooks, and what they were given.
class HookedGraph {
 public:
  HookedGraph(Case& c, const Graph& graph);
  /// Complete cotangents of all values, and the gradients of the inputs: by levels, where a hook is a
  /// rule.
  Tensors wanted() const;
  /// Runs the graph in base autograd with all hooks in place.
  void build();
  void run() {
    log_.clear(), nested_ = 0;
    if (!live_->ys.empty()) backward(live_->ys, live_->us, {create_graph_});
    ++runs_;
  }
  /// After run(): empty when all is as `want` says.
  Finding wrong(const Tensors& want);
  /// autograd::grad gives a leaf, or a value on the way, what its own hooks leave, and adds nothing up.
  Finding wrong_targets(const Tensors& want);
  /// One hook throws: nothing has changed, and once it is gone all goes on.
  Finding broken(const Tensors& want);
  void end() {
    for (const Tensor& v : values_)
      if (v.defined() && (is_leaf(v) || asked_[size_t(&v - values_.data())].retains)) clear_grad(v);
    for (HookHandle& h : handles_) h.remove();
  }
  std::string cpp() const;

 private:
  struct Event {
    std::string what;
    size_t value;
    Tensor seen;
  };
  const Tensor& value(size_t k) const {
    const size_t n = graph_.inputs().size();
    return k < n ? graph_.inputs()[k] : likes_[k - n];
  }
  /// x itself, whose cotangent goes to `probe` as it comes, and to x as hooks leave it.
  Tensor hooked(const Tensor& x, const Tensor& probe, size_t k) const;
  void note(std::string what, size_t k, const Tensor& seen) { log_.push_back({std::move(what), k, seen}); }
  void add(size_t k, const Tensor& x);
  void add_to_node(size_t k, const Tensor& x);
  void inside();
  Finding wrong_events(size_t k, const Tensor& cotangent) const;
  Finding wrong_leaf(size_t j, const Tensor& want) const;
  Finding wrong_on_the_way(const Tensors& want);
  HookHandle break_one();

  const Graph& graph_;
  std::vector<HooksOfValue> asked_;
  Tensors likes_, leaves_, values_;
  std::vector<HookHandle> handles_;
  std::vector<Event> log_;
  std::optional<LiveRoots> live_;
  bool create_graph_ = false;
  size_t inside_ = 0, broken_ = 0;  ///< values whose first hook calls backward; whose hook throws
  size_t target_ = 0;  ///< where that backward goes: a leaf without hooks of tensors, or elsewhere
  Tensor elsewhere_ = requires_grad(zeros({2}, DType::F64));
  uint32_t broken_kind_ = 0;
  int runs_ = 0, nested_ = 0, nested_in_all_ = 0;
  std::string found_;
};

}  // namespace lamella::verify
LAMELLA_API_END
