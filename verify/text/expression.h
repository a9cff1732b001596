// A small language of expressions with transforms: for `lamella explain`, tests and repros. Grammar:
// docs/expressions.md.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Values of variables, in the order they were declared: that order is the order of arguments of transforms.
using Bindings = std::vector<std::pair<std::string, Tensor>>;

/// Evaluates e.g. "vmap(grad(sum(sin(x) * y)), in=(0, None))". Errors: schema with the position for what is
/// no expression, usage for unknown names; and whatever the operators raise.
Tensor evaluate(std::string_view text, const Bindings& variables);

/// "x=8x3 y=3 s=": small f64 tensors with distinct values, one per name. Errors: usage.
Bindings parse_shapes(const std::vector<std::string>& shapes, DType dtype);

}  // namespace lamella::verify
LAMELLA_API_END
