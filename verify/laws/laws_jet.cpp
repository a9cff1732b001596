// The law of higher derivatives: nested jvps are the derivatives along a line, by differences in f128.
#include <algorithm>
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

constexpr int kReach = 6, kNodes = 2 * kReach + 1, kMostOrder = 4, kStepExponent = -9;

/// weights[k][j]: of f(j - kReach) in the k-th derivative at 0, exact for polynomials of degree 12
/// (Fornberg's recurrence).
struct Stencil {
  f128 weights[kMostOrder + 1][kNodes] = {};
  Stencil() {
    f128 product = 1;
    weights[0][0] = 1;
    for (int i = 1; i < kNodes; ++i) {
      f128 next = 1;
      for (int j = 0; j < i; ++j) {
        const f128 gap = i - j, at = i - kReach, before = i - 1 - kReach;
        next *= gap;
        for (int k = std::min(i, kMostOrder); j == i - 1 && k >= 0; --k)
          weights[k][i] = product / next * ((k ? k * weights[k - 1][i - 1] : 0) - before * weights[k][i - 1]);
        for (int k = std::min(i, kMostOrder); k >= 0; --k)
          weights[k][j] = (at * weights[k][j] - (k ? k * weights[k - 1][j] : 0)) / gap;
      }
      product = next;
    }
  }
};

/// The k-th derivative of g at x along v, of every value of g; `roundoff`: of its f128 arithmetic.
Reals along(const RealFunction& g, const Reals& x, const Reals& v, int k, int exponent,
            Reals* roundoff = nullptr) {
  static const Stencil stencil;
  Reals out(g.values().size());
  if (roundoff) roundoff->assign(out.size(), 0);
  for (int j = 0; j < kNodes; ++j) {
    Reals at = x;
    for (size_t i = 0; i < at.size(); ++i) at[i] += ldexpq(f128(j - kReach), exponent) * v[i];
    const Reals y = g(at);
    for (size_t i = 0; i < out.size(); ++i) {
      const f128 term = ldexpq(stencil.weights[k][j] * y[i], -k * exponent);
      out[i] += term;
      if (roundoff) (*roundoff)[i] += ldexpq(fabsq(term), -109);
    }
  }
  return out;
}

uint64_t pattern_bit(size_t pattern, size_t i) {
  return ((i + 1) * (2 * pattern + 3) * 0x9E3779B97F4A7C15u >> 41) & 1;
}

