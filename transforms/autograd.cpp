// Base autograd: the cell of the autograd key, and backward.
#include "lamella/transforms/autograd.h"

#include <algorithm>

#include "lamella/core/thresholds.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/history.h"
#include "lamella/transforms/inference.h"
#include "lamella/transforms/writes/keeping.h"

namespace lamella {

namespace {

/// The arguments of a call that carry history; those of families are asked for theirs, which are kept here.
class Inputs {
 public:
  explicit Inputs(const Frame& f) {
    const Op& op = *f.op;
    size_t most = 0;
    for (const uint8_t i : op.tensor_params)
      if (!f.none(i)) most += op.schema.params[i].kind == ParamKind::Tensor ? 1 : f.tensors(i).size();
    if (most > kFew) more_asked_.resize(most), more_.resize(most);
    for_each_tensor(f, [&](const Tensor& t, int param, int element) { add(t, param, element); });
  }
  std::span<const TapeInput> found() const { return {more_.empty() ? few_ : more_.data(), n_}; }

 private:
  static constexpr size_t kFew = size_t(kUsualThresholds.few_tracked);

  void add(const Tensor& t, int param, int element) {
    NodeOutput from = history_of(t);
    if (!from.node) return;
    NodeOutput& kept = (more_.empty() ? few_asked_ : more_asked_.data())[n_];
    kept = std::move(from);
    (more_.empty() ? few_ : more_.data())[n_++] = {param, element, &kept};
  }

  NodeOutput few_asked_[kFew];
  TapeInput few_[kFew];
  std::vector<NodeOutput> more_asked_;
  std::vector<TapeInput> more_;
  size_t n_ = 0;
};

/// Gives the results of `f` the history that their `inputs` have.
void attach_history(Frame& f, std::span<const TapeInput> inputs) {
  const int n = f.op->schema.n_results;
  NodeRef node = record(f, inputs);
  Tensor& first = f.results[0];
  if (n == 1 && !first.impl()->wrap) [[likely]] {
    if (is_inexact(first.dtype()))
      first.impl()->wrap = new Meta(std::move(node), 0), first.impl()->keys |= kAutogradBit;
    return;
  }
  for (int k = 0; k < n; ++k) {
    if (!is_inexact(f.results[k].dtype())) continue;
    attach(f.results[k], {k + 1 == n ? std::move(node) : node, uint32_t(k)});
  }
}

[[gnu::noinline]] void general(Frame& f) {
  const Op& op = *f.op;
  const Inputs inputs(f);
  if (!inputs.found().empty()) attach_history(f, inputs.found());
  if (op.is_view()) enter_family(f.tensor(op.tensor_params[0]), f.results[0]);
}

/// Calls without lists find their histories in the handles, unless a family knows better.
bool short_way(Frame& f) {
  const Op& op = *f.op;
  if (!op.simple) return false;
  TapeInput inputs[kMaxArity];
  size_t n = 0;
  for (const uint8_t i : op.tensor_params) {
    const TensorImpl* const t = f.args[i] ? f.arg<Tensor>(i).impl() : nullptr;
    if (!t) continue;
    if (!says_its_history(*t)) return false;
    if (!(t->keys & kAutogradBit)) continue;
    const auto* const meta = static_cast<const Meta*>(t->wrap);
    if (meta->from.node) inputs[n++] = {i, 0, &meta->from};
  }
  if (n > 0) attach_history(f, {inputs, n});
  if (op.is_view()) enter_family(f.tensor(op.tensor_params[0]), f.results[0]);
  return true;
}

void functional(Frame& f) {
  {
    const Below below(kAutogradKey);
    call(f);
  }
  if (f.op->vjp.empty()) return;
  if (!short_way(f)) general(f);
}

/// A write: the functional call gives value and history, memory is written below, and the target's family
/// follows. What the call saves of the target is copied before.
void written(Frame& f) {
  if (!f.tensor(0).defined()) [[unlikely]]
    check_defined(f);
  const Tensor target = f.tensor(0);
  const std::string& arg = f.op->schema.params[0].name;
  Frame base{f.op->base, f.args + (f.op->form == OpForm::Out ? 1 : 0), nullptr};
  check_followed(*base.op, arg, target);
  Tensor result;
  base.results = &result;
  {
    const KeepingCopies keeping(target.impl()->storage);
    call(base);
  }
  ops::check_written(base, arg, target, {result.sizes(), result.dtype()});
  if (result.dtype() != target.dtype()) result = to(result, target.dtype());
  const NodeOutput from = history_of(result);
  {
    const Below below(kAutogradKey);
    copy_(target, result);
  }
  follow_write(target, from);
}

void autograd_cell(Frame& f, int) {
  if (f.op->form != OpForm::Functional) return written(f);
  functional(f);
}

[[maybe_unused]] const bool installed = [] {
  set_autograd_cell(autograd_cell);
  return true;
}();

}  // namespace

namespace {
void make_leaf(Tensor& t) {
  LAMELLA_CHECK(!is_inference(t), Value,
                "requires_grad: x is {}, made in inference mode; expected one that was not: clone it outside",
                t);
  LAMELLA_CHECK(is_inexact(t.dtype()), DType, "requires_grad: x is {}, expected floating point or complex",
                t);
  NodeRef node = NodeRef::adopt(Node::create(0, 0));
  state_of(*node).type = {Dims(t.sizes()), t.dtype()};
  attach(t, {std::move(node), 0});
  meta_of(t)->leaf = true;
}
}  // namespace

Tensor requires_grad(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "requires_grad: x is an undefined tensor; expected a defined one");
  LAMELLA_CHECK(x.impl()->storage || x.impl()->layout, Level,
                "requires_grad: x is {}, wrapped by a transform; expected a plain tensor", x);
  Tensor leaf = make_alias(x);
  make_leaf(leaf);
  return leaf;
}

