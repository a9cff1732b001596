// What a kernel sees of tensors: pointers, sizes, strides. No ownership, no keys.
#pragma once

#include <cstdint>
#include <span>

#include "lamella/core/dtype.h"
#include "lamella/core/scalar.h"

LAMELLA_API_BEGIN
namespace lamella {

/// One operand of a kernel call. `data` points at the element with all indices 0; strides count elements,
/// never negative.
struct View {
  void* data = nullptr;
  DType dtype = DType::F32;
  int rank = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;

  template <class T> T* as() const { return static_cast<T*>(data); }
  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }
};

/// All a kernel gets. Shapes, dtypes and bounds of attributes have been checked by the caller; *values* (an
/// index tensor's entries, positive definiteness) are the kernel's to check: indices before it writes
/// anything, others at any time, for what such kernels write to is thrown away where they raise
/// (kValueErrors).
struct KernelCall {
  std::span<const View> outs;
  std::span<const View> ins;
  DType compute = DType::F32;          ///< pointwise, reduce, scan: the dtype arithmetic is done in
  std::span<const int64_t> ints = {};  ///< dims and flags, in the order kernels.h states
  std::span<const Scalar> scalars = {};
};

using KernelFn = void (*)(const KernelCall&);

}  // namespace lamella
LAMELLA_API_END
