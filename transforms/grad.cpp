// The grad level: records calls on a tape that its pullback takes along.
#include "lamella/transforms/grad.h"

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

  void with_lists(Frame& f) {
    FrameCopy values(f);
    std::vector<TapeInput> inputs;
    unwrap(f, values, [&](int i, int element, const NodeOutput& from) {
      inputs.push_back({i, element, &from});
    });
    finish(f, values.args(), inputs);
  }

  void finish(Frame& f, const void* const* args, std::span<const TapeInput> inputs) {
    const Op& op = *f.op;
    Frame lower{&op, args, f.results, f.list};
    lamella::call(lower);
    if (inputs.empty() || op.vjp.empty()) return;
    NodeRef node;
    const std::span<Tensor> results = results_of(f);
    for (size_t k = 0; k < results.size(); ++k) {
      Tensor& result = results[k];
      if (!is_inexact(result.dtype())) continue;
      if (!node) node = record(lower, inputs, key_);  // before the first result is wrapped
      result = wrap(std::move(result), {k + 1 == results.size() ? std::move(node) : node, uint32_t(k)});
    }
  }
};

}  // namespace

struct Pullback::State {
  std::vector<NodeOutput> outputs, inputs;
  Tensors like_inputs, like_outputs;  ///< values one level down: shapes, dtypes and devices
};

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
  State last{state_->outputs, state_->inputs, state_->like_inputs, {}};
  state_.reset();  // what it held goes before the first node runs
  return with_zeros(run_backward_once(last.outputs, cotangents, {last.inputs, last.like_inputs}),
                    last.like_inputs);
}

VjpResult vjp_has_aux(const AuxFunction& f, const Tensors& inputs) {
  given(f, "vjp");
  check_inputs(inputs, "vjp");
  Grad transform;
  const OpenLevel open(transform);
  auto state = std::make_shared<Pullback::State>();
  state->like_inputs = inputs;
  Tensors wrapped;
  for (const Tensor& x : inputs) {
    state->inputs.push_back({NodeRef::adopt(Node::create(0, 0)), 0});
    wrapped.push_back(transform.wrap_argument(x, state->inputs.back()));
  }
  Grad::Returned out = transform.run(f, wrapped, "vjp");
  state->outputs = std::move(out.derived);
  state->like_outputs = out.values;
  return {std::move(out.values), Pullback(std::move(state)), std::move(out.aux)};
}

VjpResult vjp(const Function& f, const Tensors& inputs) {
  return vjp_has_aux([&f = given(f, "vjp")](const Tensors& xs) { return std::pair(f(xs), Tensors{}); },
                     inputs);
}

}  // namespace lamella
