// Cases about thresholds: which an operator has, words that put a case near one, and on which side it lies.
#pragma once

#include "lamella/core/thresholds.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// Positions in all_thresholds() of those that calls of this operator may cross: its kernel's; a composite
/// has those of all kernels, matrix products aside; those of every operator, as far as its arguments have
/// them.
std::vector<size_t> thresholds_of(const Op& op);
/// Whether calls of this operator may round in another order with other thresholds.
bool rounds_by_thresholds(const Op& op);

/// Whether the law draws sizes of some hundreds: its cost must not grow faster than they do.
bool draws_large(const Law& law);
/// Whether one case in 200 lies near a threshold: such laws, and those that can afford one large case and ask
/// no oracle.
bool draws_near(const Law& law);
/// Whether the law's sizes end at some dozens.
bool draws_medium(const Law& law);

/// NOTE: [sizes near thresholds] The second case of an operator under a law of large sizes has about 2,000
/// elements; one case in 200 has a size within 1 of a threshold. Where a law stops short of that
/// (DrawOptions::largest), one case in sixteen has a size of 7 to that many. A law of small cases has about
/// 2,000 elements in its eighth case if it can afford them (DrawOptions::one_large): not in the second,
/// because a short run shall have seen every pair first. If it asks no oracle, whose matrices of f128 grow
/// with the square of the size, one of its cases in 200 lies near a threshold, too; of prod and cumprod near
/// one of at most 64. Words name sizes (NOTE: [named sizes]), so that what a blob means does not follow the
/// list of thresholds.
enum class Sized : uint8_t { No, NearThreshold, Large, Medium };
/// What words of a case name: sizes of which kind, and near which threshold, by its position.
struct NamedSizes {
  Sized how = Sized::No;
  int threshold = -1;
};
constexpr uint32_t kNearThresholdEvery = 200, kMediumEvery = 16;
constexpr uint64_t kLargeOfSmall = 7;  ///< which case that is, counted from 0
/// Names sizes in `choices`, by `bits` among those that the operator has. Nothing where it draws none.
NamedSizes name_sizes(const Law& law, const Op& op, Sized how, uint64_t bits, Choices& choices);

/// Thresholds that a case is just below and just above, a bit each by their positions: a dim or a whole
/// tensor has one element less or more; other units likewise.
struct NearSides {
  uint64_t below = 0, above = 0;
};
NearSides sides_of(const Case& c);

}  // namespace lamella::verify
LAMELLA_API_END
