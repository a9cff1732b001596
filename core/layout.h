// What a tensor is when its elements do not lie in a storage by sizes and strides.
#pragma once

#include <string>

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [layouts] A tensor's `layout` is what it is: the indices and values of a sparse one, the number and
/// unit of a quantity. Its `wrap` is who follows it: a level's wrapper, or base autograd's record. So a
/// tensor that keeps data of its own can require grad, and be wrapped by every level. It carries the key of
/// its layout (bits 6 to 14, see NOTE: [types]) in the place of its device's, and has no storage; sizes and
/// dtype are those that programs see. Handles of the same values share one layout, which therefore never
/// changes: an operator that writes puts another in its place.
struct TensorLayout : RefCounted {
  const int key;  ///< that of its type

  explicit TensorLayout(int type) : key(type) { destroy_queued = destroy_handed_on; }
  virtual ~TensorLayout() = default;
  /// What follows the type when a tensor is printed; never throws.
  virtual std::string str() const { return ""; }
  static void destroy(TensorLayout* l) { delete l; }
  /// Of one that another thread gave up.
  static void destroy_handed_on(RefCounted* l) { destroy(static_cast<TensorLayout*>(l)); }
};

/// A tensor of these sizes that is what `layout` says. Errors: shape, overflow for sizes that no tensor has;
/// usage for no layout, schema for one whose key is no type's.
Tensor make_of_layout(Ints sizes, DType dtype, Device device, Ref<TensorLayout> layout);
/// Gives the header another layout of the same type, for all its handles. REQUIRES: nothing else wraps it.
void replace_layout(const Tensor& t, Ref<TensorLayout> layout);

/// Null unless the tensor itself, no level around it, is of that type.
template <class L> const L* layout_at(const Tensor& t, int key) {
  const TensorImpl* const impl = t.impl();
  return impl && impl->layout && impl->layout->key == key ? static_cast<const L*>(impl->layout) : nullptr;
}

}  // namespace lamella
LAMELLA_API_END
