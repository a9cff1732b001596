// The tolerances of a pack. There are no others.
#pragma once

#include <string>

#include "lamella/core/tensor.h"

namespace lamella::tools {

/// Empty when `got` agrees with `want`: shapes, dtypes, integers, bools, positions of NaN and of infinities
/// (with their signs) exactly; every other element to |got - want| <= t * max(1, |want|, largest finite
/// |want|) with t = 1e-9 (f64, c128), 1e-5 (f32, c64), 2e-3 (f16), 1.6e-2 (bf16). Otherwise names the first
/// difference. Both are plain tensors. Complex: non-finite parts one by one; otherwise |.| is the modulus,
/// with the largest *part* as the scale, which is the stricter of the two readings.
std::string beyond_tolerance(const Tensor& got, const Tensor& want);

/// Units in the last place between two bit patterns of f32 or f64: 0 for two NaNs and for zeros of either
/// sign, the largest integer when only one is NaN.
uint64_t ulps_apart(uint64_t a, uint64_t b, DType dtype);

}  // namespace lamella::tools
