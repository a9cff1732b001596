// A scope whose results are constants for the levels below it.
#include "lamella/transforms/stop_gradient.h"

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/writes/overlap.h"

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
  /// Looks below wrappers: those around memory that a level took as its own later do not have its key.
  bool carries(const Tensor& t) const {
    for (const Tensor* now = &t; now->defined();) {
      if (now->keys() & carried_) return true;
      if (!(now->keys() >> kFirstLevelKey)) return false;
      now = &static_cast<const Wrapper*>(now->impl()->wrap)->value;
    }
    return false;
  }
  void cut(Tensor& t) const {
    if (carries(t)) t = detach(t);
  }

  /// Of constants an operator makes constants, in memory of their own: no handle of a level is their base. A
  /// view is cut off from its base afterwards.
  void functional(Frame& f) const {
    if (!f.op->is_view()) {
      FrameCopy constants(f);
      for_each_tensor(f, [&](const Tensor& t, int param, int element) {
        if (carries(t)) constants.set(param, element, detach(t));
      });
      Frame lower = constants.into(f.results, f.list);
      return lamella::call(lower);
    }
    lamella::call(f);
    for (int k = 0; k < f.op->schema.n_results; ++k) cut(f.results[k]);
    // Of memory that no level has taken yet, none may: the view would follow.
    Storage* const memory = content_of(f.results[0]).holder->impl()->storage;
    if (memory && memory->made_under_level()) memory->disown();
  }

  void written(Frame& f) const {
    const Tensor target = f.tensor(0);
    Tensor result;
    Frame base{f.op->base, f.args + (f.op->form == OpForm::Out ? 1 : 0), &result};
    functional(base);
    const std::string& arg = f.op->schema.params[0].name;
    ops::check_target(*base.op, arg, target, {result.sizes(), result.dtype()});
    check_overlap(base, arg, target);
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
