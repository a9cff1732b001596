// What laws count beside cases, and what drawn cases are like: a census with a floor for every feature.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {
enum class DType : uint8_t;
struct Op;
}  // namespace lamella

namespace lamella::verify {

class Case;
struct Law;

/// By words, in the order in which they are printed.
using Counts = std::map<std::string, uint64_t>;

/// Of the case that is being checked on this thread; added to its law's when it is no discard.
Counts& counts_of_case();

/// Drawn cases counted by feature: dims and their signs, ranks and sizes, special values, layouts, storage
/// that arguments share, dtypes and pairs of them, lanes and mapped dims. Nothing is checked.
class Census {
 public:
  /// Counts a case of these choices, and the lanes and dims that a law of vmap would draw behind its
  /// arguments.
  void add(Case& c, const std::vector<uint32_t>& choices);
  /// Draws `cases` of each pair, those of process `process` of `of`.
  static Census of_pairs(const std::vector<const Op*>& ops, const std::vector<const Law*>& laws,
                         uint64_t seed, uint64_t cases, int process = 0, int of = 1);
  /// The census that has to reach the floors: kUsual cases of every operator with each of `usual_laws`.
  static Census usual(uint64_t seed, int process = 0, int of = 1);
  static constexpr uint64_t kUsual = 60;
  /// A few that draw differently.
  static std::vector<const Law*> usual_laws();
  const Counts& counts() const { return counts_; }
  uint64_t of(const std::string& feature) const;
  /// Hashes of operator, law and arguments: as many as there are different cases.
  const std::set<uint64_t>& cases() const { return cases_; }

 private:
  void add_sides(const Case& c);
  void add_dims(const Case& c);
  void add_tensors(const Case& c);
  void add_pair(DType a, DType b);
  void add_lanes(Case& c);
  Counts counts_;
  std::set<uint64_t> cases_;
};

/// The least share that `what` may have among `of`.
struct FeatureFloor {
  std::string what, of;
  double share;
};
std::span<const FeatureFloor> feature_floors();
/// "dim negative: 0 of 1200, at least 20 % required": one for each floor that a census of a thousand cases or
/// more misses.
std::vector<std::string> missed_floors(const Census& census);

}  // namespace lamella::verify
LAMELLA_API_END
