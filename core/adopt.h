// Tensors on memory that someone else owns.
#pragma once

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella {

struct ForeignMemory {
  void* data = nullptr;  ///< aligned as elements of the tensor are; null for no bytes
  size_t nbytes = 0;
  void (*deleter)(void* context) = nullptr;  ///< runs once, when the last view dies; null: it outlives them
  void* context = nullptr;
};

/// A tensor on the CPU whose element [i,j] lies offset + i * strides[0] + j * strides[1] elements behind the
/// first; bytes of bools are 0 or 1. No transform takes the memory for its own, so that what is written to
/// the tensor is written there. Where this call fails, `memory` stays the caller's. Errors: value (null for
/// some bytes, or not aligned), overflow, and make_view's (storage where an element would lie outside,
/// shape).
Tensor adopt_memory(const ForeignMemory& memory, DType dtype, Ints sizes, Ints strides, int64_t offset = 0);

}  // namespace lamella
LAMELLA_API_END
