// Arguments of any kind, from bytes.
#pragma once

#include <functional>

#include "lamella/dispatch/op.h"

#include "target.h"

namespace lamella::fuzz {

using TensorSource = std::function<Tensor(Bytes&)>;

/// Mostly what parameter i of the schema asks for, else anything.
Value draw_value(Bytes& b, const Schema& schema, size_t i, const TensorSource& tensor);

}  // namespace lamella::fuzz
