// The grad level: records calls on a tape that its pullback takes along.
#include "lamella/transforms/grad.h"

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/machine/tape.h"

namespace lamella {

namespace {

struct GradWrapper : ReplacingWrapper {
  NodeOutput from;
  std::string str() const override { return format(" in {} of {}", live_key_name(key), lamella::str(value)); }
};
static_assert(sizeof(GradWrapper) <= TensorImpl::kSuffix);

GradWrapper* grad_of_wrapper(const Tensor& t) { return static_cast<GradWrapper*>(t.impl()->wrap); }

class Grad final : public Interpreter {
 public:
  TransformKind kind() const override { return TransformKind::Carried; }
  std::string_view name() const override { return "grad"; }

  Tensor wrap(Tensor value, NodeOutput from) const {
    const TensorImpl& shape = *value.impl();  // the wrapper keeps it alive
    Tensor t = make_wrapper<GradWrapper>(std::move(value), key_, serial_, shape);
    grad_of_wrapper(t)->from = std::move(from);
    return t;
  }
  Tensor wrap_argument(const Tensor& value) const {
    Tensor t = wrap(value, {NodeRef::adopt(Node::create(0, 0)), 0});
    grad_of_wrapper(t)->argument = true;
    return t;
  }
  GradWrapper* wrapper(const Frame& f, const Tensor& t) const {
    return static_cast<GradWrapper*>(current_wrapper(f, t, key_, serial_, take));
  }
  /// Result as the pullback needs it: the value, and the node it came from (null when it does not depend on
  /// the inputs).
  NodeOutput output(const Tensor t, Tensor& value) const {
    static const Frame kReturn{nullptr, nullptr, nullptr};
    value = t;
    if (!wraps(t)) return {};
    auto* w = wrapper_at<GradWrapper>(t, key_, serial_);
    if (!w) return {};
    if (w->view) w = wrapper(kReturn, t);
    value = w->value;
    return w->from;
  }

  std::unique_ptr<Interpreter> copy() const override { return std::make_unique<Grad>(*this); }
  Left left(const Tensor& t) const override {
    Left out;
    out.depends = bool(output(t, out.value).node);
    return out;
  }
  Tensor fixed(const Tensor& t) const override {
    Tensor value;
    NodeOutput from = output(t, value);
    return wrap(lamella::fixed(value), std::move(from));
  }

 protected:
  void functional(Frame& f) override {
    const Op& op = *f.op;
    if (op.composite) return run_composite(f);
    if (op.is_view()) return view(f);
    if (!op.simple) return with_lists(f);
    const void* args[kMaxArity];
    for (int i = 0; i < op.arity; ++i) args[i] = f.args[i];
    TapeInput inputs[kMaxArity];
    size_t n = 0;
    for (const uint8_t i : op.tensor_params) {
      if (!f.args[i]) continue;
      GradWrapper* w = wrapper(f, f.tensor(i));
      if (!w) continue;
      args[i] = &w->value;
      if (w->from.node) inputs[n++] = {i, 0, &w->from};
    }
    finish(f, args, {inputs, n});
  }

  void assign(const Frame& f, const Tensor& target, const Tensor& value) override {
    replace_value(f, target, value, key_, serial_, take);
  }

  Wrapper* shell(const Tensor& plain) override { return make_shell<GradWrapper>(plain, plain); }

 private:
  static void take(const Tensor& to, const Tensor& from) {
    GradWrapper* t = grad_of_wrapper(to);
    const bool wrapped = from.keys() >> t->key & 1;
    t->value = wrapped ? grad_of_wrapper(from)->value : from;
    t->from = wrapped ? grad_of_wrapper(from)->from : NodeOutput{};
  }

  void run_composite(Frame& f) {
    const Reaching reaching(key_);
    f.op->composite(f);
  }

  /// A view of what the level wraps is wrapped, with or without derivatives: writes must reach it.
  [[gnu::noinline]] void view(Frame& f) {
    const int at = f.op->tensor_params[0];
    const Tensor& x = f.tensor(at);
    GradWrapper* w = wrapper(f, x);
    FrameCopy values(f);
    values.set(at, lies_as_seen(x, w->value) ? w->value : contiguous(w->value));
    const TapeInput input{at, 0, &w->from};
    Frame lower = values.into(f.results);
    lamella::call(lower);
    Tensor& result = f.results[0];
    NodeRef node;
    if (w->from.node && !f.op->vjp.empty() && is_inexact(result.dtype()))
      node = record(lower, {&input, 1}, key_);
    result = wrap(std::move(result), {std::move(node), 0});
    note_view(f, result, key_, serial_);
  }

  void with_lists(Frame& f) {
    FrameCopy values(f);
    std::vector<TapeInput> inputs;
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const GradWrapper* w = wrapper(f, t);
      if (!w) return;
      values.set(i, element, w->value);
      if (w->from.node) inputs.push_back({i, element, &w->from});
    });
    finish(f, values.args(), inputs);
  }

