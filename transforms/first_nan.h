// Looking for NaN in tensors as levels see them, and where the lanes of mapped dims lie in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella {

/// One element, as the innermost level sees the tensor.
struct Element {
  Dims index;
  std::vector<std::pair<std::string, int64_t>> lanes;  ///< by the names of levels, innermost first
  std::string tangent_of;  ///< the level of jvp whose tangent it lies in, by name; empty: in the value
  /// ", in lane 2 of vmap#1"; empty outside of lanes.
  std::string lanes_text() const;
};

/// The first NaN of t in row-major order of its memory below all levels; then of tangents. None for integers
/// and for what has no memory on the host.
std::optional<Element> first_nan(const Tensor& t);

/// How a dim of a value lies in memory.
struct DimInMemory {
  const Storage* memory = nullptr;  ///< null: none that is known
  int64_t size = 0, stride = 0;     ///< of the plain tensor below all levels
};
/// Of dim `d` of t, which levels may wrap.
DimInMemory dim_in_memory(const Tensor& t, int d);

}  // namespace lamella
LAMELLA_API_END
