// The grad level: records calls on a tape that its pullback takes along.
#include "lamella/transforms/grad.h"

#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/machine/deriving.h"
#include "lamella/transforms/tapes/steps.h"

namespace lamella {

namespace {

using GradWrapper = DerivingWrapper<NodeOutput>;
static_assert(sizeof(GradWrapper) <= TensorImpl::kSuffix);

class Grad final : public DerivingLevel<Grad, GradWrapper> {
 public:
  std::string_view name() const override { return "grad"; }
  static bool carries(const NodeOutput& from) { return bool(from.node); }
  static NodeOutput kept(NodeOutput from) { return from; }

 private:
  friend DerivingLevel;

  void plain(Frame& f) {
    const Op& op = *f.op;
    const void* args[kMaxArity];
    for (int i = 0; i < op.arity; ++i) args[i] = f.args[i];
    TapeInput inputs[kMaxArity];
    size_t n = 0;
    for (const uint8_t i : op.tensor_params) {
      if (!f.args[i]) continue;
      GradWrapper* w = wrapper(f, f.tensor(i));
      if (!w) continue;
      args[i] = &w->value;
      if (w->derived.node) inputs[n++] = {i, 0, &w->derived};
    }
    finish(f, args, {inputs, n});
  }

  NodeOutput of_view(const Frame& lower, int at, const GradWrapper& w) const {
    if (lower.op->vjp.empty() || !is_inexact(lower.results[0].dtype())) return {};
    const TapeInput input{at, 0, &w.derived};
    return {record(lower, {&input, 1}, key_), 0};
  }

  std::vector<TapeInput> inputs_of(const Frame& f, FrameCopy& values) const {
    std::vector<TapeInput> inputs;
    unwrap(f, values, [&](int i, int element, const NodeOutput& from) {
      inputs.push_back({i, element, &from});
    });
    return inputs;
  }

  void with_lists(Frame& f) {
    FrameCopy values(f);
    const std::vector<TapeInput> inputs = inputs_of(f, values);
    finish(f, values.args(), inputs);
  }

  void with_functions(Frame& f) override {
    FrameCopy values(f);
    const std::vector<TapeInput> inputs = inputs_of(f, values);
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
  LAMELLA_CHECK(state_, Usage,
                "pullback: it was moved from, or has run for the last time (std::move); expected a copy");
  const State& s = *state_;
  LAMELLA_CHECK(cotangents.size() == s.like_outputs.size(), Shape, "pullback: got {} {}, expected {}",
                cotangents.size(), Argument{"cotangents"}, s.like_outputs.size());
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (cotangents[i].defined())
      check_direction("pullback", "cotangent", i, cotangents[i], s.like_outputs[i], "the result");
}

Tensors Pullback::operator()(const Tensors& cotangents) const& {
  check(cotangents);
  return with_zeros(run_backward(state_->outputs, cotangents, {state_->inputs, state_->like_inputs}),
                    state_->like_inputs);
}

Tensors Pullback::operator()(const Tensors& cotangents) && {
  check(cotangents);
  if (state_.use_count() > 1)  // copies are left, and run as often as they like
    return [last = std::move(*this), &cotangents] { return last(cotangents); }();
  std::vector<NodeOutput> outputs = state_->outputs;  // the state's own go before the first node runs
  const std::vector<NodeOutput> inputs = state_->inputs;
  const Tensors like = state_->like_inputs;
  state_.reset();
  return with_zeros(run_backward_once(outputs, cotangents, {inputs, like}), like);
}

VjpResult vjp_has_aux(const AuxFunction& f, const Tensors& inputs) {
  given(f, "vjp");
  check_inputs(inputs, "vjp");
  Grad transform;
  const OpenLevel open(transform);
  auto state = std::make_shared<Pullback::State>();
  Tensors wrapped;
  for (const Tensor& x : inputs) {
    wrapped.push_back(transform.wrap_argument(x, {NodeRef::adopt(Node::create(0, 0)), 0}));
    state->inputs.push_back(static_cast<GradWrapper*>(wrapped.back().impl()->wrap)->derived);
    state->like_inputs.push_back(x);
  }
  auto [ys, aux] = f(wrapped);
  for (Tensor& y : ys) {
    LAMELLA_CHECK(y.defined(), Undefined,
                  "vjp: the function returned an undefined tensor; expected defined ones");
    state->outputs.push_back(transform.split(y, y));
    state->like_outputs.push_back(y);
  }
  for (Tensor& a : aux)
    if (a.defined()) transform.split(a, a);
  return {std::move(ys), Pullback(std::move(state)), std::move(aux)};
}

VjpResult vjp(const Function& f, const Tensors& inputs) {
  return vjp_has_aux([&f = given(f, "vjp")](const Tensors& xs) { return std::pair(f(xs), Tensors{}); },
                     inputs);
}

}  // namespace lamella
