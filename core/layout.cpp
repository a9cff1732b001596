// Headers of tensors that keep data of their own.
#include "lamella/core/layout.h"

#include <utility>

namespace lamella {

Tensor make_of_layout(Ints sizes, DType dtype, Device device, Ref<TensorLayout> layout) {
  check_dtype("make_of_layout", dtype), check_device("make_of_layout", device);
  checked_numel(sizes, "make_of_layout");
  LAMELLA_ASSERT(layout);
  TensorImpl* const impl = TensorImpl::create_bare();
  const Tensor out = Tensor::adopt(impl);  // what follows may fail
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = uint64_t{1} << layout->key;
  impl->set_contiguous(sizes);
  impl->layout = layout.detach();
  return out;
}

void replace_layout(const Tensor& t, Ref<TensorLayout> layout) {
  TensorImpl* const impl = t.impl();
  LAMELLA_ASSERT(impl && impl->layout && layout && impl->layout->key == layout->key);
  TensorLayout* const before = std::exchange(impl->layout, layout.detach());
  if (before->release()) TensorLayout::destroy(before);
}

}  // namespace lamella
