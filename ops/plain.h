// Tensors that a cell of the CPU may read as one run of memory.
#pragma once

#include "lamella/core/family.h"

namespace lamella::ops {

/// A gapless tensor of the CPU that nothing else has to see to.
inline bool is_plain(const Tensor& t, DType dtype) {
  const TensorImpl* const i = t.impl();
  return i->dtype == dtype && i->device == Device::CPU && i->storage && i->contiguous && !has_late_history(i);
}

}  // namespace lamella::ops
