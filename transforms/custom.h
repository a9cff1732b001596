// Functions with derivative rules of their users: custom_vjp, custom_jvp.
#pragma once

#include "lamella/transforms/grad.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Gives cotangents of the arguments, one each (undefined: zero), of its shape and dtype, from the residuals
/// and the cotangents of the values (zeros where there are none).
using BackwardRule = std::function<Tensors(const Tensors& residuals, const Tensors& cotangents)>;
/// Gives tangents of the values, one each (undefined: zero), of its shape and dtype, from the arguments, the
/// values and the tangents of the arguments (zeros where there are none). Linear in the tangents.
using ForwardRule =
    std::function<Tensors(const Tensors& primals, const Tensors& values, const Tensors& tangents)>;

/// NOTE: [custom rules] A function f whose derivative is what its rule says, at every level and in base
/// autograd, in reverse and forward mode and at any order: the direction for which there is no rule comes
/// from transposing the other, which is linear. Rules are ordinary code: they may capture values of any
/// level, and are differentiated where derivatives of derivatives are asked for. What f itself captures is a
/// constant to vmap; derivatives with respect to it are refused (error level), since no rule gives them: make
/// it an argument.

/// `forward` gives f's values and residuals: whatever `backward` needs, each an argument, a value, or
/// computed from the arguments. It must give as many each time. Where all residuals are arguments or values,
/// tapes keep those alone, and others may be written later; one that is computed keeps all arguments, which
/// its derivative needs. Neither may write to what it is given: others show that memory. Errors: shape or
/// dtype when `backward` gives other cotangents than described; value when `forward` writes to an argument,
/// or `backward` to a residual or cotangent; undefined for undefined tensors; usage for an empty `forward`,
/// and for an empty `backward` where it would be called.
Function custom_vjp(AuxFunction forward, BackwardRule backward);
/// Likewise f with a rule for forward mode, which may not write to what it is given either.
Function custom_jvp(Function f, ForwardRule rule);

}  // namespace lamella
LAMELLA_API_END
