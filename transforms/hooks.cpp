// Hooks of base autograd: adding them, taking them away; what saved values go through.
#include <algorithm>

#include "lamella/dispatch/given.h"
#include "lamella/transforms/history.h"

namespace lamella {

namespace {

NodeOutput history_for(const Tensor& x, std::string_view what) {
  const NodeOutput from = settled_history(x);
  LAMELLA_CHECK(from.node, NotDifferentiable,
                "{}: x is {}, which does not require grad; expected a tensor that does", what,
                x.defined() ? type_str(x) : "an undefined tensor");
  return from;
}

HookHandle added(Node& node, std::shared_ptr<HookHandle::State> hook) {
  NodeState& state = state_of(node);
  const std::lock_guard lock(state.mutex);
  std::erase_if(state.hooks, [](const auto& h) { return h->removed.load(std::memory_order_relaxed); });
  state.hooks.push_back(hook);
  return HookHandle(std::move(hook));
}

}  // namespace

void HookHandle::remove() {
  if (state_) state_->removed.store(true, std::memory_order_release);
}

HookHandle add_hook(const Tensor& x, TensorHook hook) {
  const NodeOutput from = history_for(x, "add_hook");
  auto state = std::make_shared<HookHandle::State>();
  state->output = from.output;
  state->tensor = given(std::move(hook), "add_hook", "hook");
  return added(*from.node, std::move(state));
}

HookHandle add_accumulated_hook(const Tensor& leaf, AccumulatedHook hook) {
  const Meta* const meta = meta_of(leaf);
  LAMELLA_CHECK(meta && meta->leaf, Usage,
                "add_accumulated_hook: leaf is {}, no leaf; expected one that requires grad",
                leaf.defined() ? type_str(leaf) : "an undefined tensor");
  auto state = std::make_shared<HookHandle::State>();
  state->accumulated = given(std::move(hook), "add_accumulated_hook", "hook");
  return added(*meta->from.node, std::move(state));
}

HookHandle add_node_hook(const Tensor& x, NodeHook hook) {
  const NodeOutput from = history_for(x, "add_node_hook");
  LAMELLA_CHECK(from.node->op, Usage, "add_node_hook: x is {}, a leaf; expected the result of an operator",
                x);
  auto state = std::make_shared<HookHandle::State>();
  state->node = std::move(hook);
  return added(*from.node, std::move(state));
}

void retain_grad(const Tensor& x) {
  const NodeOutput from = history_for(x, "retain_grad");
  Meta* const meta = meta_of(x);
  if (meta && meta->leaf) return;
  NodeState& state = state_of(*from.node);
  const std::lock_guard lock(state.mutex);
  state.retain(from.output);
  if (meta) meta->retains = true;
}

}  // namespace lamella
