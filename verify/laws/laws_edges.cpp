// Laws of derivatives at the edges: what does not depend on an input has no derivative in it, however large
// directions are; where numbers are 0, 1, large or infinite, formulas say what derivatives are; and where a
// result is a number, they are numbers.

#include <algorithm>
#include <cmath>
#include <limits>
#include <quadmath.h>

#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

constexpr f128 kNaN = std::numeric_limits<double>::quiet_NaN();

// Independence.

/// Inexact arguments and results as rows of numbers: which entry a part of all of them belongs to.
struct Place {
  size_t tensor;
  int64_t element;
};
std::vector<Place> places_of(const Tensors& ts) {
  std::vector<Place> out;
  for (size_t k = 0; k < ts.size(); ++k)
    for (int64_t i = 0; i < ts[k].numel(); ++i) out.push_back({k, i});
  return out;
}
size_t width_of(const Tensor& t) { return is_complex(t.dtype()) ? 2 : 1; }

/// `ts` with one element (all of its parts) replaced.
Tensors with_element(const Tensors& ts, const Place& at, f128 v) {
  Tensors out = ts;
  Reals parts = flatten({ts[at.tensor]});
  const size_t width = width_of(ts[at.tensor]);
  std::fill_n(parts.begin() + long(size_t(at.element) * width), width, v);
  out[at.tensor] = make_tensor(ts[at.tensor].sizes(), ts[at.tensor].dtype(), ts[at.tensor].device());
  write_parts(out[at.tensor], parts.data());
  return out;
}

/// Which elements of the inexact results keep all bits in f128 when an element of the arguments, which are
/// `xs`, becomes a NaN.
std::vector<bool> untouched(const Case& c, const Tensors& xs, const Place& at) {
  Values all = to_reference(c.args);
  const auto values = [&](const Tensors& ts) {
    for (size_t k = 0; k < ts.size(); ++k) entry(all, c.inexact()[k]) = ts[k];
    Tensors ys = reference_forward(c.op, all);
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    for (Tensor& y : ys) y = plain_copy(y);
    return ys;
  };
  const Tensors before = values(xs), after = values(with_element(xs, at, kNaN));
  const Reals a = flatten(before), b = flatten(after);
  std::vector<bool> out;
  size_t part = 0;
  for (const Tensor& y : before)
    for (int64_t i = 0; i < y.numel(); ++i) {
      bool same = true;
      for (size_t k = 0; k < width_of(y); ++k, ++part) same &= part < b.size() && a[part] == b[part];
      out.push_back(same);
    }
  return out;
}

/// Which cannot depend on it, for these sizes, integers and conditions: at this point, and where all numbers
/// are others, none of them 0 or equal.
std::vector<bool> independent_of(const Case& c, const Place& at) {
  Tensors here, generic;
  size_t n = 0;
  for (const Case::Slot& s : c.inexact()) {
    here.push_back(to_reference(c.at(s)));
    Reals v(part_count(here.back()));
    for (f128& each : v) each = 1 + f128(++n * 37 % 101) / 128;
    size_t from = 0;
    generic.push_back(unflatten(v, from, here.back()));
  }
  std::vector<bool> out = untouched(c, generic, at);
  const std::vector<bool> now = untouched(c, here, at);
  for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] && i < now.size() && now[i];
  return out;
}

/// The first difference where `free` says, zeros of either sign being equal.
Finding differs_where(const Tensors& got, const Tensors& want, const std::vector<bool>& where) {
  if (got.size() != want.size()) return other_number(got, want);
  size_t at = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    const Reals a = flatten({got[k]}), b = flatten({want[k]});
    if (a.size() != b.size())
      return {type_kind(got[k], want[k]), format("result {}: got {}, expected {}", k, got[k], want[k])};
    const size_t width = width_of(got[k]);
    for (size_t i = 0; i < a.size(); ++i)
      if (where[at + i / width] && a[i] != b[i])
        return {number_kind(a[i], b[i]), format("result {}, element {}: got {}, expected {}", k, i / width,
                                                double(a[i]), double(b[i]))};
    at += a.size() / width;
  }
  return "";
}

