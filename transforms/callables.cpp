// Functions as arguments of operators: each level passes on one that enters the level again.
#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/history.h"
#include "lamella/transforms/machine/interpreter.h"

namespace lamella {

namespace {
/// The level of `was` for a call with arguments `xs`, which are values below it. NOTE: [callables]
class Entered {
 public:
  Entered(const Interpreter& was, const Tensors& xs) : was_(was) {
    const int key = was.key();
    const bool below = std::ranges::none_of(xs, [key](const Tensor& x) { return x.keys() >> key; });
    if (below && is_live(key, was.serial())) {
      reaching_.emplace(key);
      return;
    }
    again_ = was.copy();
    if (below && key - kFirstLevelKey >= dispatch_state().depth) level_.emplace(*again_, key, was.serial());
    else level_.emplace(*again_);
  }
  const Interpreter& operator*() const { return again_ ? *again_ : was_; }

 private:
  const Interpreter& was_;
  std::unique_ptr<Interpreter> again_;
  std::optional<Reaching> reaching_;
  std::optional<OpenLevel> level_;
};
}  // namespace

FunctionRef Interpreter::lowered(const FunctionRef& f, const Op& op, const Param& param) const {
  std::shared_ptr<const Interpreter> level = copy();
  const bool rule = param.role == ParamRole::Rule;
  return std::make_shared<const Function>([f, level, rule, &op](const Tensors& xs) {
    const Entered entered(*level, xs);
    const Interpreter& at = *entered;
    Tensors inside;
    {
      const Below below(at.key());
      for (const Tensor& x : xs) inside.push_back(x.defined() ? at.entered(x) : x);
    }
    Tensors ys = (*f)(inside);
    const Below below(at.key());
    for (size_t i = 0; i < ys.size(); ++i) {
      if (!ys[i].defined()) continue;
      Left left = at.left(ys[i]);
      LAMELLA_CHECK(
          rule || !left.depends, Level,
          "{}: its result {} depends on a value of {} that the function captures, for which it has no "
          "rule; expected that value among the arguments",
          op.name, i, live_key_name(at.key()));
      ys[i] = std::move(left.value);
    }
    return ys;
  });
}

namespace {
/// The function for below base autograd: what it captures has histories there, which no rule covers.
FunctionRef below_autograd(const FunctionRef& f, const Op& op) {
  return std::make_shared<const Function>([f, &op](const Tensors& xs) {
    const Reaching reaching(kAutogradKey);
    Tensors ys = (*f)(xs);
    for (size_t i = 0; i < ys.size(); ++i)
      LAMELLA_CHECK(
          !ys[i].defined() || !history_of(ys[i]).node, Value,
          "{}: its result {} depends on a tensor that requires grad, which the function captures, and for "
          "which it has no rule; expected that tensor among the arguments",
          op.name, i);
    return ys;
  });
}

/// A result in a header and memory of its own, which a history can be given to: the function may have
/// returned what others hold.
void make_own(Tensor& t) {
  if (!is_inexact(t.dtype()) || (t.impl()->unique() && t.impl()->storage && t.impl()->storage->unique()))
    return;
  const Below below(kAutogradKey);
  t = clone(t);
}

void autograd_function_cell(Frame& f, int key) {
  FrameCopy plain(f);
  size_t most = 0;
  for_each_tensor(f, [&](const Tensor&, int, int) { ++most; });
  std::vector<NodeOutput> histories;
  std::vector<TapeInput> inputs;
  histories.reserve(most);  // `inputs` points into it
  for_each_tensor(f, [&](const Tensor& t, int i, int element) {
    NodeOutput from = history_of(t);
    if (!from.node) return;
    plain.set(i, element, make_alias(t));
    inputs.push_back({i, element, &histories.emplace_back(std::move(from))});
  });
  for (int i = 0; i < f.op->arity; ++i) {
    const Param& param = f.op->schema.params[size_t(i)];
    if (param.kind == ParamKind::Function && param.role != ParamRole::Rule && !f.none(i))
      plain.set(i, below_autograd(f.arg<FunctionRef>(i), *f.op));
  }
  Frame lower = plain.into(f.results, f.list);
  {
    const Below below(key);
    call(lower);
  }
  if (inputs.empty()) return;
  for (Tensor& t : *f.list) make_own(t);
  const NodeRef node = record(lower, inputs);
  for (size_t k = 0; k < f.list->size(); ++k)
    if (Tensor& t = (*f.list)[k]; is_inexact(t.dtype())) attach(t, {node, uint32_t(k)});
}

[[maybe_unused]] const bool installed = [] {
  set_autograd_function_cell(autograd_function_cell);
  return true;
}();
}  // namespace

void Interpreter::call_with_functions(Frame& frame, int key) {
  LAMELLA_ASSERT(key == key_);
  const Below below(key);
  FrameCopy copy(frame);
  for (int i = 0; i < frame.op->arity; ++i) {
    const Param& param = frame.op->schema.params[size_t(i)];
    if (param.kind == ParamKind::Function && !frame.none(i))
      copy.set(i, lowered(frame.arg<FunctionRef>(i), *frame.op, param));
  }
  Frame lower = copy.into(frame.results, frame.list);
  with_functions(lower);
}

Tensor fixed(const Tensor& t) {
  if (!t.defined() || t.impl()->number) return t;
  const uint64_t levels = t.keys() >> kFirstLevelKey << kFirstLevelKey;
  if (!levels) {
    Tensor out = make_alias(t);
    if (NodeOutput from = history_of(t); from.node) attach(out, std::move(from));
    return out;
  }
  const int key = KeySet(levels).highest();
  const LevelSlot& slot = dispatch_state().levels[key - kFirstLevelKey];
  const auto* level = dynamic_cast<const Interpreter*>(slot.transform);
  return level && wrapper_at<Wrapper>(t, key, slot.serial) ? level->fixed(t) : t;
}

}  // namespace lamella
