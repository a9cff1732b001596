// How elements that lie in one memory meet, by strides alone.
#pragma once

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella {

/// As overlap() of tensors: b's first element lies `apart` bytes behind a's. Both have one element at least;
/// the views' data is not looked at. None where strides show that elements lie between each other; Partial
/// may be said of some that do.
Overlap overlap_in_memory(const View& a, const View& b, int64_t apart);

}  // namespace lamella
LAMELLA_API_END
