// The oracle along one direction: for cases that are too large for a Jacobian.
#include <algorithm>
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

constexpr size_t kPatterns = 8;
constexpr int kAlongStep = -48;

int sign_in(size_t pattern, size_t i) {
  return pattern == 0 || ((i + 1) * (2 * pattern + 1) * 0x9E3779B97F4A7C15u >> 40) & 1 ? 1 : -1;
}

f128 greatest_part(const Reals& v) {
  f128 most = 1;
  for (const f128 x : v) most = fmaxq(most, fabsq(x));
  return most;
}

Reals shifted(const Reals& x, const Reals& direction, f128 by) {
  Reals out = x;
  for (size_t j = 0; j < direction.size(); ++j) out[j] += by * direction[j];
  return out;
}

/// x with a sign for each of its numbers, times `by`.
Reals turned(const Reals& x, size_t pattern, f128 by = 1) {
  Reals out = x;
  for (size_t j = 0; j < x.size(); ++j) out[j] *= by * sign_in(pattern, j);
  return out;
}

}  // namespace

f128 Oracle::size_along(Reals d, const Reals& u) const {
  for (f128& v : d) v = fabsq(v);
  make_normwise(d, values_);
  f128 sum = 0;
  for (size_t i = 0; i < d.size(); ++i) sum += d[i] * fabsq(u[i]);
  return sum;
}

Reals Oracle::slope(const Reals& x, const Reals& direction, f128 h) {
  Reals out = evaluate(shifted(x, direction, h));
  const Reals left = evaluate(shifted(x, direction, -h));
  for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] - left[i]) / (2 * h);
  return out;
}

f128 Oracle::steepest() {
  f128 out = 0;
  const auto take = [&out](const Reals& slopes) {
    for (const f128 v : slopes) out = fmaxq(out, fabsq(v));
  };
  if (std::max(x_.size(), y_.size()) <= kMostMoved) {
    take(jacobian().entries);
    return out;
  }
  for (size_t p = 0; p < 4; ++p) take(slope(x_, turned(Reals(x_.size(), 1), p), ldexpq(1, kAlongStep)));
  return out;
}

bool Oracle::bends(const Reals& right, const Reals& left, const Reals& far_right, const Reals& far_left,
                   f128 h) const {
  for (size_t i = 0; i < y_.size(); ++i) {
    const f128 bend = fabsq(right[i] + left[i] - 2 * y_[i]) / h;
    const f128 wide_bend = fabsq(far_right[i] + far_left[i] - 2 * y_[i]) / (2 * h);
    const f128 least = ldexpq(fabsq(y_[i]) + 1, -108) / h;
    if (!(bend <= least || bend <= 0.6 * wide_bend)) return true;  // or nothing finite
  }
  return false;
}

std::optional<Oracle::Along> Oracle::along(const Reals& t, const Reals& u) {
  if (op_.shape == ShapeClass::Linalg || op_.has(kSymmetricInput)) return std::nullopt;
  // A tie may move along as one: four patterns of signs look beside the direction.
  for (size_t p = 0; p < 4 && (op_.has(kKinks) || op_.has(kDiscontinuous)); ++p) {
    const Reals d = turned(Reals(x_.size(), 1), p);
    const f128 h = ldexpq(1, kAlongStep);
    if (bends(evaluate(shifted(x_, d, h)), evaluate(shifted(x_, d, -h)), evaluate(shifted(x_, d, 2 * h)),
              evaluate(shifted(x_, d, -2 * h)), h))
      return std::nullopt;
  }
  const f128 h = ldexpq(1, kAlongStep) / greatest_part(t);
  const Reals right = evaluate(shifted(x_, t, h)), left = evaluate(shifted(x_, t, -h));
  const Reals far_right = evaluate(shifted(x_, t, 2 * h)), far_left = evaluate(shifted(x_, t, -2 * h));
  if (bends(right, left, far_right, far_left, h)) return std::nullopt;
  Reals here(u.size());
  f128 value = 0, wide = 0;
  for (size_t i = 0; i < u.size(); ++i) {
    here[i] = (right[i] - left[i]) / (2 * h);
    value += u[i] * here[i], wide += u[i] * (far_right[i] - far_left[i]) / (4 * h);
  }
  // Partial results may be larger than the result: as large as what moves it, at least.
  f128 inside = size_along(y_, u);
  for (size_t p = 0; p < 2; ++p)
    inside = fmaxq(inside, size_along(slope(x_, turned(x_, p), h / greatest_part(x_)), u));
  const f128 size = size_along(here, u);
  return Along{value, size, 2 * fabsq(value - wide) + ldexpq(inside, -108) / h + ldexpq(size, -100)};
}

/// NOTE: [one direction] Sums of magnitudes, sum |u_i J_ij t_j| and the like, are estimated: the largest of
/// eight sums with signs is hardly ever less than a third of the root of the sum of squares, and that is no
/// less than the sum of magnitudes by the root of their number. What moves when x does is such a sum over t
/// as well: where t itself changes nothing (var along equal numbers), its parts with other signs do.
f128 Oracle::along_bound(const Reals& t, const Reals& u) {
  const f128 h = ldexpq(1, kAlongStep) / greatest_part(t);
  const Reals here = slope(x_, t, h);
  const auto apart = [&](Reals d, const Reals& from) {
    for (size_t i = 0; i < d.size(); ++i) d[i] -= from[i];
    return ldexpq(size_along(d, u), 26);
  };
  f128 terms = 0, moves = 0;
  for (size_t p = 0; p < kPatterns; ++p) {
    const Reals with_signs = turned(t, p), there = slope(x_, with_signs, h);
    terms = fmaxq(terms, size_along(there, u));
    const Reals x = shifted(x_, turned(x_, p), ldexpq(1, -26));
    moves = fmaxq(moves, apart(slope(x, t, h), here));
    if (p > 0) moves = fmaxq(moves, apart(slope(x, with_signs, h), there));
  }
  return 3 * (terms + moves) * sqrtq(f128(x_.size()));
}

/// Differences by h turn a roundoff of the values into one of 2^-113 / h of the largest partial result, which
/// is no more than sum |u_i J_ij x_j|: the sum of NOTE: [one direction]. Two patterns, of which along() takes
/// the larger, may both cancel: in -1, ..., 1 the one is the sum itself, which is nearly 0.
f128 Oracle::along_noise(const Reals& t, const Reals& u) {
  f128 inside = size_along(y_, u);
  for (size_t p = 0; p < kPatterns; ++p)
    inside =
        fmaxq(inside, size_along(slope(x_, turned(x_, p), ldexpq(1, kAlongStep) / greatest_part(x_)), u));
  return 3 * sqrtq(f128(x_.size())) * ldexpq(inside, -108) * greatest_part(t) / ldexpq(1, kAlongStep);
}

Bounds Oracle::estimated_bounds(Bounds out, f128 step) {
  Reals most(y_.size());
  for (size_t p = 0; p < kPatterns; ++p) {
    const Reals moved = turned(x_, p);
    const Reals right = evaluate(shifted(x_, moved, step)), left = evaluate(shifted(x_, moved, -step));
    for (size_t i = 0; i < most.size(); ++i) {
      const f128 d = fabsq(right[i] - left[i]) / (2 * step);
      if (!(d <= most[i])) most[i] = d;  // NaN stays
    }
  }
  const double factor = 3 * std::sqrt(double(x_.size()));
  terms_.assign(y_.size(), int(x_.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] += factor * double(most[i]);
    if (std::isnan(out[i])) out[i] = HUGE_VAL;
  }
  make_normwise(out, values_);
  return out;
}

}  // namespace lamella::verify