/// Terms v_i v_j ... of a derivative may cancel in their sum, and their roundings do not: the largest sum
/// when some v_i change sign or are left out, and how far the derivative moves with x.
Reals magnitudes(const RealFunction& g, const Reals& v, int k, const Reals& value) {
  Reals out(value.size()), moves(value.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = fabsq(value[i]);
  const auto raise = [](Reals& most, const Reals& by) {
    for (size_t i = 0; i < most.size(); ++i) most[i] = fmaxq(most[i], fabsq(by[i]));
  };
  for (size_t p = 0; p < 6; ++p) {
    Reals w = v;
    for (size_t i = 0; i < w.size(); ++i)
      if (pattern_bit(p, i)) w[i] *= p % 2 ? 0 : -1;
    raise(out, along(g, g.point(), w, k, kStepExponent));
  }
  for (size_t p = 0; p < 2; ++p) {
    Reals x = g.point();
    for (size_t i = 0; i < x.size(); ++i) x[i] += ldexpq(x[i], -20) * (pattern_bit(p + 7, i) ? 1 : -1);
    Reals moved = along(g, x, v, k, kStepExponent);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] = ldexpq(moved[i] - value[i], 20);
    raise(moves, moved);
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = 2 * out[i] + moves[i] * sqrtq(f128(v.size()));
  return out;
}

/// What an order more may cost: the ratio of the second to the first.
double roundings(const Tolerance& tol, int k) {
  return tol.derivative * std::pow(tol.second / tol.derivative, k - 1);
}

std::string jet_program(const Case& c, const Subject& s, const Tensors& vs, const Tensors& want, int k) {
  std::string out = cpp_declarations(c.args) + cpp_tensors("v", vs) + cpp_tensors("w", want) +
                    "  const Tensors vs = " + cpp_names("v", vs.size()) +
                    ";\n  const Function f0 = " + cpp_function(c, s.slots, true) + ";\n";
  for (int i = 0; i < k; ++i)
    out += format("  const Function f{} = [&](const Tensors& x) { return jvp(f{}, x, vs).tangents; };\n",
                  i + 1, i);
  return out + format("  const Tensors got = f{}(", k) + cpp_list(cpp_names(c, s.slots)) +
         "), want = " + cpp_names("w", want.size()) +
         ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
         "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
}

/// `vs` among all inexact arguments; those that are not traced do not move.
Reals directions_of_all(const Case& c, const Subject& s, const Tensors& vs) {
  Reals out;
  for (const Case::Slot& slot : c.inexact()) {
    const Reals zeros(flatten({c.at(slot)}).size(), 0);
    const auto traced = std::ranges::find_if(
        s.slots, [&](const Case::Slot& t) { return t.param == slot.param && t.element == slot.element; });
    const Reals more = traced == s.slots.end() ? zeros : flatten({vs[size_t(traced - s.slots.begin())]});
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Verdict jets_agree(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const int k = 2 + int(c.draw.below(kMostOrder - 1));
  const Tensors vs = directions(c, s.xs);
  if (flatten(s.xs).size() > 8) return Verdict::discard();
  Function nested = s.f;
  for (int i = 0; i < k; ++i)
    nested = [inner = nested, &vs](const Tensors& xs) { return jvp(inner, xs, vs).tangents; };
  const Tensors got = nested(s.xs);
  if (got.size() != s.ys.size())
    return Verdict::fail(other_number(got, s.ys), jet_program(c, s, vs, s.ys, k), k);
  const RealFunction g(c.smooth_function(c.inexact()), c.values(c.inexact()), OracleKind::Reference);
  const Reals v = directions_of_all(c, s, vs);
  Reals roundoff;
  const Reals exact = along(g, g.point(), v, k, kStepExponent),
              finer = along(g, g.point(), v, k, kStepExponent - 1, &roundoff),
              size = magnitudes(g, v, k, exact);
  const Tolerance& tol = tolerance(c.op.name);
  const double unit = roundings(tol, k) * s.u, larger = std::pow(over_results(tol, s.ys), k - 1),
               floor = tol.derivative_floor * std::pow(total(v), k) * larger;
  Bounds bounds(exact.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double noise = double(2 * fabsq(exact[i] - finer[i])), bound = unit * (double(size[i]) + floor);
    const double most = bound + double(4 * roundoff[i]);
    if (!(noise <= most)) return Verdict::discard();  // a kink within reach, or an edge
    bounds[i] = most + noise;
  }
  if (c.op.shape == ShapeClass::Linalg && !bounds.empty())
    bounds.assign(bounds.size(), *std::max_element(bounds.begin(), bounds.end()));
  size_t at = 0, bound_at = 0;
  Tensors want;
  Finding wrong;
  for (const Tensor& y : got) {
    if (const Tensor& value = s.ys[want.size()]; wrong.empty() && y.dtype() != value.dtype())
      wrong = {type_kind(y, value), format("got {} of a result that is {}", y, value)};
    want.push_back(unflatten(finer, at, y));
    if (!finite({narrow(want.back(), y.dtype())})) return Verdict::discard();
    const Finding d = outside(y, want.back(), unflatten(bounds, bound_at, y, 1));
    if (wrong.empty()) wrong = d;
  }
  if (wrong.empty()) return Verdict::pass(k);
  return Verdict::fail(format("the derivative of order {}: ", k) + wrong,
                       jet_program(c, s, vs, narrowed(want, got), k), k);
}

bool oracle_jvp(const Op& op) { return has_jvp(op) && stays_on_device(op); }

}  // namespace

void add_jet_laws(std::vector<Law>& laws) {
  laws.push_back({27,
                  "jets_agree",
                  "derivative",
                  "jvp nested two to four times is the derivative along the line, by differences in f128, in "
                  "the dtypes of the results.",
                  {.dtypes = kWideTypes, .tame = true, .max_numel = 4},
                  true,
                  oracle_jvp,
                  jets_agree});
}

}  // namespace lamella::verify