Verdict independent_is_zero(Case& c) {
  Subject s;
  s.slots = c.inexact(), s.xs = c.values(s.slots), s.f = c.smooth_function(s.slots);
  if (s.slots.empty()) return Verdict::discard();
  s.ys = s.f(s.xs);
  if (s.ys.empty() || !finite(s.ys)) return Verdict::discard();
  const std::vector<Place> inputs = places_of(s.xs);
  if (inputs.empty()) return Verdict::discard();
  const Place at = inputs[c.draw.below(uint32_t(inputs.size()))];
  const bool nan = c.draw.flag();
  const f128 huge = nan ? kNaN : kInfinity;
  const std::vector<bool> free = independent_of(c, at);
  const std::vector<Place> results = places_of(s.ys);
  if (free.size() != results.size() || std::ranges::find(free, true) == free.end()) return Verdict::discard();
  if (has_jvp(c.op)) {
    Tensors ts = directions(c, s.xs);
    ts[at.tensor] = plain_copy(ts[at.tensor]);  // in the layout of those with an element of their own
    const Tensors dirty = with_element(ts, at, huge);
    const Tensors got = jvp(s.f, s.xs, dirty).tangents, want = jvp(s.f, s.xs, ts).tangents;
    if (!finite(want)) return Verdict::discard();
    if (const Finding d = differs_where(got, want, free); !d.empty())
      return Verdict::fail(
          format("tangents that do not depend on element {} of input {}, whose tangent is {}: ", at.element,
                 at.tensor, double(huge)) +
              d,
          jvp_program(c, s, dirty, want), 1);
  }
  if (!has_vjp(c.op)) return Verdict::pass(1);
  Tensors us = directions(c, s.ys);
  for (Tensor& u : us) u = plain_copy(u);
  Tensors dirty = us;
  for (size_t i = 0; i < results.size(); ++i)
    if (free[i]) dirty = with_element(dirty, results[i], huge);
  std::vector<bool> only;
  for (const Place& p : inputs) only.push_back(p.tensor == at.tensor && p.element == at.element);
  const Tensors got = vjp(s.f, s.xs).pullback(dirty), want = vjp(s.f, s.xs).pullback(us);
  if (!finite(want)) return Verdict::discard();
  if (const Finding d = differs_where(got, want, only); !d.empty())
    return Verdict::fail(
        format("cotangents of results that do not depend on it become {}: ", double(huge)) + d,
        vjp_program(c, s, dirty, want), 1);
  return Verdict::pass(1);
}

constexpr DrawOptions kFewElements{.dtypes = kWideTypes, .tame = true, .max_numel = 6, .mixed = false};

/// Some element of a result depends on less than all elements: that of dot depends on all.
bool leaves_some_free(const Op& op) {
  static AskedOnce asked;
  return asked(op, [&] {
    return some_case(op, kFewElements, 64, [](Case& c) {
      const std::vector<Place> inputs = places_of(c.values(c.inexact()));
      std::vector<bool> free;
      return !inputs.empty() && !status_of([&] { free = independent_of(c, inputs[0]); }).raised &&
             std::ranges::find(free, true) != free.end();
    });
  });
}

/// All but factorisations, and what values put in order.
bool may_be_independent(const Op& op) {
  return both_ways(op) && stays_on_device(op) && op.shape != ShapeClass::Linalg &&
         op.at_kinks != AtKinks::Chosen && leaves_some_free(op);
}

// Formulas.

