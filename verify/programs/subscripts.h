// Subscripts by lot, read and written, against their elements counted out one by one.
#pragma once

#include "lamella/verify/case/case.h"
#include "lamella/verify/case/finding.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Draws a list of indices of a tensor like the given one, a value and a way to write it. Empty when reading
/// gives the elements that the list names, writing changes those as an operator changes a tensor of them, in
/// a lane of vmap as well, and an index that is none is refused; else the first thing that is wrong, with the
/// list.
Finding wrong_subscript(Case& c, const Tensor& given);

}  // namespace lamella::verify
LAMELLA_API_END
