// Headers of the tape's own for what it saves. See NOTE: [tapes hold values].
#pragma once

#include "lamella/dispatch/call.h"
#include "lamella/transforms/machine/tape.h"
#include "lamella/transforms/writes/content.h"

LAMELLA_API_BEGIN
namespace lamella {

/// What promotion at level `key` could turn into a wrapper, by a header of the tape's own; small ones by
/// value, since promotion asks whether anybody else holds their memory.
Tensor own_fresh(const Tensor& t, int key);
Tensor own_copy(const Tensor& t);
[[noreturn, gnu::cold]] void refuse_inference(const Op& saver, const Tensor& t);

/// At the base always, since any tensor may be written later and then has a history. Of a small tensor that a
/// live level may promote a copy.
[[gnu::always_inline]] inline Tensor base_header(const Op& saver, const Tensor& t) {
  const TensorImpl* const impl = t.impl();
  if (!impl || !impl->storage || impl->number) return impl && impl->layout ? make_alias(t) : t;
  if (impl->storage->made_in_inference()) [[unlikely]]
    refuse_inference(saver, t);
  const bool promotable = impl->storage->embedded && impl->storage->birth != 0 && dispatch_state().depth > 0;
  return promotable ? own_copy(t) : make_alias(t);
}

/// The tape's own header.
inline Tensor own_header(const Op& saver, const Tensor& t, int key) {
  if (key == 0) return base_header(saver, t);
  const TensorImpl* const impl = t.impl();
  if (!impl || impl->number) return t;
  return impl->storage && impl->storage->birth == 0 ? t : own_fresh(t, key);
}

/// Likewise; a copy of what is about to be written.
Tensor own_value(const Op& saver, const Tensor& t, int key);

/// What they are like, for formulas that ask for no more.
Tensors without_elements(TensorSpan tensors);

}  // namespace lamella
LAMELLA_API_END
