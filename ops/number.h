// A Scalar as an operand: `x * 2` is mul(x, number_like(2, x)).
#pragma once

#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Rank-0 tensor on like's device that promotes only by category: f32 * 2.5 stays f32, i64 * 2.5 becomes the
/// default dtype.
Tensor number_like(const Scalar& value, const Tensor& like);

}  // namespace lamella
LAMELLA_API_END
