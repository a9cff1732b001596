// How the cases of an operator under a law spread over dtypes and stacks of transforms.
#pragma once

#include <string>
#include <vector>

#include "lamella/core/dtype.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Which cases are counted together: 5 bits of dtype (kDTypeCount: no tensor), then 3 bits for each
/// transform, innermost first.
struct Stratum {
  enum Transform : uint32_t { None, Vmap, Jvp, Vjp, Grad, Any };  ///< Any: one that the law does not name
  static constexpr int kMostTransforms = 8;
  uint32_t code = kDTypeCount;

  void set_dtype(DType d) { code = (code & ~31u) | uint32_t(d); }
  void clear_transforms() { code &= 31u; }
  bool has_transforms() const { return code >> 5 != 0; }
  void add_transform(int position, Transform t) {
    if (position < kMostTransforms) code |= uint32_t(t) << (5 + 3 * position);
  }
  /// "f64", "none"
  std::string dtype() const;
  /// "vmap(jvp)"; "depth 2" where only their number is known; "none"
  std::string stack() const;
};

/// Of the case that is being checked on this thread. Cases and stacks write it as they are drawn.
Stratum& stratum_of_case();

/// Counts by stratum. A sorted vector: a pair of operator and law has a dozen of them, and snapshots copy it.
class Strata {
 public:
  struct Entry {
    Stratum stratum;
    uint64_t cases, failures;
  };
  void add(Stratum stratum, uint64_t cases, uint64_t failures);
  void merge(const Strata& other);
  const std::vector<Entry>& entries() const { return entries_; }

  /// For a pipe between processes of one program.
  std::string bytes() const;
  static Strata parse(const std::string& bytes);

 private:
  std::vector<Entry> entries_;
};

}  // namespace lamella::verify
LAMELLA_API_END
