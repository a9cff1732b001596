// Laws of jvp and vjp against the oracle: they equal differences of the forward, and are each other's
// transpose.
#include <cmath>
#include <quadmath.h>
#include <tuple>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/coverage.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Sizes up to 96 are named: one case in sixteen; and 2,000 once.
constexpr DrawOptions kOracleOptions{
    .dtypes = kWideTypes, .max_numel = 6, .max_exponent = 20, .largest = 96, .one_large = true};

bool differences_of_jvp(const Op& op) { return has_jvp(op) && stays_on_device(op); }
bool differences_of_vjp(const Op& op) { return has_vjp(op) && stays_on_device(op); }

/// A matrix of bounds times a direction, by intervals: from `low` to `high`.
void interval_product(const Matrix& low, const Matrix& high, const Reals& v, bool transposed, Reals& from,
                      Reals& to) {
  const size_t n = transposed ? low.columns : low.rows;
  from.assign(n, 0), to.assign(n, 0);
  for (size_t i = 0; i < low.rows; ++i)
    for (size_t j = 0; j < low.columns; ++j) {
      const f128 d = v[transposed ? i : j], a = low(i, j) * d, b = high(i, j) * d;
      from[transposed ? j : i] += fminq(a, b);
      to[transposed ? j : i] += fmaxq(a, b);
    }
}

struct Compared {
  Finding difference;
  Tensors want;
  bool overflows = false;  ///< and infinities, or NaN of complex products of them, came out
};

Finding outside_hull(const std::pair<Matrix, Matrix>& hull, const Reals& mine, const Reals& direction,
                     bool transposed) {
  Finding difference;
  Reals from, to;
  interval_product(hull.first, hull.second, direction, transposed, from, to);
  for (size_t i = 0; i < mine.size(); ++i) {
    const f128 slack = 1e-6 * (fabsq(from[i]) + fabsq(to[i]) + total(direction));
    if (mine[i] < from[i] - slack || mine[i] > to[i] + slack || mine[i] != mine[i])
      difference = format("part {} at a kink: got {}, expected between {} and {}", i, double(mine[i]),
                          double(from[i]), double(to[i]));
  }
  return difference;
}

/// Compares J t (or the transpose) with the oracle's, at a kink with the span of derivatives nearby.
Compared compare_derivative(Oracle& oracle, const Case& c, const Subject& s, const Tensors& got,
                            const Reals& direction, bool transposed) {
  const Tolerance& tol = tolerance(c.op.name);
  const Reals exact = transposed ? oracle.pullback(direction) : oracle.pushforward(direction);
  Bounds bounds = transposed ? oracle.pullback_bounds(direction) : oracle.pushforward_bounds(direction);
  const Bounds noise = transposed ? oracle.pullback_noise(direction) : oracle.pushforward_noise(direction);
  const double floor = derivative_floor(c) * total(direction), k = transposed ? tol.vjp : tol.jvp;
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = k * s.u * (bounds[i] + floor) + noise[i];
  Compared out;
  size_t at = 0, bound_at = 0;
  const bool smooth = oracle.smooth();
  if (c.op.has(kKinks)) observe_point(smooth);
  for (const Tensor& g : got) {
    out.want.push_back(unflatten(exact, at, g));
    const Tensor bound = unflatten(bounds, bound_at, g, 1);
    for (const f128 v : flatten({out.want.back()})) out.overflows |= fabsq(v) >= half_range(g.dtype());
    if (!smooth || !out.difference.empty()) continue;
    out.difference =
        outside(g, out.want.back(), plus(bound, oracle.lost_to_underflow(g.dtype(), {&direction})));
  }
  out.overflows &= !finite(got);
  if (smooth) return out;
  out.difference = outside_hull(oracle.hull(Oracle::kFewSamples), flatten(got), direction, transposed);
  if (!out.difference.empty())
    out.difference = outside_hull(oracle.hull(Oracle::kManySamples), flatten(got), direction, transposed);
  return out;
}

/// Whether a Jacobian would take too long.
bool is_long(const Subject& s, size_t most_parts) {
  return std::max(flatten(s.xs).size(), flatten(s.ys).size()) > most_parts;
}
constexpr size_t kMostParts = 48;

/// Re<a, b> over all tensors, and the sum of magnitudes of its terms.
std::pair<f128, f128> inner(const Tensors& a, const Tensors& b) {
  const Reals x = flatten(a), y = flatten(b);
  f128 sum = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i], size += fabsq(x[i] * y[i]);
  return {sum, size};
}

/// Whether Re<a, b> and Re<c, d> agree within `k` times their terms' magnitudes, by arithmetic of 64 bits:
/// its own roundings, n + 2 of 2^-64 a term, are taken off. False where that cannot be said; inner() decides
/// then.
bool surely_agree(const Tensors& a, const Tensors& b, const Tensors& c, const Tensors& d, double k) {
  using Short = long double;
  Short gap = 0, size = 0;
  size_t n = 0;
  for (const auto& [first, second, sign] : {std::tuple(&a, &b, Short(1)), std::tuple(&c, &d, Short(-1))}) {
    const std::optional<ShortSums> s = short_product(*first, *second);
    if (!s) return false;
    gap += sign * s->sum, size += s->size, n += s->terms;
  }
  return size - size == 0 && std::fabs(gap) <= (Short(k) - Short(n + 2) * 0x1p-62L) * size;
}