/// d f / d x and d f / d y of real numbers, by formulas of calculus; infinite and 0 where limits are. At a
/// NaN they are what PyTorch's rules give: steps and lines have the slope they have everywhere, relu passes
/// on what it does not know to be negative.
struct Formulas {
  std::string_view op;
  int operands;
  bool infinities;  ///< asked there, too
  void (*slopes)(f128 x, f128 y, f128* out);
  bool scales = false;  ///< asked of points so far out and so near 0 that a square leaves the range
  bool ends = false;    ///< and where the result leaves the range, of which slopes know nothing
  bool parity = false;  ///< and of the second operand where the dtype does not hold the odd number before it
};
constexpr Formulas kFormulas[] = {
    {"exp", 1, true, [](f128 x, f128, f128* d) { d[0] = expq(x); }},
    {"log", 1, true, [](f128 x, f128, f128* d) { d[0] = 1 / x; }, true},
    {"sin", 1, true, [](f128 x, f128, f128* d) { d[0] = cosq(x); }},
    {"cos", 1, true, [](f128 x, f128, f128* d) { d[0] = -sinq(x); }},
    {"tanh", 1, true,
     [](f128 x, f128, f128* d) {
       const f128 e = expq(-2 * fabsq(x));
       d[0] = 4 * e / ((1 + e) * (1 + e));
     }},
    {"sqrt", 1, true, [](f128 x, f128, f128* d) { d[0] = 0.5 / sqrtq(x); }, true},
    {"reciprocal", 1, true, [](f128 x, f128, f128* d) { d[0] = -1 / (x * x); }, true},
    {"neg", 1, true, [](f128, f128, f128* d) { d[0] = -1; }},
    {"abs", 1, true, [](f128 x, f128, f128* d) { d[0] = (x > 0) - (x < 0); }},
    {"sign", 1, true, [](f128, f128, f128* d) { d[0] = 0; }},
    {"add", 2, true, [](f128, f128, f128* d) { d[0] = d[1] = 1; }},
    {"sub", 2, true, [](f128, f128, f128* d) { d[0] = 1, d[1] = -1; }},
    {"mul", 2, true, [](f128 x, f128 y, f128* d) { d[0] = y, d[1] = x; }},
    {"div", 2, false, [](f128 x, f128 y, f128* d) { d[0] = 1 / y, d[1] = -(x / y) / y; }, true},
    {"pow", 2, false,
     [](f128 x, f128 y, f128* d) {
       d[0] = y == 0 ? 0 : y * powq(x, y - 1);
       d[1] = x == 0 && y >= 0 ? 0 : powq(x, y) * logq(x);
     },
     false, false, true},
    {"expm1", 1, true, [](f128 x, f128, f128* d) { d[0] = expq(x); }},
    {"exp2", 1, true, [](f128 x, f128, f128* d) { d[0] = exp2q(x) * logq(2); }},
    {"log1p", 1, true, [](f128 x, f128, f128* d) { d[0] = 1 / (1 + x); }},
    {"log2", 1, true, [](f128 x, f128, f128* d) { d[0] = 1 / (x * logq(2)); }, true},
    {"sinh", 1, true, [](f128 x, f128, f128* d) { d[0] = coshq(x); }},
    {"cosh", 1, true, [](f128 x, f128, f128* d) { d[0] = sinhq(x); }},
    {"sigmoid", 1, true,
     [](f128 x, f128, f128* d) {
       const f128 e = expq(-fabsq(x));
       d[0] = e / ((1 + e) * (1 + e));
     }},
    {"rsqrt", 1, true,
     [](f128 x, f128, f128* d) {
       const f128 y = 1 / sqrtq(x);
       d[0] = -0.5 * y * y * y;
     },
     true},
    {"asinh", 1, true, [](f128 x, f128, f128* d) { d[0] = 1 / hypotq(x, 1); }, true},
    {"erf", 1, true, [](f128 x, f128, f128* d) { d[0] = 2 / sqrtq(acosq(-1)) * expq(-x * x); }},
    {"erfc", 1, true, [](f128 x, f128, f128* d) { d[0] = -2 / sqrtq(acosq(-1)) * expq(-x * x); }},
    {"square", 1, true, [](f128 x, f128, f128* d) { d[0] = 2 * x; }},
    {"sech_squared", 1, true,
     [](f128 x, f128, f128* d) {
       const f128 e = expq(-2 * fabsq(x)), y = 4 * e / ((1 + e) * (1 + e));
       d[0] = -2 * tanhq(x) * y;
     }},
    {"relu", 1, true, [](f128 x, f128, f128* d) { d[0] = !(x <= 0); }},
    {"frac", 1, false, [](f128, f128, f128* d) { d[0] = 1; }},
    {"floor", 1, true, [](f128, f128, f128* d) { d[0] = 0; }},
    {"ceil", 1, true, [](f128, f128, f128* d) { d[0] = 0; }},
    {"round", 1, true, [](f128, f128, f128* d) { d[0] = 0; }},
    {"trunc", 1, true, [](f128, f128, f128* d) { d[0] = 0; }},
    {"fmod", 2, false, [](f128 x, f128 y, f128* d) { d[0] = 1, d[1] = y == 0 ? f128(NAN) : -truncq(x / y); }},
    {"remainder", 2, false,
     [](f128 x, f128 y, f128* d) { d[0] = 1, d[1] = y == 0 ? f128(NAN) : -floorq(x / y); }},
    {"atan", 1, true, [](f128 x, f128, f128* d) { d[0] = 1 / (1 + x * x); }},
    {"atan2", 2, false,
     [](f128 y, f128 x, f128* d) {
       const f128 r = hypotq(x, y);
       d[0] = r == 0 ? 0 : x / r / r, d[1] = r == 0 ? 0 : -y / r / r;
     },
     true},
    {"hypot", 2, false,
     [](f128 x, f128 y, f128* d) {
       const f128 r = hypotq(x, y);
       d[0] = r == 0 ? 0 : x / r, d[1] = r == 0 ? 0 : y / r;
     },
     true, true},
    {"logaddexp", 2, true,
     [](f128 x, f128 y, f128* d) {
       const f128 apart = double(y - x);  // rounded as the operator rounds it, which counts where it is large
       d[0] = x == y ? 0.5 : 1 / (1 + expq(apart)), d[1] = x == y ? 0.5 : 1 / (1 + expq(-apart));
     }},
    {"xlogy", 2, false,
     [](f128 x, f128 y, f128* d) {
       d[0] = x == 0 && y <= 0 ? 0 : logq(y), d[1] = x == 0 && y == 0 ? 0 : x / y;
     }},
    {"maximum", 2, true,
     [](f128 x, f128 y, f128* d) {
       d[0] = x == y ? 0.5 : x > y ? 1 : 0, d[1] = 1 - d[0];
     }},
    {"minimum", 2, true,
     [](f128 x, f128 y, f128* d) {
       d[0] = x == y ? 0.5 : x < y ? 1 : 0, d[1] = 1 - d[0];
     }},
};
const Formulas* formulas_of(const Op& op) {
  const auto at = std::ranges::find(kFormulas, op.name, &Formulas::op);
  return at == std::end(kFormulas) ? nullptr : at;
}

