// What core and the view operators say of strided memory, decided a second time by listing bytes and
// elements.
#pragma once

#include <optional>
#include <vector>

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// A view of some storage, as numbers: the offset and the strides count elements of `dtype`.
struct Strided {
  Dims sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::F64;
};
Strided strided(const Tensor& t);

/// All multi-indices of `sizes`, the last dim fastest; one for no dims.
std::vector<Dims> listed_indices(const Dims& sizes);
/// The byte at which each element begins, counted from the storage's start, in row-major order.
std::vector<int64_t> listed_places(const Strided& v);
/// Whether elements follow each other in row-major order without gaps.
bool listed_contiguous(const Strided& v);
/// Whether any byte belongs to elements of both.
bool listed_meet(const Strided& a, const Strided& b);
/// Whether two elements have a byte in common.
bool listed_shares_itself(const Strided& v);
/// Whether the elements, taken with the dim of the largest stride slowest, lie in memory in that order, none
/// on another: what overlaps_itself() can tell from strides.
bool listed_nested(const Strided& v);
/// Whether the elements of a lie between those of b as overlap() can tell: one behind the other, or, for a
/// period among the steps or their greatest common divisor, each within its part of the period.
bool listed_between(const Strided& a, const Strided& b);
/// Whether all of it lies within a storage of so many bytes; a view without elements may begin at its end.
bool listed_within(const Strided& v, int64_t bytes);

/// `wanted` with its -1 replaced by the one size that fits `count` elements; none when there is none or more.
std::optional<Dims> listed_sizes(const Dims& wanted, int64_t count);
/// x's elements in row-major order under other sizes of as many elements, if some strides do that.
std::optional<Strided> listed_view(const Strided& x, const Dims& sizes);

}  // namespace lamella::verify
LAMELLA_API_END
