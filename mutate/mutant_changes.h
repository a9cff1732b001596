// Wrong values: what planted bugs make of a right result.
#pragma once

#include "lamella/dispatch/state.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/pointwise_unary.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

using Change = Tensor (*)(const Tensor&);

/// The floating and complex ones of `ts`, changed.
template <Change C> Tensors changed(Tensors ts) {
  for (Tensor& t : ts)
    if (t.defined() && is_inexact(t.dtype())) t = C(t);
  return ts;
}

inline Tensor negated(const Tensor& t) { return neg(t); }
inline Tensor one_percent_more(const Tensor& t) { return t * 1.01; }
inline Tensor conjugated(const Tensor& t) { return conj(t); }
/// The value without what outer levels of grad and jvp know of it.
inline Tensor detached(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  if (!impl->wrap || !(impl->keys >> kFirstLevelKey)) return t;
  const auto* w = static_cast<const Wrapper*>(impl->wrap);
  const Transform* transform = dispatch_state().levels[w->key - kFirstLevelKey].transform;
  return transform && transform->name() != "vmap" ? detached(w->value) : t;
}

}  // namespace lamella::verify
LAMELLA_API_END
