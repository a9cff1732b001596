// Forward mode: jvp.
#pragma once

#include "lamella/transforms/vmap.h"

LAMELLA_API_BEGIN
namespace lamella {

struct JvpResult {
  Tensors values;
  Tensors tangents;  ///< one per value, of its shape and dtype
  Tensors aux = {};  ///< of jvp_has_aux
};

/// f's values and J t. An undefined tangent is zero. Errors: shape and dtype when a tangent does not match
/// its primal, dtype when an input with a tangent is neither floating nor complex.
JvpResult jvp(const Function& f, const Tensors& primals, const Tensors& tangents);
/// f returns (values, aux): aux is handed through without its tangents.
JvpResult jvp_has_aux(const AuxFunction& f, const Tensors& primals, const Tensors& tangents);

}  // namespace lamella
LAMELLA_API_END
