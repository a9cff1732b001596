// A scope whose results are constants for the levels below it.
#include "lamella/transforms/stop_gradient.h"

#include "lamella/dispatch/call.h"
#include "lamella/ops/structured.h"

namespace lamella {

namespace {
/// Keys of live levels that act where an argument carries them, as those of derivatives do.
uint64_t carried_keys() {
  const DispatchState& state = dispatch_state();
  uint64_t out = 0;
  for (int i = 0; i < state.depth; ++i)
    if (state.levels[i].transform && state.levels[i].transform->kind() == TransformKind::Carried)
      out |= KeySet::of(kFirstLevelKey + i).bits;
  return out;
}

/// NOTE: [no-grad scope] A mode, so that it sees every operator that levels opened inside have not taken up,
/// with values as they are for the levels below: what it gives back is detached from those, and levels above
/// never learn of it.
class Constants final : public Transform {
 public:
  explicit Constants(uint64_t carried) : carried_(carried) {}
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "no_grad"; }

  void call(Frame& f, int key) override {
    const Below below(key);
    if (f.op->form == OpForm::Functional) return functional(f);
    written(f);
  }

 private:
  bool carries(const Tensor& t) const { return t.defined() && (t.keys() & carried_); }
  void cut(Tensor& t) const {
    if (carries(t)) t = detach(t);
  }

  void functional(Frame& f) const {
    lamella::call(f);
    for (int k = 0; k < f.op->schema.n_results; ++k) cut(f.results[k]);
    if (f.list)
      for (Tensor& t : *f.list) cut(t);
  }

  void written(Frame& f) const {
    const Tensor target = f.tensor(0);
    Tensor result;
    Frame base{f.op->base, f.args + (f.op->form == OpForm::Out ? 1 : 0), &result};
    functional(base);
    ops::check_target(*base.op, f.op->schema.params[0].name, target, {result.sizes(), result.dtype()});
    if (result.dtype() != target.dtype()) result = to(result, target.dtype());
    if (!carries(target)) copy_(target, result);
    else ops::under_own_name(f, "with_values", [&] { with_values_(target, result); });
  }

  uint64_t carried_;
};
}  // namespace

struct NoGradLevels::Scope {
  Constants transform;
  Level level;
  explicit Scope(uint64_t carried) : transform(carried), level(transform) {}
};

NoGradLevels::NoGradLevels() {
  if (const uint64_t carried = carried_keys()) scope_ = std::make_unique<Scope>(carried);
}
NoGradLevels::~NoGradLevels() = default;

uint64_t NoGradLevels::live() {
  const DispatchState& state = dispatch_state();
  uint64_t out = 0;
  for (int i = 0; i < state.depth && state.modes; ++i)
    if (dynamic_cast<const Constants*>(state.levels[i].transform)) out |= KeySet::of(kFirstLevelKey + i).bits;
  return out;
}

}  // namespace lamella
