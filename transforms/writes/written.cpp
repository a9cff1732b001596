// Writes at a level: `name_` and `name_out` by the functional call, and what fresh memory becomes.
#include <optional>

#include "lamella/core/family.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/infer.h"
#include "lamella/ops/structured.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/machine/tape.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/transforms/writes/keeping.h"
#include "lamella/transforms/writes/overlap.h"

namespace lamella {

namespace {
/// Of a call that raised: plain tensors are asked whether the target holds the result before values are.
[[gnu::cold, gnu::noinline]] void check_target_first(const Frame& base, std::string_view arg,
                                                     const Tensor& target) {
  if (base.op->shape == ShapeClass::Dynamic || (base.op->composite && !base.op->infer)) return;
  Inferred said;
  try {
    check_defined(base);
    ops::infer_frame(base, said);
  } catch (const Error&) { return; }  // the call has raised that
  if (said.outs.size() != 1) return;
  ops::check_target(*base.op, arg, target, said.outs[0]);
  return check_overlap(base, arg, target);
}
}  // namespace

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
    try {
      lamella::call(base);
    } catch (const Error&) {
      check_target_first(base, arg, target);
      throw;
    }
  }
  ops::check_target(*base.op, arg, target, {result.sizes(), result.dtype()});
  check_overlap(base, arg, target);
  if (result.dtype() != target.dtype()) result = to(result, target.dtype());
  if (!wraps(target) && wraps(result)) promote(base, arg, target);
  if (wraps(target)) return assign(base, target, result);
  const Below below(key_);
  copy_(target, result);
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
  if (shared)
    fail(HasViews(), ErrorCode::Level,
         "{}: {} is {}, made inside {} without its values, and has views; expected a value of it, such as x "
         "* 0",
         frame.op->name, arg, target, live_key_name(key_));
  const bool embedded = impl->storage && impl->storage->embedded;
  const Tensor plain = embedded ? clone(target) : lamella::fixed(target);
  LAMELLA_ASSERT(!plain.is_same(target));
  if (embedded) plain.impl()->storage->version.store(impl->storage->version.load());  // a tape compares it
  become(impl, shell(plain));  // what follows shell() does not fail
}

}  // namespace lamella
