// Linear maps of functions: linearize, linear_transpose, and products with the Hessian.
#pragma once

#include "lamella/transforms/grad.h"

LAMELLA_API_BEGIN
namespace lamella {

struct Linearized {
  Tensors values;
  /// Tangents of the primals to tangents of the values: t -> J t. One per primal, of its shape and dtype,
  /// undefined for zero; returns one per value. May be called any number of times, under other levels and on
  /// other threads, and outlives what made it. Errors: shape, dtype.
  Function map;
};

/// f's values and its pushforward at `primals`: f runs once, and each call of the map then costs about one
/// pushforward without f's own work. It is the transpose of f's pullback, so that it takes rules for vjp, and
/// their derivatives. Errors: undefined, dtype when a primal is neither floating nor complex.
Linearized linearize(const Function& f, const Tensors& primals);

/// The transpose of a linear function f of arguments like `inputs` (their shapes and dtypes are used, not
/// their values): cotangents of the results, undefined for zero, to cotangents of the inputs, u -> J^T u.
/// Nothing is conjugated: vjp is conj of the transpose of conj. Real inputs receive the real part. That f is
/// linear is not checked; of another one it is the transposed Jacobian at zero. The map lives as
/// Linearized::map does. Errors: as vjp; of the map: shape, dtype.
Function linear_transpose(const Function& f, const Tensors& inputs);

struct HessianProduct {
  Tensor value;       ///< f(x)
  Tensors gradients;  ///< of f in each argument
  Tensors products;   ///< H v, one per argument
};

/// The product of the Hessian of a real scalar f in all its arguments with `vs` (one per argument, undefined
/// for zero), by forward over reverse: about four times the cost of f, whatever the size. For complex
/// arguments the derivative of the gradient along vs, which is linear over the reals alone. Errors: as grad
/// and jvp.
HessianProduct hvp(const ScalarFunction& f, const Tensors& xs, const Tensors& vs);
/// v^T H by reverse over reverse, for functions of operators without a jvp: the same product, since H is
/// symmetric. `vs` are all defined.
HessianProduct vhp(const ScalarFunction& f, const Tensors& xs, const Tensors& vs);

}  // namespace lamella
LAMELLA_API_END
