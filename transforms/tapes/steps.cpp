// Watched formulas, and saved values with their histories.
#include "lamella/transforms/tapes/steps.h"

#include "lamella/ops/functions/pointwise_binary.h"

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
