// What the cases of a run were like: counted for each operator, and checked against what every operator
// needs.
#pragma once

#include <array>
#include <map>

#include "lamella/verify/case/case.h"
#include "lamella/verify/case/near_threshold.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// A property of one case. Smooth and Kink are known only where a law looks at the point with the oracle.
enum class Feature : uint8_t {
  RankZero,
  Empty,
  Broadcast,
  Strided,     ///< not contiguous
  Offset,      ///< does not begin where its storage does
  Repeated,    ///< a stride of 0
  Shared,      ///< two arguments in one storage
  Ties,        ///< equal elements, in one tensor or in two
  LongSize,    ///< a size of 7 or more: about the widths of vectors
  MixedTypes,  ///< tensors of different dtypes, indices and conditions aside
  NonFinite,
  Smooth,
  Kink,
  kCount
};
inline constexpr size_t kFeatures = size_t(Feature::kCount);
std::string_view name(Feature f);

/// One case. Subsets of up to three tensors, as bits; 0 when the law maps (traces) nothing.
struct Observation {
  uint32_t features = 0;
  uint8_t mapped = 0, mapped_of = 0, traced = 0, traced_of = 0;
  bool near = false;  ///< somebody asks on which sides of thresholds it lies
  NearSides sides;
  void note(Feature f) { features |= 1u << int(f); }
};
/// The case that is being counted on this thread; none when nobody counts.
Observation*& observed();
/// Whether one-sided derivatives agree at the point of the case.
void observe_point(bool smooth);
/// Whether a parameter has a dtype of its own, which does not promote with those of others.
bool is_condition_or_index(const Op& op, int param);
/// What can be seen in the arguments.
void observe_arguments(const Case& c);
void observe_mapped(const std::vector<bool>& mapped);
void observe_traced(const std::vector<Case::Slot>& of, const std::vector<Case::Slot>& traced);

/// Counts of one operator.
struct Coverage {
  static constexpr size_t kDepths = 6, kThresholds = 56;
  using Subsets = std::array<std::array<uint64_t, 8>, 4>;  ///< by number of tensors, by bits
  uint64_t cases = 0, deep_cases = 0;                      ///< deep: under a transform at least
  std::array<uint64_t, kFeatures> features{};
  std::array<uint64_t, kDepths> depths{};
  Subsets mapped{}, traced{};
  /// Of each threshold: cases that were drawn to lie near it, and those that lay just below and just above
  /// it.
  struct Near {
    uint64_t aimed = 0;
    std::array<uint64_t, 2> sides{};
  };
  std::array<Near, kThresholds> near{};

  void add(const Observation& o);
  void add_depth(int depth);
  void add_sides(const Observation& o, int aimed_at);
  void merge(const Coverage& other);
  std::string text() const;  ///< numbers, for the wire
  static Coverage parse(const std::string& text);
};

/// A share of an operator's cases that is too small.
struct Shortfall {
  std::string what;  ///< "broadcast", "maps 2 of 3: 101"
  uint64_t hits, cases;
  double required;
  uint64_t due = 0;  ///< of thresholds: cases that should have been aimed there, in parts of kPartsOfACase
  /// What the share is of: a threshold that nobody aims at falls short.
  uint64_t of() const;
};
/// Every number up to 22 divides it: an operator's cases are shared out among its thresholds without a
/// remainder, so that the sums of shards are those of the whole.
constexpr uint64_t kPartsOfACase = 232'792'560;
/// Whether even the upper end of the interval that 1 in 10^9 runs leave is below the share; or there is no
/// hit at all where the share would give ten. Fewer cases prove nothing, so short runs fall short of nothing.
bool falls_short(const Shortfall& s);
/// Requirements that `coverage` fails.
std::vector<Shortfall> shortfalls(const Op& op, const Coverage& coverage, int depth);
/// How many cases of these operators were to lie near each threshold, and how many lay just below and just
/// above it, whatever they aimed at: at least as many as one in twenty of those, on each side. Where nobody
/// aimed at it, as many as are drawn near each other threshold of those operators. Only operators count whose
/// own kernels the list names.
std::vector<Shortfall> threshold_requirements(const std::map<std::string, Coverage>& by_op,
                                              const std::vector<const Op*>& ops);
/// Every share an operator needs, met or not.
std::vector<Shortfall> requirements(const Op& op, const Coverage& coverage, int depth);

}  // namespace lamella::verify
LAMELLA_API_END