  void with_functions(Frame& f) override {
    FrameCopy values(f);
    std::vector<TapeInput> inputs;
    for_each_tensor(f, [&](const Tensor& t, int i, int element) {
      const GradWrapper* w = wrapper(f, t);
      if (!w) return;
      values.set(i, element, w->value);
      if (w->from.node) inputs.push_back({i, element, &w->from});
    });
    Frame lower = values.into(f.results, f.list);
    lamella::call(lower);
    if (inputs.empty()) return;
    const NodeRef node = record(lower, inputs, key_);
    for (size_t k = 0; k < f.list->size(); ++k)
      if (Tensor& result = (*f.list)[k]; is_inexact(result.dtype()))
        result = wrap(std::move(result), {node, uint32_t(k)});
  }

  void finish(Frame& f, const void* const* args, std::span<const TapeInput> inputs) {
    const Op& op = *f.op;
    Frame lower{&op, args, f.results, f.list};
    lamella::call(lower);
    if (op.vjp.empty()) return op.is_view() ? constant_view(f) : void();
    if (inputs.empty()) return;
    NodeRef node;
    // operators that return lists are composites
    LAMELLA_ASSERT(op.schema.result_kind == ResultKind::Tensors);
    const int n = op.schema.n_results;
    for (int k = 0; k < n; ++k) {
      Tensor& result = f.results[k];
      if (!is_inexact(result.dtype())) continue;
      if (!node) node = record(lower, inputs, key_);  // before the first result is wrapped
      result = wrap(std::move(result), {k + 1 == n ? std::move(node) : node, uint32_t(k)});
    }
  }

  /// A view without a derivative sees what is written to its base.
  [[gnu::noinline]] void constant_view(Frame& f) {
    f.results[0] = wrap(std::move(f.results[0]), {});
    note_view(f, f.results[0], key_, serial_);
  }
};

}  // namespace

struct Pullback::State {
  std::vector<NodeOutput> outputs, inputs;
  Tensors like_inputs, like_outputs;  ///< values one level down: shapes, dtypes and devices
};

namespace {
Tensors with_zeros(Tensors grads, const Tensors& like) {
  for (size_t i = 0; i < grads.size(); ++i)
    if (!grads[i].defined()) grads[i] = zeros_like(like[i]);
  return grads;
}
}  // namespace

void Pullback::check(const Tensors& cotangents) const {
  const State& s = *state_;
  LAMELLA_CHECK(cotangents.size() == s.like_outputs.size(), Shape, "pullback: got {} {}, expected {}",
                cotangents.size(), Argument{"cotangents"}, s.like_outputs.size());
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const Tensor &ct = cotangents[i], &y = s.like_outputs[i];
    if (!ct.defined()) continue;
    LAMELLA_CHECK(ct.dtype() == y.dtype(), DType, "pullback: cotangent {} is {}, expected {}", i, ct, y);
    LAMELLA_CHECK(std::ranges::equal(ct.sizes(), y.sizes()), Shape,
                  "pullback: cotangent {} is {}, expected {}", i, ct, y);
    LAMELLA_CHECK(ct.device() == y.device(), Device,
                  "pullback: cotangent {} is on {}, expected {} as the result", i, name(ct.device()),
                  name(y.device()));
  }
}

Tensors Pullback::operator()(const Tensors& cotangents) const& {
  check(cotangents);
  return with_zeros(run_backward(state_->outputs, cotangents, state_->inputs), state_->like_inputs);
}

Tensors Pullback::operator()(const Tensors& cotangents) && {
  if (const Pullback& kept = *this; state_.use_count() > 1) return kept(cotangents);
  check(cotangents);
  std::vector<NodeOutput> outputs = state_->outputs;  // the state's own go before the first node runs
  const std::vector<NodeOutput> inputs = state_->inputs;
  const Tensors like = state_->like_inputs;
  state_.reset();
  return with_zeros(run_backward_once(outputs, cotangents, inputs), like);
}

VjpResult vjp_has_aux(const AuxFunction& f, const Tensors& inputs) {
  check_inputs(inputs, "vjp");
  Grad transform;
  const OpenLevel open(transform);
  auto state = std::make_shared<Pullback::State>();
  Tensors wrapped;
  for (const Tensor& x : inputs) {
    wrapped.push_back(transform.wrap_argument(x));
    state->inputs.push_back(grad_of_wrapper(wrapped.back())->from);
    state->like_inputs.push_back(x);
  }
  auto [ys, aux] = f(wrapped);
  for (Tensor& y : ys) {
    LAMELLA_CHECK(y.defined(), Undefined,
                  "vjp: the function returned an undefined tensor; expected defined ones");
    state->outputs.push_back(transform.output(y, y));
    state->like_outputs.push_back(y);
  }
  for (Tensor& a : aux)
    if (a.defined()) transform.output(a, a);
  return {std::move(ys), Pullback(std::move(state)), std::move(aux)};
}

VjpResult vjp(const Function& f, const Tensors& inputs) {
  return vjp_has_aux([&f](const Tensors& xs) { return std::pair(f(xs), Tensors{}); }, inputs);
}

}  // namespace lamella
