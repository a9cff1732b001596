// Forms, views and writes under a level.
#include "lamella/transforms/machine/interpreter.h"

#include <algorithm>
#include <optional>

#include "lamella/core/family.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/compare.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_other.h"
#include "lamella/ops/infer.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/machine/overlap.h"
#include "lamella/transforms/machine/tape.h"

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
  if (!frame.tensor(0).defined()) [[unlikely]]
    check_defined(frame);
  const Tensor target = frame.tensor(0);
  const std::string& arg = frame.op->schema.params[0].name;
  Tensor result;
  Frame base{frame.op->base, frame.args + (frame.op->form == OpForm::Out ? 1 : 0), &result};
  {
    std::optional<KeepingCopies> keeping;  // vmap writes memory that base autograd may save below
    if (const Content content = content_of(target); content.memory()) {
      const bool derived = content.holder->keys() & kAutogradBit || has_late_history(content.holder->impl());
      if (derived && !(dispatch_state().exclude & kAutogradBit))
        check_followed(*base.op, arg, *content.holder, target);
      keeping.emplace(content.memory());
    }
    lamella::call(base);
  }
  ops::check_target(*base.op, arg, target, {result.sizes(), result.dtype()});
  check_overlap(base, arg, target);
  if (result.dtype() != target.dtype()) result = to(result, target.dtype());
  if (!wraps(target) && wraps(result)) promote(base, arg, target);
  if (wraps(target)) return assign(base, target, result);
  const Below below(key_);
  copy_(target, result);
}

Content content_of(const Tensor& t) {
  const Tensor* now = &t;
  bool held = false;  // by two wrappers: operators may return what they were given
  while (!now->impl()->storage && now->keys() >> kFirstLevelKey) {
    const auto* const w = static_cast<const Wrapper*>(now->impl()->wrap);
    if (const auto* const r = dynamic_cast<const ReplacingWrapper*>(w)) {
      const ReplacingWrapper& base = r->view ? ReplacingWrapper::of_base(*r->view) : *r;
      return {now, base.argument ? 0 : base.birth, held || base.views.load(std::memory_order_relaxed) > 0};
    }
    held |= !w->value.impl()->unique();
    now = &w->value;
  }
  const Storage* const memory = now->impl()->storage;
  if (!memory) return {now, 0, held};
  const Family* const family = now->impl()->family();
  // A small tensor's memory lies in its header: who promotes that cannot leave it to anybody else.
  const bool lost = now == &t && memory->embedded && !memory->unique();
  return {now, memory->birth, held || lost || (family && !family->unique())};
}

/// NOTE: [promotion of fresh storage] A tensor made inside the level without its values (zeros, or what other
/// levels alone wrap) may be written with values of the level: its header becomes a wrapper around a header
/// of its own for what it was, so every handle sees the value (decision 0005). Views of plain memory become
/// wrappers with it (promotion.cpp); where others exist, it is refused.
void Interpreter::promote(const Frame& frame, std::string_view arg, const Tensor& target) {
  TensorImpl* impl = target.impl();
  const Content content = content_of(target);
  LAMELLA_CHECK(born_inside(content.birth, key_, serial_), Level,
                "{}: {} is {}, made outside {}; expected a tensor that can hold a value of it: return the "
                "value instead",
                frame.op->name, arg, target, live_key_name(key_));
  const bool shared = content.shared;
  if (shared)
    if (const Tensors family = plain_family(target); !family.empty()) return promote_family(family);
  LAMELLA_CHECK(
      !shared, Level,
      "{}: {} is {}, made inside {} without its values, and has views; expected a value of it, such as x * 0",
      frame.op->name, arg, target, live_key_name(key_));
  const bool embedded = impl->storage && impl->storage->embedded;
  const Tensor plain = embedded ? clone(target) : lamella::fixed(target);
  LAMELLA_ASSERT(!plain.is_same(target));
  if (embedded) plain.impl()->storage->version.store(impl->storage->version.load());  // a tape compares it
  become(impl, shell(plain));  // what follows shell() does not fail
}

const Tensor* before_promotion(const Tensor& t, int key, int last) {
  const Tensor* now = &t;
  while (last_level(*now->impl()) != last) {
    const auto* w = static_cast<const Wrapper*>(now->impl()->wrap);
    const auto* promoted = dynamic_cast<const Promoted*>(w);
    if (!promoted || w->key < key) return nullptr;
    now = &promoted->before;
  }
  return now;
}

uint32_t writes_through(const TensorImpl* impl) {
  uint32_t seen = 0;
  while (!impl->storage && impl->keys >> kFirstLevelKey) {
    const auto* w = static_cast<const Wrapper*>(impl->wrap);
    seen = 7 * seen + uint32_t(w->writes()) * 1000003;  // a new value's memory starts at version 0
    impl = w->value.impl();
  }
  return impl->storage ? seen + writes_seen(*impl) : seen;
}

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