/// Whether a number comes near the end of the range: arguments, results, slopes, directions, or their
/// products.
bool overflows_nearby(Oracle& oracle, const Subject& s, const Reals& t, const Reals& u) {
  DType narrow = DType::F64;
  for (const Tensors* list : {&s.xs, &s.ys})
    for (const Tensor& x : *list)
      if (half_range(x.dtype()) < half_range(narrow)) narrow = x.dtype();
  f128 largest = 0;
  for (const Tensors* list : {&s.xs, &s.ys})
    for (const f128 v : flatten(*list)) largest = fmaxq(largest, fabsq(v));
  const f128 slope = fmaxq(1, oracle.steepest());
  for (const Reals* direction : {&t, &u}) largest = fmaxq(largest, slope * fmaxq(1, total(*direction)));
  return !(largest < half_range(narrow));
}

/// Whether <u, J t> may be off by `gap` for `k` roundings, beside what the oracle and underflow leave open.
/// The magnitudes that it is a sum of decide most cases.
bool may_differ(Oracle& oracle, const Case& c, const Subject& s, const Oracle::Along& a, double k, f128 gap,
                const Reals& t, const Reals& u) {
  f128 rest = a.noise + f128(k * s.u) * derivative_floor(c) * total(t) * total(u);
  for (const Tensors* list : {&s.xs, &s.ys})
    for (const Tensor& x : *list) {
      rest = fmaxq(rest, 16 * f128(smallest_number(x.dtype())) * (1 + total(u)) * (1 + total(t)));
      rest = fmaxq(rest, oracle.lost_to_underflow(x.dtype(), {&t, &u}));
    }
  return within(gap, f128(k * s.u) * a.size + rest) ||
         within(gap, f128(k * s.u) * oracle.along_bound(t, u) + oracle.along_noise(t, u) + rest);
}

/// Roundings of an inner product <u, J t> of many terms: those of the table, or of additions in a row, of
/// which there are no more than inputs (forward) or results (backward). Sums of halves are kept in f32.
double roundings_along(const Case& c, const Subject& s, double k, bool forward, bool backward) {
  const Tolerance& tol = tolerance(c.op.name);
  const auto elements = [](const Tensors& ts) {
    int64_t n = 0;
    for (const Tensor& t : ts) n += t.numel();
    return double(n);
  };
  const double n = std::max(forward ? tol.additions * elements(s.xs) : 0,
                            backward ? tol.transposed_additions * elements(s.ys) : 0);
  const double of_sums = std::min(s.u, unit_roundoff(DType::F32));
  return n > 0 ? std::max(k, (1 + n / 2) * of_sums / s.u) : k;
}

/// Prints J t, J^H u, or both, which give different inner products.
std::string along_program(const Case& c, const Subject& s, const Tensors& ts, const Tensors& us, bool forward,
                          bool backward, const std::string& found) {
  std::string out = cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("u", us);
  if (forward) out += "  const Tensors jt = " + jvp_text(c, s) + ".tangents;\n";
  if (backward)
    out += "  const Tensors ju = " + vjp_text(c, s) + ".pullback(" + cpp_names("u", us.size()) + ");\n";
  out += "  // " + found + "\n";
  if (forward) out += "  for (const Tensor& y : jt) std::cout << \"J t   \" << str(y) << '\\n';\n";
  if (backward) out += "  for (const Tensor& y : ju) std::cout << \"J^H u \" << str(y) << '\\n';\n";
  return out;
}

/// <u, J t>, of which one factor is the derivative under test, against differences along t.
Verdict equals_along(Case& c, const Subject& s, const Tensors& ts, const Tensors& us, const Tensors& got,
                     bool forward) {
  Oracle oracle(c, s.slots);
  const Reals t = flatten(ts), u = flatten(us);
  const std::optional<Oracle::Along> want = oracle.along(t, u);
  if (!want) return Verdict::discard();
  if (!finite(got) && overflows_nearby(oracle, s, t, u)) return Verdict::discard();
  const f128 mine = forward ? inner(us, got).first : inner(got, ts).first;
  const Tolerance& tol = tolerance(c.op.name);
  const double k = roundings_along(c, s, forward ? tol.jvp : tol.vjp, forward, !forward);
  if (mine == want->value) return Verdict::pass(1);
  if (may_differ(oracle, c, s, *want, k, fabsq(mine - want->value), t, u)) return Verdict::pass(1);
  const std::string found =
      format("<u, J t> = {}, {} by differences along t", double(mine), double(want->value));
  return Verdict::fail({number_kind(mine, want->value), found},
                       along_program(c, s, ts, us, forward, !forward, found), 1);
}

