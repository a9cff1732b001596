// Headers and copies by which tapes keep what later writes, or promotion, would change.
#include "lamella/transforms/writes/keeping.h"

#include "lamella/ops/functions/copy.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/transforms/tapes/asked.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/transforms/writes/own_header.h"

namespace lamella {

KeepingCopies::KeepingCopies(const Storage* memory) : saved_(asked_of_tapes.about_to_be_written) {
  asked_of_tapes.about_to_be_written = memory;
  ++asked_of_tapes.special_saves;
}
KeepingCopies::~KeepingCopies() {
  asked_of_tapes.about_to_be_written = saved_;
  --asked_of_tapes.special_saves;
}

Tensor own_fresh(const Tensor& t, int key) {
  const Storage* const memory = t.impl()->storage;
  const LevelSlot& level = dispatch_state().levels[key - kFirstLevelKey];
  if (!born_inside(memory ? memory->birth : content_of(t).birth, key, level.serial)) return t;
  if (!memory) return fixed(t);
  if (t.impl()->wrap) return memory->embedded ? clone(t) : fixed(t);
  return memory->embedded ? clone(make_alias(t)) : make_alias(t);
}

void refuse_inference(const Op& saver, const Tensor& t) {
  fail(ErrorCode::Value,
       "{}: {} was made in inference mode and would be saved for backward; expected a clone of it made "
       "outside",
       saver.name, t);
}

const Tensor* as_saved(std::string_view saver, const Tensor& t, int key, int last, uint32_t version) {
  const Tensor* const then = before_promotion(t, key, last);
  const uint32_t now = then ? writes_seen(*then->impl()) : version + 1;
  if (now != version) [[unlikely]]
    fail(WrittenLater(), ErrorCode::Value,
         "backward: a value that {} saved was written in place later: version {}, expected {}; clone it "
         "first{}",
         saver, now, version, watch_in_force() && then ? watch_in_force()->writer_of(*then, version) : "");
  return then;
}

Tensor own_copy(const Tensor& t) { return clone(make_alias(t)); }

Tensors without_elements(TensorSpan tensors) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(make_tensor(t.sizes(), t.dtype(), Device::Meta));
  return out;
}

Tensor own_value(const Op& saver, const Tensor& t, int key) {
  const TensorImpl* const impl = t.impl();
  const bool lost = key == 0 && impl && impl->storage && impl->storage == asked_of_tapes.about_to_be_written;
  return lost ? clone(make_alias(t)) : own_header(saver, t, key);
}

}  // namespace lamella
