// Headers of tensors that keep data of their own.
#include "lamella/core/layout.h"

#include <utility>

#include "lamella/core/limits.h"

namespace lamella {

Tensor make_of_layout(Ints sizes, DType dtype, Device device, Ref<TensorLayout> layout) {
  check_dtype("make_of_layout", dtype), check_device("make_of_layout", device);
  checked_numel(sizes, "make_of_layout");
  LAMELLA_CHECK(layout, Usage, "make_of_layout: {} is null; expected one of a type", Argument{"layout"});
  // The keys behind those of devices, see NOTE: [keys].
  LAMELLA_CHECK(layout->key >= kDeviceCount && layout->key < kDeviceCount + kMaxTypes, Schema,
                "make_of_layout: {} is of key {}, expected {} to {}: a type's", Argument{"layout"},
                layout->key, kDeviceCount, kDeviceCount + kMaxTypes - 1);
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
