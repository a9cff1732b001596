// Views and writes under a level.
#include "lamella/transforms/writes/views.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/machine/tape.h"

namespace lamella {

ViewStep::ViewStep(Ref<ViewStep> before, const Frame& frame)
    : from(std::move(before)), op(frame.op), args(own(frame)) {
  args[0] = Tensor();
  destroy_queued = [](RefCounted* s) { destroy(static_cast<ViewStep*>(s)); };
}

/// In a loop: the steps of a long chain may all end with its last view.
void ViewStep::destroy(ViewStep* step) {
  while (step) {
    ViewStep* const from = step->from.detach();
    delete step;
    step = from && from->release() ? from : nullptr;
  }
}

ViewOf::ViewOf(Tensor b) : base(std::move(b)) {
  ReplacingWrapper::of_base(*this).views.fetch_add(1, std::memory_order_relaxed);
}
ViewOf::~ViewOf() { ReplacingWrapper::of_base(*this).views.fetch_sub(1, std::memory_order_relaxed); }

namespace {
/// The steps that lead from the base to the view, in order.
std::vector<const ViewStep*> steps_of(const ViewOf& view) {
  std::vector<const ViewStep*> steps;
  for (const ViewStep* s = view.last.get(); s; s = s->from.get()) steps.push_back(s);
  std::reverse(steps.begin(), steps.end());
  return steps;
}
Values args_for(const ViewStep& step, const Tensor& x) {
  Values args = step.args;
  args[0] = x;
  return args;
}
Tensor apply(const ViewStep& step, const Tensor& x) { return call_boxed(*step.op, args_for(step, x))[0]; }
}  // namespace

ReplacingWrapper* replayed(const Tensor& t, ReplacingWrapper* w, int key, Take take) {
  const uint64_t generation = ReplacingWrapper::of_base(*w->view).generation;
  if (generation == w->view->generation) return w;
  const Below at_level(key);
  const Reaching reaching(key);
  Tensor now = w->view->base;
  for (const ViewStep* step : steps_of(*w->view)) now = apply(*step, now);
  take(t, now);
  w->view->generation = generation;
  return w;
}

void note_view(const Frame& frame, const Tensor& result, int key, uint64_t serial) {
  auto* w = wrapper_at<ReplacingWrapper>(result, key, serial);
  const Tensor& input = frame.tensor(frame.op->tensor_params[0]);
  auto* in = wrapper_at<ReplacingWrapper>(input, key, serial);
  LAMELLA_ASSERT(w && in);
  auto view = std::make_unique<ViewOf>(in->view ? in->view->base : input);
  view->last = Ref<ViewStep>::adopt(new ViewStep(in->view ? in->view->last : Ref<ViewStep>(), frame));
  view->generation = ReplacingWrapper::of_base(*view).generation;
  w->view = std::move(view);
  if (lies_as_seen(input, in->value)) return;
  const Geometry seen = frame.op->view(frame, {input.sizes(), input.strides(), input.impl()->offset});
  result.impl()->set_shape(seen.sizes, seen.strides);
  result.impl()->offset = seen.offset;
}

bool lies_as_seen(const Tensor& wrapper, const Tensor& value) {
  return wrapper.impl()->offset == value.impl()->offset &&
         std::ranges::equal(wrapper.strides(), value.strides());
}

namespace {
/// J^T dy with respect to parameter 0 of a view operator.
Tensor transpose_of(const Op& op, const Values& args, const Tensor& dy) {
  const BoxedArgs boxed(op, args);
  Tensor unused[kMaxResults];
  const Frame f{&op, boxed.data(), unused};
  const BoundFormula* formula = op.vjp_of(op.tensor_params[0]);
  LAMELLA_ASSERT(formula && formula->one);
  const FrameSaves saved(f, *formula);
  return formula->one({{&dy, 1}, saved.data()});
}

/// Of complex elements, the parts that are marked: views of parts are written one by one.
Tensor merged_parts(const Tensor& mark, const Tensor& placed, const Tensor& base) {
  return complex(where(ne(real(mark), 0), real(placed), real(base)),
                 where(ne(imag(mark), 0), imag(placed), imag(base)));
}

/// Every view operator is linear and copies elements: its transpose puts `value` at the elements of the base
/// it shows, and the transpose of ones marks them. No operator is named. A view without a derivative shows
/// all elements, as a constant: through it values alone are written.
Tensor write_through(const ViewOf& view, const Tensor& value) {
  const std::vector<const ViewStep*> steps = steps_of(view);
  std::vector<Tensor> inputs{view.base};
  for (const ViewStep* step : steps) inputs.push_back(apply(*step, inputs.back()));
  Tensor placed = value, mark = ones_like(value);
  bool constant = false;
  for (size_t k = steps.size(); k-- > 0;) {
    constant |= steps[k]->op->vjp.empty();
    if (steps[k]->op->vjp.empty()) continue;
    const Values args = args_for(*steps[k], inputs[k]);
    placed = transpose_of(*steps[k]->op, args, placed);
    mark = transpose_of(*steps[k]->op, args, mark);
  }
  const bool parts = is_complex(mark.dtype()) && !is_complex(value.dtype());
  const Tensor whole = parts ? merged_parts(mark, placed, view.base) : where(ne(mark, 0), placed, view.base);
  return constant ? with_values(view.base, whole) : whole;
}
}  // namespace

void replace_value(const Frame& frame, const Tensor& target, const Tensor& value, int key, uint64_t serial,
                   Take take) {
  ReplacingWrapper* w = current_wrapper(frame, target, key, serial, take);
  const Tensor& root = w->view ? w->view->base : target;
  auto* base = static_cast<ReplacingWrapper*>(root.impl()->wrap);
  LAMELLA_CHECK(!base->argument, Level,
                "{}: {} is {}, an argument of {} whose memory belongs to the caller; expected a clone of it",
                frame.op->name, frame.op->schema.params[0].name, target, live_key_name(key));
  if (w->view) take(root, write_through(*w->view, value));
  take(target, value);
  ++base->generation;
  if (w->view) w->view->generation = base->generation;
}

}  // namespace lamella
