// Which arguments a derivative is taken in, and directions.
#pragma once

#include <string_view>
#include <vector>

#include "lamella/dispatch/given.h"
#include "lamella/dispatch/value.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Errors: undefined, and dtype when an input is neither floating nor complex.
void check_inputs(const Tensors& inputs, std::string_view what);

/// Number i of the tangents or cotangents, as `direction` says, is of the shape and dtype of `like`, and on
/// its device; `whose` says what that is. Errors: dtype, shape, device.
void check_direction(std::string_view what, std::string_view direction, size_t i, const Tensor& got,
                     const Tensor& like, std::string_view whose);

/// `ts` with zeros like those of `like` for what is undefined.
Tensors with_zeros(Tensors ts, const Tensors& like);

/// Positions of arguments: negative numbers count from the end. Error usage when one is out of range, or two
/// name the same argument.
std::vector<size_t> positions(const std::vector<int>& argnums, size_t n_inputs, std::string_view what);

/// `inputs` at these positions.
Tensors taken(const Tensors& inputs, const std::vector<size_t>& at);
/// `inputs` with `xs` at these positions.
Tensors replaced(Tensors inputs, const std::vector<size_t>& at, const Tensors& xs);

}  // namespace lamella
LAMELLA_API_END
