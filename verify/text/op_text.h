// What a row says of itself, for lists of operators and their pages.
#pragma once

#include <string>
#include <vector>

#include "lamella/dispatch/op.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// "by composition", "rule", "loop" or "shape class": how it acts on mapped arguments.
std::string batch_text(const Op& op);

/// dtypes that its samples can take.
std::vector<DType> sampled_dtypes(const Op& op);

}  // namespace lamella::verify
LAMELLA_API_END
