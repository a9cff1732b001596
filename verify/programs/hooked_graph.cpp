// Hooks of all kinds on the values of a graph: adding them, and comparing what they were given.
#include "lamella/verify/programs/hooked_graph.h"

#include <algorithm>
#include <utility>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/custom.h"

namespace lamella::verify {

namespace {

HooksOfValue draw_hooks(Draw& d, bool leaf, size_t of) {
  static constexpr double kFactors[] = {1, 2, -1, 0.5};
  const uint32_t w = d.word();
  HooksOfValue out;
  for (uint32_t k = 0; k < w % 4; ++k) out.factors.push_back(kFactors[w >> (4 + 2 * k) & 3]);
  out.removed = w >> 12 & 1;
  if (leaf) return out;
  out.retains = w >> 13 & 1;
  if (of == 1 && (w >> 14 & 3) == 3) {
    out.before = kFactors[w >> 16 & 1], out.after = kFactors[w >> 17 & 3];
    out.at_node = 1 + int(w >> 19 & 1);
  }
  return out;
}

struct BrokenHook {};

}  // namespace

HookedGraph::HookedGraph(Case& c, const Graph& graph) : graph_(graph) {
  Tensors known = graph.inputs();
  for (size_t k = 0; k < known.size(); ++k) asked_.push_back(draw_hooks(c.draw, true, 1));
  graph.watched(known, [&](size_t, size_t of, const Tensor& y) {
    // real(x) of a real x is x: it has the hooks of x
    const bool again = std::ranges::any_of(known, [&](const Tensor& v) { return v.is_same(y); });
    asked_.push_back(again ? HooksOfValue() : draw_hooks(c.draw, false, of));
    known.push_back(y), likes_.push_back(y);
    return y;
  });
  create_graph_ = c.draw.one_in(4);
  while (target_ < graph.inputs().size() && !(asked_[target_].factors.empty() && !asked_[target_].removed))
    ++target_;
  inside_ = c.draw.below(uint32_t(2 * asked_.size()));
  broken_ = c.draw.below(uint32_t(asked_.size()));
  broken_kind_ = c.draw.below(4);
}

Tensors HookedGraph::wanted() const {
  const size_t n = graph_.inputs().size();
  Tensors all = graph_.inputs();
  for (size_t k = 0; k < asked_.size(); ++k) all.push_back(zeros(value(k).sizes(), value(k).dtype()));
  const Function f = [&](const Tensors& in) {
    Tensors xs(in.begin(), in.begin() + long(n));
    for (size_t k = 0; k < n; ++k) xs[k] = hooked(xs[k], in[n + k], k);
    return graph_.watched(xs,
                          [&](size_t k, size_t, const Tensor& y) { return hooked(y, in[2 * n + k], n + k); });
  };
  return vjp(f, all).pullback(graph_.cotangents());
}

void HookedGraph::build() {
  leaves_ = graph_.leaves();
  const size_t n = leaves_.size();
  values_ = leaves_;
  for (size_t k = 0; k < n; ++k) {
    add(k, leaves_[k]);
    add_accumulated_hook(leaves_[k], [this, k](const Tensor& g) { note("accumulated", k, g); });
  }
  const Tensors roots = graph_.watched(leaves_, [&](size_t k, size_t, const Tensor& y) {
    const bool known = std::ranges::any_of(values_, [&](const Tensor& v) { return v.is_same(y); });
    values_.push_back(known || !is_grad_required(y) ? Tensor() : y);
    if (values_.back().defined()) add(n + k, y);
    return y;
  });
  live_.emplace(roots, graph_.given());
}

Tensor HookedGraph::hooked(const Tensor& x, const Tensor& probe, size_t k) const {
  const Function f = custom_vjp([](const Tensors& xs) { return std::pair(Tensors{xs[0]}, Tensors()); },
                                [by = asked_[k].total()](const Tensors&, const Tensors& cts) {
                                  return Tensors{to(cts[0] * by, cts[0].dtype()), cts[0]};
                                });
  return f({x, probe})[0];
}

void HookedGraph::add(size_t k, const Tensor& x) {
  const HooksOfValue& a = asked_[k];
  if (a.retains) retain_grad(x);
  for (size_t i = 0; i < a.factors.size(); ++i)
    handles_.push_back(add_hook(x, [this, k, i, factor = a.factors[i]](const Tensor& ct) {
      note(format("hook {}", i), k, ct);
      if (k == inside_ && i == 0) inside();
      return factor == 1 ? Tensor() : to(ct * factor, ct.dtype());
    }));
  if (a.removed)
    add_hook(x, [this](const Tensor& ct) {
      found_ = "a hook that was removed is called";
      return ct * 3;
    }).remove();
  for (int r = 0; r < a.at_node && a.before; ++r) add_to_node(k, x);
}

void HookedGraph::add_to_node(size_t k, const Tensor& x) {
  const auto times = [](Tensors ts, double factor) {
    if (factor == 1) return Tensors();
    for (Tensor& t : ts)
      if (t.defined()) t = to(t * factor, t.dtype());
    return ts;
  };
  const HooksOfValue& a = asked_[k];
  handles_.push_back(
      add_node_hook(x, {[this, k, times, by = a.before](const Tensors& cts) {
                          note("before", k, cts[0]);
                          return times(cts, by);
                        },
                        [this, k, times, by = a.after](const Tensors& to_inputs, const Tensors& cts) {
                          note("after", k, cts[0]);
                          return times(to_inputs, by);
                        }}));
}

/// What hooks may do: compute, which is not recorded unless somebody says so, and call backward.
void HookedGraph::inside() {
  if (is_grad_required(leaves_[0] * 2) != create_graph_)
    found_ = "in a hook, recording is not as create_graph says";
  const EnableGrad on;
  if (!is_grad_required(leaves_[0] * 2)) found_ = "in a hook, EnableGrad does not record";
  const Tensor& x = target_ < leaves_.size() ? leaves_[target_] : elsewhere_;
  backward(x, ones_like(x));
  ++nested_, ++nested_in_all_;
}

/// The hooks of one value ran each once, in order, and saw what they should; or none did, and there was
/// nothing.
Finding HookedGraph::wrong_events(size_t k, const Tensor& cotangent) const {
  const HooksOfValue& a = asked_[k];
  std::vector<std::pair<std::string, double>> expected;
  double factor = 1;
  for (size_t i = 0; i < a.factors.size(); factor *= a.factors[i++])
    expected.emplace_back(format("hook {}", i), factor);
  for (int r = 0; r < a.at_node && a.before; ++r, factor *= a.before) expected.emplace_back("before", factor);
  for (int r = 0; r < a.at_node && a.before; ++r) expected.emplace_back("after", factor);
  size_t n = 0;
  for (const Event& e : log_) {
    if (e.value != k || e.what == "accumulated") continue;
    if (n == expected.size()) return format("{} of value {} runs again", e.what, k);
    if (e.what != expected[n].first)
      return format("{} of value {} runs before {}", e.what, k, expected[n].first);
    if (Finding d = unlike_gradients({e.seen}, {cotangent}, expected[n].second); !d.empty())
      return format("{} of value {} sees: ", e.what, k) + d;
    ++n;
  }
  if (n == expected.size()) return "";
  if (n > 0) return format("{} of value {} does not run", expected[n].first, k);
  Finding d = unlike_gradients({zeros(cotangent.sizes(), cotangent.dtype())}, {cotangent});
  return d.empty() ? "" : format("hooks of value {} do not run, and its cotangent is not 0: ", k) + d;
}

Finding HookedGraph::wrong(const Tensors& want) {
  if (!found_.empty()) return found_;
  const size_t n = leaves_.size();
  for (size_t k = 0; k < values_.size(); ++k) {
    if (!values_[k].defined()) continue;
    const Tensor& ct = want[n + k];
    if (Finding d = wrong_events(k, ct); !d.empty()) return d;
    if (!asked_[k].retains) continue;
    const Tensor g = grad_of(values_[k]);
    if (Finding d = unlike_gradients({g}, {ct}, runs_ * asked_[k].by_tensors()); !d.empty())
      return format("retained at value {}: ", k) + d;
  }
  for (size_t j = 0; j < n; ++j)
    if (Finding d = wrong_leaf(j, want[j]); !d.empty()) return format("leaf {}: ", j) + d;
  if (target_ == n &&
      !unlike_gradients({grad_of(elsewhere_)}, {ones({2}, DType::F64)}, nested_in_all_).empty())
    return "a backward inside a hook adds up another gradient";
  return "";
}

/// Its gradient, and what hooks of accumulation were shown.
Finding HookedGraph::wrong_leaf(size_t j, const Tensor& want) const {
  Tensor sum = want * double(runs_);
  if (j == target_) sum = sum + double(nested_in_all_);
  sum = to(sum, want.dtype());
  const Tensor g = grad_of(leaves_[j]);
  if (Finding d = unlike_gradients({g}, {sum}); !d.empty()) return format("after {} runs ", runs_) + d;
  Tensors shown;
  for (const Event& e : log_)
    if (e.what == "accumulated" && e.value == j) shown.push_back(e.seen);
  if (shown.empty()) return g.defined() && runs_ == 1 ? "its new gradient is not shown" : "";
  if (shown.size() > 1u + (j == target_ ? size_t(nested_) : 0)) return "its new gradient is shown twice";
  const Finding d = unlike_gradients({shown.back()}, {sum});
  return d.empty() ? "" : "of its new gradient is shown another sum, " + d;
}

Finding HookedGraph::wrong_targets(const Tensors& want) {
  if (live_->ys.empty()) return "";
  const size_t inside = std::exchange(inside_, asked_.size());
  const Tensors got =
      autograd::grad(live_->ys, leaves_, live_->us, {.create_graph = create_graph_, .allow_unused = true});
  Finding wrong;
  for (size_t j = 0; j < got.size() && wrong.empty(); ++j)
    if (Finding d = unlike_gradients({got[j]}, {want[j]}); !d.empty())
      wrong = format("leaf {} as an input of grad: ", j) + d;
  if (wrong.empty()) wrong = wrong_on_the_way(want);
  inside_ = inside, log_.clear();
  return wrong;
}

/// As an input of grad a value gets what its own hooks left; those of its node belong to what comes behind,
/// and those of leaves that are not asked for do not run.
Finding HookedGraph::wrong_on_the_way(const Tensors& want) {
  for (size_t k = 0; k < values_.size(); ++k) {
    if (!values_[k].defined()) continue;
    log_.clear();
    const Tensors got = autograd::grad(live_->ys, {values_[k]}, live_->us, {.allow_unused = true});
    if (Finding d = unlike_gradients(got, {want[leaves_.size() + k]}, asked_[k].by_tensors()); !d.empty())
      return format("value {} as an input of grad: ", k) + d;
    for (const Event& e : log_)
      if (e.value != k && e.value < leaves_.size())
        return format("with value {} as the input of grad a hook of leaf {} runs", k, e.value);
  }
  return "";
}

HookHandle HookedGraph::break_one() {
  const Tensor& x = values_[broken_].defined() ? values_[broken_] : leaves_[0];
  const auto raise = []() -> Tensors { throw BrokenHook(); };
  if (broken_kind_ >= 2 && !is_leaf(x)) {
    NodeHook hook;
    if (broken_kind_ == 2) hook.before = [raise](const Tensors&) { return raise(); };
    else hook.after = [raise](const Tensors&, const Tensors&) { return raise(); };
    return add_node_hook(x, std::move(hook));
  }
  return add_hook(x, [raise](const Tensor&) { return raise()[0]; });
}

Finding HookedGraph::broken(const Tensors& want) {
  Tensors before;
  const auto gradient = [&](size_t k) {
    const bool has = values_[k].defined() && (is_leaf(values_[k]) || asked_[k].retains);
    return has ? grad_of(values_[k]) : Tensor();
  };
  for (size_t k = 0; k < values_.size(); ++k) before.push_back(gradient(k));
  HookHandle hook = break_one();
  bool raised = false;
  const size_t inside = std::exchange(inside_, asked_.size());
  try {
    run();
  } catch (const BrokenHook&) { raised = true; }
  hook.remove(), inside_ = inside;
  for (size_t k = 0; k < values_.size() && raised; ++k) {
    const Tensor now = gradient(k);
    if (now.defined() != before[k].defined() || (now.defined() && !now.is_same(before[k])))
      return format("a hook threw, and the gradient of value {} has changed", k);
  }
  run();
  return wrong(want);
}

std::string HookedGraph::cpp() const {
  static constexpr const char* kBroken[] = {"add_hook", "add_hook", "add_node_hook before",
                                            "add_node_hook after"};
  std::string out = "  // hooks, by value (the inputs, then the results of the chain):\n";
  for (size_t k = 0; k < asked_.size(); ++k) {
    const HooksOfValue& a = asked_[k];
    out += format("  //   {}:", k);
    for (const double f : a.factors) out += format(" hook times {},", f);
    for (int r = 0; r < a.at_node && a.before; ++r)
      out += format(" before times {}, after times {},", a.before, a.after);
    if (a.removed) out += " a removed one,";
    if (a.retains) out += " retain_grad,";
    if (k == inside_ && !a.factors.empty()) out += " the first calls backward on a leaf,";
    out.back() = '\n';
  }
  return out + format("  // one that throws: {} at value {}\n", kBroken[broken_kind_], broken_) +
         "  backward(roots, us" + (create_graph_ ? ", {.create_graph = true}" : "") + ");\n" +
         "  for (size_t k = 0; k < leaves.size(); ++k)\n    std::cout << \"got      \" << "
         "str(grad_of(leaves[k])) << \"\\nexpected without hooks \" << str(want[k]) << '\\n';\n";
}

}  // namespace lamella::verify