f128 draw_edge(Draw& d, bool infinities) {
  static constexpr double kEdges[] = {0, 0,   1,       -1,   2,      0.5,    -0.0,     -2,
                                      3, 9,   -9.5,    12.,  -17,    1e-3,   -1e-3,    0x1p9,
                                      4, 0.1, 0x1p-11, -0.5, 0x1p12, 8.8125, INFINITY, -INFINITY};
  return kEdges[d.below(uint32_t(std::size(kEdges)) - (infinities ? 0 : 2))];
}

/// Whether a slope is what the formula says: of its class, and within 32 roundings of it; of a half within 8,
/// or 32 of its smallest numbers.
bool is_slope(f128 got, f128 want, DType dtype) {
  const double least = is_half(dtype) ? 32 * smallest_number(dtype) : 0;
  if (want != want || got != got) return want != want && got != got;
  if (!(want - want == 0) || !(got - got == 0)) return got == want;
  const double allowed = (is_half(dtype) ? 8 : 32) * unit_roundoff(dtype);
  return fabsq(got - want) <= f128(allowed) * fabsq(want) + f128(least);
}

Verdict slopes_as_listed(Case& c) {
  const Formulas& listed = *formulas_of(c.op);
  for (size_t i = size_t(listed.operands); i < c.args.size(); ++i) {  // alpha is not asked here
    const Scalar* const number = std::get_if<Scalar>(&c.args[i]);
    c.args[i] = number ? Value(Scalar(1)) : Value();
  }
  const int mode = c.op.schema.find("rounding_mode");
  const uint32_t steps = mode >= 0 ? c.draw.below(3) : 0;  // a whole quotient does not move
  if (steps) c.args[size_t(mode)] = std::string(steps == 1 ? "floor" : "trunc");
  static constexpr DType kDTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16};
  const DType dtype = kDTypes[c.draw.below(4)];
  const int64_t n = 1 + c.draw.below(5);
  const int far = dtype == DType::F32 ? 70 : 600;
  const uint32_t w = listed.scales && !is_half(dtype) ? c.draw.below(4) : 0;
  const f128 scale = w < 2 ? 1 : ldexpq(1, w == 2 ? far : -far);
  const bool parity = listed.parity && !is_half(dtype) && c.draw.one_in(4);
  Subject s;
  std::vector<Reals> points;
  for (int k = 0; k < listed.operands; ++k) {
    points.emplace_back();
    for (int64_t i = 0; i < n; ++i) points.back().push_back(scale * draw_edge(c.draw, listed.infinities));
    if (listed.ends && n > 2) points.back()[0] = copysignq(0.75 * largest_number(dtype), points.back()[0]);
    if (parity) points.back()[0] = k ? 4 / f128(unit_roundoff(dtype)) : copysignq(1, points[0][0]);
    if (listed.operands == 1 && c.draw.one_in(4)) points.back()[size_t(n) - 1] = kNaN;
    const Tensor x = make_tensor(Dims{n}, dtype);
    write_parts(x, points.back().data());
    points.back() = flatten({x});
    c.args[size_t(k)] = x;
  }
  const f128 along = c.draw.flag() ? scale : 1;  // brings back a slope that has left the range
  c.find_tensors();
  s.slots = c.inexact(), s.xs = c.values(s.slots), s.f = c.smooth_function(s.slots);
  s.ys = s.f(s.xs);
  Tensors us;
  for (const Tensor& y : s.ys) us.push_back(full_like(y, double(along)));
  const Tensors pulled = vjp(s.f, s.xs).pullback(us);
  for (int k = 0; k < listed.operands; ++k) {
    Tensors ts(size_t(listed.operands));
    ts[size_t(k)] = full_like(s.xs[size_t(k)], double(along));
    const Tensors pushed = jvp(s.f, s.xs, ts).tangents;
    const Reals backward = flatten({pulled[size_t(k)]}), forward = flatten({pushed[0]});
    for (size_t i = 0; i < size_t(n); ++i) {
      f128 want[2] = {0, 0};
      if (!steps) listed.slopes(points[0][i], points.back()[i], want);
      for (const f128 got : {backward[i], forward[i]})
        if (!is_slope(got, rounded_to(along * want[k], dtype), dtype))
          return Verdict::fail(format("the derivative in input {} at ({}, {}), along {}: got {}, expected {}",
                                      k, double(points[0][i]), double(points.back()[i]), double(along),
                                      double(got), double(along * want[k])),
                               jvp_program(c, s, ts, {}), 1);
    }
  }
  return Verdict::pass(1);
}

