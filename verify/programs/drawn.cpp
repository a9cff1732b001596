// Drawing functions of a case, and what they must leave as it was.
#include "lamella/verify/programs/drawn.h"

#include "lamella/core/allocation.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/stack.h"

namespace lamella::verify {

namespace {

/// Base autograd: the gradients of all results' sums.
Tensors by_backward(const Function& f, const Tensors& xs) {
  Tensors leaves, grads;
  for (const Tensor& x : xs) leaves.push_back(requires_grad(x));
  for (const Tensor& y : f(leaves))
    if (is_grad_required(y)) backward(y, ones(y.sizes(), y.dtype()));
  for (const Tensor& leaf : leaves)
    if (const Tensor g = grad_of(leaf); g.defined()) grads.push_back(g);
  return grads;
}

/// name_ or name_out on a copy of what they write to.
std::optional<DrawnFunction> draw_form(Case& c) {
  const bool in_place = c.draw.flag();
  const Op* form = form_of(c.op, in_place ? OpForm::InPlace : OpForm::Out);
  if (!form) return std::nullopt;
  Tensor like;
  if (!in_place && status_of([&] { like = call_boxed(c.op, c.args)[0]; }).raised) return std::nullopt;
  const Values args = c.args;
  DrawnFunction out;
  out.f = [form, in_place, like, args](const Tensors&) {
    Values full = args;
    if (in_place) full[0] = plain_copy(std::get<Tensor>(args[0]));
    else full.insert(full.begin(), plain_copy(like));
    return call_boxed(*form, full);
  };
  out.program = cpp_declarations(c.args) + "  // as " + form->name + ":\n  " + cpp_call(c.op, c.args) + ";\n";
  return out;
}

}  // namespace

std::optional<DrawnFunction> draw_function(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty()) {  // a factory: the plain call
    if (c.op.has(kRandom) || c.op.has(kUnspecified)) return std::nullopt;
    return DrawnFunction{c.function({}), {}, "  " + cpp_call(c.op, c.args) + ";\n", 0};
  }
  const uint32_t kind = c.draw.below(8);
  if (kind == 6)
    if (auto form = draw_form(c)) return form;
  const bool smooth = !c.inexact().empty() && has_jvp(c.op) && has_vjp(c.op);
  if (smooth && kind == 7) {
    const Tensors xs = c.values(c.inexact());
    return DrawnFunction{
        [f = c.smooth_function(c.inexact())](const Tensors& in) { return by_backward(f, in); }, xs,
        cpp_setting(c, c.inexact(), xs) + "  // backward of f0(xs)\n", 1};
  }
  if (smooth && kind >= 2) {
    const Stack s(
        c, {.min_depth = 1, .max_depth = c.draw.options().depth, .captures = c.draw.flag(), .max_cost = 1e9});
    if (s.valid()) return DrawnFunction{s.function(), s.inputs(), s.cpp(), s.depth()};
  }
  if (kind == 0)
    return DrawnFunction{c.function(slots), c.values(slots),
                         cpp_setting(c, slots, c.values(slots)) + "  f0(xs);\n", 0};
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 1 + c.draw.below(3));
  const std::string program = cpp_setting(c, slots, b.xs) + "  vmap(f0, " + cpp_dims(b.in_dims) + ")(xs);\n";
  return DrawnFunction{vmap(c.function(slots), {b.in_dims, {0}, Randomness::Error, b.size}), b.xs, program,
                       1};
}

void release(Tensors& results) {
  const MemoryTrial trial({});
  Tensors().swap(results);
}

Snapshot::Snapshot() : state_(dispatch_state()), birth_(detail::birth_serial), alive_(Alive::now()) {}

Finding Snapshot::changed() const {
  const int64_t objects = heap_objects();
  Finding beside = changed_beside_heap();
  if (!beside.empty() || objects <= alive_.objects) return beside;
  return {What::Leak, format("{} objects of operator new are alive, {} before", objects, alive_.objects)};
}

Finding Snapshot::changed_beside_heap() const {
  const DispatchState& now = dispatch_state();
  if (now.depth != state_.depth)
    return {What::State, format("{} levels are live, {} before", now.depth, state_.depth)};
  if (now.exclude != state_.exclude) return {What::State, "masked keys differ"};
  if (now.modes != state_.modes || now.ambient != state_.ambient)
    return {What::State, "modes or ambient keys differ"};
  if (now.table != state_.table) return {What::State, "another table is pinned"};
  if (now.observer != state_.observer) return {What::State, "another observer is installed"};
  if (now.settings() != state_) return {What::State, format("{} is set", now.differs(state_))};
  for (int k = 0; k < kMaxLevels; ++k)
    if (now.levels[k].transform != state_.levels[k].transform)
      return {What::State, format("level {} is not what it was", k)};
  if (detail::birth_serial != birth_) return {What::State, "new storage is given another serial"};
  const MemoryStats memory = memory_stats(), &before = alive_.memory;
  if (memory.storages != before.storages)
    return {What::Leak, format("{} storages are alive, {} before", memory.storages, before.storages)};
  if (memory.blocks != before.blocks || memory.bytes != before.bytes)
    return {What::Leak, format("{} blocks ({} bytes with storages) are alive, {} ({}) before", memory.blocks,
                               memory.bytes, before.blocks, before.bytes)};
  if (guarded_blocks() != alive_.guarded)
    return {What::Leak, format("{} blocks of memory are alive, {} before", guarded_blocks(), alive_.guarded)};
  return "";
}

}  // namespace lamella::verify
