// Which operators work on lines along the dims they name.
#pragma once

#include <algorithm>

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// One tensor, and one argument that names the dims of its lines.
inline bool works_on_lines(const Op& op) {
  const auto is_dim = [](const Param& p) { return p.role == ParamRole::Dim; };
  const bool by_dim = op.shape == ShapeClass::Reduce || op.shape == ShapeClass::AlongDim ||
                      (op.shape == ShapeClass::Composite && op.schema.find("keepdim") >= 0);
  return by_dim && op.simple && op.tensor_params.size() == 1 &&
         std::ranges::count_if(op.schema.params, is_dim) == 1;
}

}  // namespace lamella::verify
LAMELLA_API_END
