// Index maps: which element of an argument each element of a result is, by the operators' docs alone.
#pragma once

#include <optional>

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Where an element of a result comes from.
struct Origin {
  int tensor = 0;              ///< which of the case's tensors, counted through its lists; -1: a number
  Dims at = {};                ///< multi-index there
  int part = -1;               ///< of a complex element: 0 its real, 1 its imaginary part
  Scalar number = int64_t{0};  ///< if tensor is -1
};

/// A case's arguments by name.
struct Asked {
  const Case& c;
  Tensors tensors;
  explicit Asked(const Case& the_case);
  int param(std::string_view name) const { return c.op.schema.find(name); }
  bool none(std::string_view name) const { return is_none(c.args[size_t(param(name))]); }
  template <class T> const T& get(std::string_view name) const {
    return std::get<T>(c.args[size_t(param(name))]);
  }
  /// The dim of that name, counted from the front of `rank` dims.
  int dim(std::string_view name, int rank) const;
  const Tensor& x() const { return tensors[0]; }
};

/// An operator that moves elements, or makes them from numbers. `sizes` of each result in order, and the
/// origin of element `at` of result k; null where elements are computed.
struct IndexMap {
  std::string_view op;
  std::vector<Dims> (*sizes)(const Asked&);
  Origin (*origin)(const Asked&, size_t k, const Dims& at);
};
const std::vector<IndexMap>& index_maps();
/// Null when there is none.
const IndexMap* index_map_of(const Op& op);

/// Sizes that operands broadcast to: of each dim, counted from the last, the one that is not 1.
Dims broadcast_by_hand(const Tensors& operands);

}  // namespace lamella::verify
LAMELLA_API_END