bool has_formulas(const Op& op) { return formulas_of(op) && both_ways(op); }

// Numbers.

/// Where rules divide by nothing, take the root or the logarithm of it, or subtract what is equal: at zeros,
/// whole numbers and equal elements. Not below 0 where nothing was drawn there: the exponent's derivative of
/// a power, and roots, are no numbers there.
void put_edges(Draw& d, Tensor& x) {
  const uint32_t how = d.below(4);
  Reals parts = flatten({x});
  const bool below = std::ranges::any_of(parts, [](f128 p) { return p < 0; });
  const auto edge = [&] {
    const f128 e = draw_edge(d, false);
    return below ? e : fabsq(e);
  };
  const f128 all = edge();
  for (f128& p : parts)
    if (how == 0) p = all;
    else if (how == 1 || (how == 2 && d.one_in(3))) p = edge();
  const Tensor out = make_tensor(x.sizes(), x.dtype(), x.device());
  write_parts(out, parts.data());
  x = out;
}

Finding not_numbers(const Tensors& slopes, const char* what, size_t input) {
  for (size_t k = 0; k < slopes.size(); ++k)
    for (const f128 v : flatten({slopes[k]}))
      if (v != v)
        return {What::Nan,
                format("{} {}, of input {}: got NaN, expected a number or an infinity", what, k, input)};
  return "";
}

