// Forms, views and writes under a level.
#include "lamella/transforms/interpreter.h"

#include <algorithm>

#include "lamella/ops/functions.h"
#include "lamella/ops/infer.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/tape.h"

namespace lamella {

void Interpreter::call(Frame& frame, int key) {
  LAMELLA_ASSERT(key == key_);
  if (frame.op->form == OpForm::Functional) [[likely]] {
    const Below below(key);
    return functional(frame);
  }
  written(frame);
}

/// name_ and name_out: the functional call at this level, then the write.
void Interpreter::written(Frame& frame) {
  const Tensor target = frame.tensor(0);
  const std::string& arg = frame.op->schema.params[0].name;
  Tensor result;
  Frame base{frame.op->base, frame.args + (frame.op->form == OpForm::Out ? 1 : 0), &result};
  lamella::call(base);
  ops::check_target(*base.op, arg, target, {result.sizes(), result.dtype()});
  if (result.dtype() != target.dtype()) result = to(result, target.dtype());
  if (!wraps(target) && wraps(result)) promote(base, arg, target);
  if (wraps(target)) return assign(base, target, result);
  const Below below(key_);
  copy_(target, result);
}

/// NOTE: [promotion of fresh storage] A tensor made inside the level without its values (zeros) may be
/// written with values of the level as long as no view of it exists: its header becomes a wrapper, so every
/// handle sees the value (decision 0005).
void Interpreter::promote(const Frame& frame, std::string_view arg, const Tensor& target) {
  TensorImpl* impl = target.impl();
  LAMELLA_CHECK(impl->storage && impl->storage->birth >= serial_ && !impl->extra, Level,
                "{}: {} is {}, made outside {}; expected a tensor that can hold a value of it: return the "
                "value instead",
                frame.op->name, arg, target, live_key_name(key_));
  LAMELLA_CHECK(
      impl->storage->unique(), Level,
      "{}: {} is {}, made inside {} without its values, and has views; expected a value of it, such as x * 0",
      frame.op->name, arg, target, live_key_name(key_));
  const bool embedded = impl->storage->embedded;
  Wrapper* const extra = shell(
      embedded ? clone(target) : make_view_unchecked(target, target.sizes(), target.strides(), impl->offset));
  if (!embedded) (void)impl->storage->release();  // the view holds it; from here on nothing fails
  impl->storage = nullptr;
  impl->extra = extra;
  impl->keys |= KeySet::of(key_).bits;
}

ReplacingWrapper* replayed(const Tensor& t, ReplacingWrapper* w, int key, Take take) {
  auto* base = static_cast<ReplacingWrapper*>(w->view->base.impl()->extra);
  if (base->generation == w->view->generation) return w;
  const Below at_level(key);
  const Reaching reaching(key);
  Tensor now = w->view->base;
  for (const ViewStep& step : w->view->steps) {
    Values args = step.args;
    args[0] = now;
    now = call_boxed(*step.op, args)[0];
  }
  take(t, now);
  w->view->generation = base->generation;
  return w;
}

void note_view(const Frame& frame, const Tensor& result, int key, uint64_t serial) {
  auto* w = wrapper_at<ReplacingWrapper>(result, key, serial);
  const Tensor& input = frame.tensor(frame.op->tensor_params[0]);
  auto* in = wrapper_at<ReplacingWrapper>(input, key, serial);
  if (!w || !in) return;
  auto view = std::make_unique<ViewOf>();
  if (in->view) *view = *in->view;
  else view->base = input;
  Values args = own(frame);
  args[0] = Tensor();
  view->steps.push_back({frame.op, std::move(args)});
  view->generation = static_cast<ReplacingWrapper*>(view->base.impl()->extra)->generation;
  w->view = std::move(view);
}

namespace {
/// Every view operator is linear and copies elements: its transpose puts `value` at the elements of the base
/// it shows, and the transpose of ones marks them. No operator is named.
Tensor write_through(const ViewOf& view, const Tensor& value) {
  std::vector<Tensor> inputs{view.base};
  for (const ViewStep& step : view.steps) {
    Values args = step.args;
    args[0] = inputs.back();
    inputs.push_back(call_boxed(*step.op, args)[0]);
  }
  Tensor placed = value, mark = ones_like(value);
  for (size_t k = view.steps.size(); k-- > 0;) {
    Values args = view.steps[k].args;
    args[0] = inputs[k];
    placed = transpose_of(*view.steps[k].op, args, placed);
    mark = transpose_of(*view.steps[k].op, args, mark);
  }
  return where(ne(mark, 0), placed, view.base);
}
}  // namespace

void replace_value(const Frame& frame, const Tensor& target, const Tensor& value, int key, uint64_t serial,
                   Take take) {
  ReplacingWrapper* w = current_wrapper(frame, target, key, serial, take);
  const Tensor& root = w->view ? w->view->base : target;
  auto* base = static_cast<ReplacingWrapper*>(root.impl()->extra);
  LAMELLA_CHECK(!base->argument, Level,
                "{}: {} is {}, an argument of {} whose memory belongs to the caller; expected a clone of it",
                frame.op->name, frame.op->schema.params[0].name, target, live_key_name(key));
  if (w->view) take(root, write_through(*w->view, value));
  take(target, value);
  ++base->generation;
  if (w->view) w->view->generation = base->generation;
}

}  // namespace lamella