Verdict jvp_equals_differences(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs);
  const Tensors got = jvp(s.f, s.xs, ts).tangents;
  if (is_long(s, kMostParts)) return equals_along(c, s, ts, directions(c, s.ys), got, true);
  Oracle oracle(c, s.slots);
  const Compared r = compare_derivative(oracle, c, s, got, flatten(ts), false);
  if (r.difference.empty()) return Verdict::pass(1);
  if (r.overflows) return Verdict::discard();
  return Verdict::fail(r.difference, jvp_program(c, s, ts, narrowed(r.want, got)), 1);
}

Verdict vjp_equals_differences(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors us = directions(c, s.ys);
  const Tensors got = vjp(s.f, s.xs).pullback(us);
  if (is_long(s, kMostParts)) return equals_along(c, s, directions(c, s.xs), us, got, false);
  Oracle oracle(c, s.slots);
  const Compared r = compare_derivative(oracle, c, s, got, flatten(us), true);
  if (r.difference.empty()) return Verdict::pass(1);
  if (r.overflows) return Verdict::discard();
  return Verdict::fail(r.difference, vjp_program(c, s, us, narrowed(r.want, got)), 1);
}

Verdict vjp_is_adjoint(Case& c) {
  Subject s;
  if (!choose(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs);
  const JvpResult pushed = jvp(s.f, s.xs, ts);  // gives the values, too; those of the plain call decide
  if (!give_values(s, pushed.values) && !give_values(s, s.f(s.xs))) return Verdict::discard();
  const Tensors us = directions(c, s.ys), &forward = pushed.tangents, backward = vjp(s.f, s.xs).pullback(us);
  const Tolerance& tol = tolerance(c.op.name);
  if (surely_agree(us, forward, backward, ts, tol.derivative * s.u)) return Verdict::pass(1);
  const auto [left, left_size] = inner(us, forward);
  const auto [right, right_size] = inner(backward, ts);
  const f128 gap = fabsq(left - right);
  if (left == right || within(gap, f128(tol.derivative * s.u) * (left_size + right_size)))
    return Verdict::pass(1);
  Oracle oracle(c, s.slots);  // terms cancelled: how far may they be off?
  const Reals t = flatten(ts), u = flatten(us);
  const std::string found = format("<u, J t> = {}, <J^H u, t> = {}", double(left), double(right));
  if (!(gap - gap == 0)) {
    const bool inside = overflows_inside(oracle, {}, c.op, DType::F64);  // see NOTE: [wide products]
    if (inside || overflows_nearby(oracle, s, t, u)) return Verdict::discard();
    const std::string infinite = found + ", and nothing overflows";
    return Verdict::fail({number_kind(left, right), infinite},
                         along_program(c, s, ts, us, true, true, infinite), 1);
  }
  if (is_long(s, 2 * kMostParts)) {
    const std::optional<Oracle::Along> a = oracle.along(t, u);
    if (!a) return Verdict::discard();
    const double k = roundings_along(c, s, tol.derivative, true, true);
    if (may_differ(oracle, c, s, *a, k, gap, t, u)) return Verdict::pass(1);
    return Verdict::fail(found, along_program(c, s, ts, us, true, true, found), 1);
  }
  const Bounds forward_bounds = oracle.pushforward_bounds(t), backward_bounds = oracle.pullback_bounds(u);
  f128 bound = derivative_floor(c) * total(t) * total(u);
  double tiny = 0;  // what an intermediate result may lose by underflow
  for (const Tensors* list : {&s.xs, &s.ys})
    for (const Tensor& x : *list) tiny = std::max(tiny, smallest_number(x.dtype()));
  if (gap <= 16 * f128(tiny) * (1 + total(u)) * (1 + total(t))) return Verdict::pass(1);
  for (size_t i = 0; i < u.size(); ++i) bound += fabsq(u[i]) * forward_bounds[i];
  for (size_t j = 0; j < t.size(); ++j) bound += fabsq(t[j]) * backward_bounds[j];
  if (gap <= f128(tol.derivative * s.u) * bound) return Verdict::pass(1);
  return Verdict::fail(found, along_program(c, s, ts, us, true, true, found), 1);
}

}  // namespace

void add_derivative_laws(std::vector<Law>& laws) {
  laws.push_back(
      {21, "jvp_equals_differences", "derivative",
       "jvp equals central differences of the f128 forward, within k units of roundoff times its condition.",
       kOracleOptions, true, differences_of_jvp, jvp_equals_differences});
  laws.push_back({22, "vjp_equals_differences", "derivative",
                  "vjp equals the transposed central differences of the f128 forward, within the same bound.",
                  kOracleOptions, true, differences_of_vjp, vjp_equals_differences});
  laws.push_back({23,
                  "vjp_is_adjoint",
                  "derivative",
                  "Re<u, J t> = Re<J^H u, t> for all t and u, at kinks too.",
                  {.dtypes = kInexact, .max_numel = 16, .max_exponent = 20, .largest = 96, .one_large = true},
                  false,
                  both_ways,
                  vjp_is_adjoint});
}

}  // namespace lamella::verify