const Tensor& requires_grad_(const Tensor& x) {
  LAMELLA_CHECK(x.defined(), Undefined, "requires_grad_: x is an undefined tensor; expected a defined one");
  LAMELLA_CHECK(x.impl()->storage || x.impl()->layout, Level,
                "requires_grad_: x is {}, wrapped by a transform; expected a plain tensor", x);
  if (const Meta* const meta = meta_of(x); meta && meta->leaf) return x;
  LAMELLA_CHECK(!history_of(x).node, Value,
                "requires_grad_: x is {} and carries derivatives of other tensors; expected a plain tensor: "
                "detach it first",
                x);
  LAMELLA_CHECK(
      !x.impl()->wrap && !x.impl()->family(), Value,
      "requires_grad_: x is {}, a view, or has views, that would not follow; expected a tensor without: "
      "call requires_grad before viewing",
      x);
  Tensor handle = x;
  make_leaf(handle);
  return x;
}

bool is_grad_required(const Tensor& x) { return bool(history_of(x).node); }

bool is_leaf(const Tensor& x) {
  const NodeOutput from = history_of(x);
  return !from.node || (meta_of(x) && meta_of(x)->leaf);
}

uint32_t version_of(const Tensor& x) {
  LAMELLA_CHECK(x.defined() && x.impl()->storage, Level,
                "version_of: x has no memory of its own; expected a plain tensor");
  return x.impl()->storage->version.load(std::memory_order_relaxed);
}

NoGrad::NoGrad() : saved_(dispatch_state().exclude) { dispatch_state().exclude |= kAutogradBit; }
NoGrad::~NoGrad() {
  dispatch_state().exclude = (dispatch_state().exclude & ~kAutogradBit) | (saved_ & kAutogradBit);
}

EnableGrad::EnableGrad() : saved_(dispatch_state().exclude) {
  if (is_inference_mode()) return;
  dispatch_state().exclude = (saved_ & ~kAutogradBit) | NoGradLevels::live();
}
EnableGrad::~EnableGrad() {
  const uint64_t changed = kAutogradBit | NoGradLevels::live();
  dispatch_state().exclude = (dispatch_state().exclude & ~changed) | (saved_ & changed);
}

}  // namespace lamella
