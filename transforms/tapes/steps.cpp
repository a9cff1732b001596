// Watched formulas, and saved values with their histories.
#include "lamella/transforms/tapes/steps.h"

#include <algorithm>

#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/view.h"

namespace lamella {

namespace {
/// While formulas of a node run, or its cotangents are added up.
struct Watched {
  Watched(TapeWatch* the_watch, Node& n) : watch(the_watch) { watch->begin(n); }
  ~Watched() { watch->end(); }
  Watched(const Watched&) = delete;
  TapeWatch* watch;
};

void run_watched(TapeWatch& watch, Node& n, const std::vector<Given>& given,
                 const std::function<void()>& run) {
  {
    const Watched scope(&watch, n);
    try {
      run();
    } catch (const Error& e) { watch.failed(n, e); }
  }
  for (uint32_t i = 0; i < n.n_edges; ++i)
    if (given[i].cotangent.defined()) watch.gave(n, n.edges()[i], given[i].cotangent);
}
}  // namespace

void look_at_step(TapeWatch* watch, TapeHooks* hooks, Node& n, TensorSpan cotangents,
                  std::vector<Given>& given, const std::function<void()>& run) {
  watch ? run_watched(*watch, n, given, run) : run();
  if (!hooks) return;
  Tensors to_inputs;
  for (Given& g : given) to_inputs.push_back(std::move(g.cotangent));
  hooks->after(n, to_inputs, cotangents);
  for (uint32_t i = 0; i < n.n_edges; ++i) given[i].cotangent = std::move(to_inputs[i]);
}

void sum_watched(TapeWatch& watch, Node& n, Tensor& sum, const Tensor& ct) {
  const Watched scope(&watch, n);
  sum = lamella::add(sum, ct);
}

namespace {
/// An argument of an operator as texts name it, entry by entry where it is a list.
Argument argument_of(const Op& op, int input, uint32_t element) {
  const Param& p = op.schema.params[size_t(input)];
  return {p.name, p.kind == ParamKind::TensorList ? format("{}[{}]", p.name, element) : ""};
}

void check_type(const Node& n, const Edge& e, const Tensor& ct, Ints sizes, DType dtype) {
  const bool same_sizes = std::ranges::equal(ct.sizes(), sizes);
  if (same_sizes && ct.dtype() == dtype) [[likely]]
    return;
  fail(same_sizes ? ErrorCode::DType : ErrorCode::Shape, "{}: its vjp rule for {} gave {}, expected {}",
       n.op->base->name, argument_of(*n.op, e.input, e.element), ct, type_str(dtype, sizes));
}
}  // namespace

void check_gradient(const Node& n, const Edge& e, const Tensor& ct, const Receivers& to) {
  for (size_t i = 0; i < to.like.size(); ++i)
    if (to.targets[i].node.get() == e.node) check_type(n, e, ct, to.like[i].sizes(), to.like[i].dtype());
  if (!to.hooks) return;
  const Shape& leaf = to.hooks->type_of(*e.node);
  check_type(n, e, ct, leaf.sizes, leaf.dtype);
}

const Tensor& entry_of(const Tensors& all, const Node& n, const Edge& e) {
  LAMELLA_CHECK(e.element < all.size(), Shape,
                "{}: its vjp rule for {} gave {} cotangents, expected {} at least", n.op->base->name,
                argument_of(*n.op, e.input, e.element), all.size(), e.element + 1);
  return all[e.element];
}

Tensors for_results(Tensors all, const Op& op, int input, size_t n) {
  LAMELLA_CHECK(all.size() == n, Shape,
                "{}: its jvp rule for {} gave {} tangents, expected {}, one for each result", op.base->name,
                argument_of(op, input, 0), all.size(), n);
  return all;
}

Tensor expanded_tangent(const Tensor& t, const Tensor& result, const Op& op, int input) {
  bool fits = t.rank() <= result.rank();
  for (int d = 1; fits && d <= t.rank(); ++d) fits = t.size(-d) == 1 || t.size(-d) == result.size(-d);
  LAMELLA_CHECK(fits, Shape, "{}: its jvp rule for {} gave {}, expected {}, or what broadcasts to it",
                op.base->name, argument_of(op, input, 0), t, result);
  return expand(t, result.sizes());
}

const void* with_history(TapeHooks& hooks, Node& n, BoundSave what, const void* value, TensorSpan& list,
                         Tensors& kept) {
  const auto& params = n.op->schema.params;
  const bool result = what.kind == BoundSave::Result;
  if (!result && what.kind != BoundSave::Argument) return value;
  if (!result && params[what.index].kind != ParamKind::Tensor &&
      params[what.index].kind != ParamKind::TensorList)
    return value;
  const bool is_list = result ? n.op->schema.result_kind == ResultKind::TensorList
                              : params[what.index].kind == ParamKind::TensorList;
  if (is_list) kept.assign(list.begin(), list.end());
  else kept.assign(1, *static_cast<const Tensor*>(value));
  for (size_t k = 0; result && k < kept.size(); ++k)
    kept[k] = hooks.with_history(kept[k], n, uint32_t(is_list ? k : what.index));
  for (uint32_t i = 0; !result && i < n.n_edges; ++i) {
    const Edge& e = n.edges()[i];
    if (e.input == what.index) kept[e.element] = hooks.with_history(kept[e.element], *e.node, e.output);
  }
  if (!is_list) return &kept[0];
  return &(list = TensorSpan(kept));
}

}  // namespace lamella
