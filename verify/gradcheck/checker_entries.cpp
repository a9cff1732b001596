// Judging what a Checker found: entries and their conditions, rows of the pullback, sums of entries.
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/gradcheck/checker.h"

namespace lamella::verify {

namespace {
constexpr size_t kManyShakes = 32;
}  // namespace

const Reals& Checker::column(size_t j) {
  const auto [it, fresh] = columns_.try_emplace(j);
  if (fresh) it->second = push(unit(variables(), j));
  return it->second;
}
const Slope& Checker::slope_of(size_t j) {
  const auto [it, fresh] = slopes_.try_emplace(j);
  if (fresh) it->second = slope(*oracle_, j);
  return it->second;
}
const Reals& Checker::condition(size_t j, size_t shakes) {
  Reals& known = conditions_[{j, shakes}];
  if (known.empty()) known = conditions(*oracle_, unit(variables(), j), slope_of(j).step, shakes);
  return known;
}

/// NOTE: [rounding of an entry] d result i / d variable j may be off by roundings of the coarsest of: that
/// result's dtype, that variable's, and the results of all operators in the function. So a bf16 input loosens
/// entries of f64 only where the function computes in bf16; its own column is as coarse as it is.
Rounding Checker::rounding(size_t i, size_t j) const {
  return mixed_ ? coarser(inside_, coarser(of_result_[i], of_variable_[j])) : coarsest_;
}

/// Where the condition could not be measured it is that of the slope alone.
f128 Checker::finite_condition(size_t i, size_t j, size_t shakes) {
  const f128 c = condition(j, shakes)[i], least = fabsq(slope_of(j).value[i]);
  return finite_part(c) ? c : finite_part(least) ? least : 0;
}

/// Whether `gap` exceeds `rest` + `rounding` x the condition of the entry; four random perturbations say no
/// quickly, and now and then all are small by chance: only many say yes. The bound goes to `bound`.
bool Checker::exceeds(f128 gap, size_t i, size_t j, f128 rounding, f128 rest, f128& condition_of,
                      double& bound) {
  for (const size_t shakes : {kShakes, kManyShakes}) {
    condition_of = finite_condition(i, j, shakes);
    bound = double(rounding * condition_of + rest);
    if (std::isfinite(bound) && gap <= f128(bound)) return false;
  }
  return true;
}

GradcheckEntry Checker::entry(const std::string& check, size_t i, size_t j, f128 got, f128 expected) const {
  GradcheckEntry e;
  e.check = label_ + check;
  if (j < n_) e.input = parts_of(inputs_)[j];
  e.result = parts_of(ys_)[i];
  e.got = double(got), e.expected = double(expected);
  return e;
}

void Checker::wrong(GradcheckEntry e) { add_finding(report_, options_, std::move(e)); }

std::string Checker::bound_text(double u, double condition, f128 error, f128 step) const {
  return format("{} roundings of 2^{} x condition {} + error of the difference {} (last step 2^{})", units_,
                std::ilogb(u), condition, double(error), std::ilogb(double(step)));
}

void Checker::check_column(size_t j) {
  const Reals got = column(j);
  const Slope& s = slope_of(j);
  for (size_t i = 0; i < got.size(); ++i) judge(i, j, got[i], s);
}

void Checker::judge(size_t i, size_t j, f128 got, const Slope& s) {
  const Kink kink = s.kink[i];
  const Rounding r = rounding(i, j);
  double bound = 0;
  std::string bound_from;
  if (kink != Kink::Smooth) {
    note_kink(i, j, got, s);
    if (kink == Kink::NotDifferentiable) return;
    const f128 slack = units_ * r.u * (fabsq(s.low[i]) + fabsq(s.high[i]));
    if (got >= s.low[i] - slack && got <= s.high[i] + slack) return;
    bound = double((s.high[i] - s.low[i]) / 2 + slack);
    bound_from = format("slopes on both sides lie within [{}, {}]", double(s.low[i]), double(s.high[i]));
  } else {
    const f128 gap = fabsq(got - s.value[i]), allowed = units_ * r.u;
    if (within(gap, allowed * fabsq(s.value[i]) + s.error[i] + r.tiny)) return;
    f128 c;
    if (!exceeds(gap, i, j, allowed, s.error[i] + r.tiny, c, bound)) return;
    bound_from = bound_text(r.u, double(c), s.error[i], s.step);
  }
  undecided_.push_back(entry(forward_ ? "jvp" : "vjp", i, j, got, s.value[i]));
  undecided_.back().kink = kink, undecided_.back().bound = bound, undecided_.back().bound_from = bound_from;
  undecided_at_.emplace_back(i, j);
}

void Checker::note_kink(size_t i, size_t j, f128 got, const Slope& s) {
  if (s.kink[i] == Kink::NotDifferentiable) odd_rows_[i] = odd_columns_[j] = true;
  if (report_.not_smooth++ >= options_.most_findings) return;
  report_.kinks.push_back(entry(forward_ ? "jvp" : "vjp", i, j, got, s.value[i]));
  report_.kinks.back().kink = s.kink[i];
  report_.kinks.back().bound_from =
      format("slopes on both sides lie within [{}, {}]", double(s.low[i]), double(s.high[i]));
}

/// Next to an entry that is not differentiable, 0 times infinity shows.
bool Checker::excused(size_t i, size_t j, const GradcheckEntry& e) const {
  return (!std::isfinite(e.got) || !std::isfinite(e.expected)) && (odd_rows_[i] || odd_columns_[j]);
}

/// A rule may be right for each unit vector and yet not linear.
void Checker::check_linear() {
  for (size_t i = 0; i < values(); ++i) {
    f128 sum = 0, bound = 0;
    for (size_t j = 0; j < variables(); ++j) {
      const f128 term = column(j)[i] * t_[j];
      sum += term, bound += 2 * units_ * rounding(i, j).u * fabsq(term);
    }
    const f128 gap = fabsq(jt_[i] - sum);
    if (within(gap, bound) || !finite_part(sum)) continue;
    for (size_t j = 0; j < variables(); ++j)
      bound += 2 * units_ * rounding(i, j).u * fabsq(finite_condition(i, j, kManyShakes) * t_[j]);
    if (within(gap, bound)) continue;
    GradcheckEntry e = entry(forward_ ? "jvp along a random direction" : "vjp", i, variables(), jt_[i], sum);
    e.bound = double(bound);
    e.bound_from = "roundings of the sum over unit directions: jvp must be linear in its tangent";
    wrong(std::move(e));
  }
}

/// A random cotangent in which each row weighs about one: |u_i| is a power of two near 1 / |J t|_i.
Reals Checker::cotangent(const Reals& j_t) const {
  Reals u = direction(ys_, {}, 2);
  size_t i = 0;
  for (const Tensor& y : ys_) {
    const int most = std::min(1022, std::ilogb(largest_number(y.dtype())) - 1);  // the least normal number
    for (const size_t end = i + flatten({y}).size(); i < end; ++i)
      if (const double size = double(j_t[i]); size != 0 && std::isfinite(size))
        u[i] = ldexpq(u[i], std::clamp(-std::ilogb(size), -most, most));
  }
  return u;
}

/// Re<u, J t> = Re<J^H u, t> but for roundings of the terms, times the condition of J t as far as it makes
/// them 2^6 times larger: beyond that rows are compared, so that none hides behind an ill-conditioned one.
bool Checker::adjoint_holds(const Reals& t, const Reals& j_t) const {
  const Reals u = cotangent(j_t), pulled = pull(u);
  using Short = long double;  // f128 is emulated, at 30 to 100 ns an operation
  Short left = 0, right = 0, size = 0;
  const auto add = [&](Short a, Short b, Short& sum) { sum += a * b, size += std::fabs(a * b); };
  for (size_t i = 0; i < u.size(); ++i) add(Short(u[i]), Short(j_t[i]), left);
  for (size_t j = 0; j < t.size(); ++j) add(Short(pulled[j]), Short(t[j]), right);
  const Short gap = std::fabs(left - right), rounding = units_ * coarsest_.u;
  if (!std::isfinite(size) || gap <= rounding * size) return std::isfinite(size);
  if (!(gap <= 64 * rounding * size)) return false;
  const Reals condition = conditions(*oracle_, t, ldexpq(1, -38), kShakes);
  for (size_t i = 0; i < u.size(); ++i) size += std::fabs(Short(u[i] * condition[i]));
  return std::isfinite(size) && gap <= rounding * size;
}

void Checker::compare_rows(const std::string& check, size_t i, const Reals& row) {
  LAMELLA_CHECK(row.size() == n_, Shape, "{}: got gradients of {} parts, expected {}", check, row.size(), n_);
  for (size_t j = 0; j < row.size(); ++j) {
    const f128 want = column(j)[i], gap = fabsq(row[j] - want), allowed = 2 * units_ * rounding(i, j).u;
    if (within(gap, allowed * fabsq(want) + rounding(i, j).tiny)) continue;
    if (in_base_ && is_known(i, j)) continue;
    const Slope& s = slope_of(j);
    if (s.kink[i] == Kink::NotDifferentiable) odd_rows_[i] = odd_columns_[j] = true;
    if (odd_rows_[i] && odd_columns_[j] && s.kink[i] == Kink::NotDifferentiable) continue;
    f128 c;
    double bound;
    if (!exceeds(gap, i, j, allowed, rounding(i, j).tiny, c, bound)) continue;
    GradcheckEntry e = entry(check, i, j, row[j], want);
    e.kink = s.kink[i];
    e.bound = bound;
    e.bound_from = format("2 x {} roundings of 2^{} x condition {}; expected is the jvp's entry", units_,
                          std::ilogb(rounding(i, j).u), double(c));
    undecided_.push_back(std::move(e));
    undecided_at_.emplace_back(i, j);
  }
}

/// Whether two random directions, of the variables' magnitudes and all of order one, see nothing.
void Checker::check_pullback() {
  if (!options_.every_entry && !mixed_ && all_finite(jt_)) {
    const Reals t = direction(xs_, {}, 5);
    if (adjoint_holds(t, push(t)) && (alike(0, variables()) || adjoint_holds(t_, jt_))) return;
  }
  const size_t before = undecided_.size();
  for (size_t i = 0; i < values(); ++i)
    compare_rows(in_base_ ? "backward" : "vjp", i, pull(unit(values(), i)));
  const bool linear = !in_base_ || report_.wrong == 0;  // what is not linear at the levels is not here
  if (undecided_.size() == before && linear && all_finite(jt_)) check_pullback_linear();
}

/// Whether entry (result i, variable j) was found wrong; without i, some entry of the variable.
bool Checker::is_known(std::optional<size_t> i, size_t j) const {
  return std::ranges::any_of(undecided_at_,
                             [&](const auto& at) { return at.second == j && (!i || at.first == *i); });
}

/// As the pullback, with the function run on leaves that require grad. The rules are those of the levels:
/// entries that those get wrong are left out.
void Checker::check_backward() {
  if (std::ranges::any_of(xs_, [](const Tensor& x) { return !x.impl()->storage; })) return;
  in_base_ = true;
  check_pullback();
  in_base_ = false;
}

void Checker::check_pullback_linear() {
  const Reals u = cotangent(jt_), pulled = pull(u);
  for (size_t j = 0; j < variables(); ++j) {
    if (in_base_ && is_known({}, j)) continue;
    f128 sum = 0, bound = 0;
    for (size_t i = 0; i < values(); ++i) {
      const f128 term = u[i] * column(j)[i];
      sum += term, bound += 4 * units_ * rounding(i, j).u * fabsq(term);
    }
    if (fabsq(pulled[j] - sum) <= bound || !finite_part(sum)) continue;
    for (size_t i = 0; i < values(); ++i)
      bound += 4 * units_ * rounding(i, j).u * fabsq(u[i] * finite_condition(i, j, kManyShakes));
    if (fabsq(pulled[j] - sum) <= bound) continue;
    GradcheckEntry e = entry(in_base_ ? "backward of a random cotangent" : "vjp of a random cotangent", 0, j,
                             pulled[j], sum);
    e.result = {};
    e.bound = double(bound);
    e.bound_from = "roundings of the sum over unit cotangents: a pullback must be linear";
    wrong(std::move(e));
  }
}

}  // namespace lamella::verify