Verdict slopes_are_numbers(Case& c) {
  Subject s;
  s.slots = c.inexact(), s.xs = c.values(s.slots), s.f = c.smooth_function(s.slots);
  if (s.slots.empty()) return Verdict::discard();
  for (Tensor& x : s.xs) put_edges(c.draw, x);
  c.args = c.with(s.slots, s.xs), c.find_tensors();
  s.slots = c.inexact(), s.f = c.smooth_function(s.slots);
  if (status_of([&] { s.ys = s.f(s.xs); }).raised) return Verdict::discard();
  if (s.ys.empty() || !finite(s.ys)) return Verdict::discard();
  Tensors us;
  for (const Tensor& y : s.ys) us.push_back(ones_like(y));
  const size_t input = c.draw.below(uint32_t(s.xs.size()));
  if (has_jvp(c.op)) {
    Tensors ts(s.xs.size());
    ts[input] = ones_like(s.xs[input]);
    if (const Finding d = not_numbers(jvp(s.f, s.xs, ts).tangents, "tangent", input); !d.empty())
      return Verdict::fail(d, jvp_program(c, s, ts, {}), 1);
  }
  if (!has_vjp(c.op)) return Verdict::pass(1);
  const Tensors pulled = vjp(s.f, s.xs).pullback(us);
  if (const Finding d = not_numbers({pulled[input]}, "cotangent", input); !d.empty())
    return Verdict::fail(d, vjp_program(c, s, us, {}), 1);
  return Verdict::pass(1);
}

bool has_slopes(const Op& op) { return both_ways(op) && stays_on_device(op); }

}  // namespace

void add_edge_laws(std::vector<Law>& laws) {
  laws.push_back(
      {84, "independent_is_zero", "derivative",
       "What of a result cannot depend on an element has no derivative in it, though directions are "
       "infinite or NaN.",
       kFewElements, false, may_be_independent, independent_is_zero});
  laws.push_back(
      {85,
       "slopes_as_listed",
       "derivative",
       "At zeros, ones, large numbers, infinities and NaN a pointwise operator's derivatives are those of a "
       "formula by name, infinities and zeros included, and so are their products with a number that brings "
       "them back into the range.",
       {.dtypes = kFloat32And64,
        .layouts = false,
        .tame = true,
        .max_numel = 6,
        .mixed = false,
        .one_large = true},
       false,
       has_formulas,
       slopes_as_listed});
  laws.back().share = 16;  // two points of twenty-one, in one of four dtypes
  laws.push_back(
      {176,
       "slopes_are_numbers",
       "derivative",
       "Where real results are numbers derivatives are, too, or infinite: at zeros, at whole numbers and "
       "at equal elements.",
       {.dtypes = kFloat32And64, .layouts = false, .max_numel = 12, .mixed = false, .one_large = true},
       false,
       has_slopes,
       slopes_are_numbers});
}

}  // namespace lamella::verify
