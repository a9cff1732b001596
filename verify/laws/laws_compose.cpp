// Laws of nested transforms: whatever the order, the result is that of loops and difference quotients.
#include <cmath>
#include <quadmath.h>

#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/real_function.h"
#include "lamella/verify/oracle/subject.h"
#include "lamella/verify/programs/stack.h"

namespace lamella::verify {

namespace {

bool differentiable(const Op& op) { return has_jvp(op) && has_vjp(op) && !op.has(kRandom); }

/// A composite that crosses columns says that it cannot be transformed.
bool declined(const Op& op, const Status& s) {
  return op.composite && s.raised && s.code == ErrorCode::NoKernel;
}

// Laws 43 and 44: derivatives of each lane, four ways.

struct PerLane {
  std::vector<Case::Slot> slots;  ///< what is differentiated, then tensors that are mapped alone
  size_t traced;                  ///< how many of the first
  Function f;
  Batch xs, directions;  ///< primals; tangents (like them) or cotangents (one per result)
  bool forward;
};

/// In the first tensors, as many as are traced.
Tensors derivative_of(const Function& f, const PerLane& p, const Tensors& xs, const Tensors& directions) {
  const auto middle = xs.begin() + long(p.traced);
  const Function g = [&](const Tensors& traced) {
    Tensors all = traced;
    all.insert(all.end(), middle, xs.end());
    return f(all);
  };
  const Tensors traced(xs.begin(), middle);
  return p.forward ? jvp(g, traced, directions).tangents : vjp(g, traced).pullback(directions);
}

/// Indices and conditions may differ from lane to lane.
void map_others(Case& c, PerLane& p) {
  const auto is_inexact_slot = [&](const Case::Slot& s) { return is_inexact(c.at(s).dtype()); };
  std::vector<Case::Slot> others = c.tensors();
  std::erase_if(others, is_inexact_slot);
  std::vector<bool> mapped;
  for (size_t k = 0; k < others.size(); ++k) mapped.push_back(c.draw.flag());
  const Batch b = draw_batch(c, others, mapped, p.xs.size);
  if (b.any_mapped() && c.draw.flag()) {  // they alone, beside what all lanes share
    const size_t k = c.draw.below(uint32_t(p.traced));
    p.xs.xs[k] = c.at(p.slots[k]), p.xs.in_dims[k] = kNone;
  }
  p.slots.insert(p.slots.end(), others.begin(), others.end());
  p.xs.xs.insert(p.xs.xs.end(), b.xs.begin(), b.xs.end());
  p.xs.in_dims.insert(p.xs.in_dims.end(), b.in_dims.begin(), b.in_dims.end());
  p.f = c.smooth_function(p.slots);
}

bool draw_per_lane(Case& c, PerLane& p) {
  p.slots = c.subset(c.inexact());
  p.traced = p.slots.size();
  if (p.slots.empty()) return false;
  p.f = c.smooth_function(p.slots);
  p.forward = c.draw.flag();
  const int64_t size = 1 + c.draw.below(3);
  p.xs = draw_batch(c, p.slots, draw_mapped(c.draw, p.slots.size()), size);
  Tensors likes;
  if (p.forward) likes = lane(p.xs, 0);
  else if (status_of([&] { likes = p.f(lane(p.xs, 0)); }).raised) return false;
  for (Tensor& t : likes) t = c.direction(t);
  p.directions = draw_batch(c.draw, likes, std::vector<bool>(likes.size(), true), size, true);
  map_others(c, p);
  return !likes.empty();
}

/// vmap of the derivative.
Tensors mapped_derivative(const PerLane& p) {
  Tensors all = p.xs.xs;
  InDims dims = p.xs.in_dims;
  all.insert(all.end(), p.directions.xs.begin(), p.directions.xs.end());
  dims.insert(dims.end(), p.directions.in_dims.begin(), p.directions.in_dims.end());
  const size_t n = p.xs.xs.size();
  const Function lane_derivative = [&](const Tensors& ts) {
    return derivative_of(p.f, p, {ts.begin(), ts.begin() + long(n)}, {ts.begin() + long(n), ts.end()});
  };
  return vmap(lane_derivative, {dims, {0}, Randomness::Error, p.xs.size})(all);
}

/// Tangents or cotangents of the mapped function.
Tensors directions_of_mapped(const PerLane& p) {
  Tensors directions;
  for (size_t k = 0; k < p.directions.xs.size(); ++k) {
    const bool mapped = !p.forward || p.xs.in_dims[k] != kNone;
    const Tensor front = moved(p.directions.xs[k], p.directions.in_dims[k], 0);
    if (!mapped) directions.push_back(lane(front, 0, 0));
    else directions.push_back(p.forward ? moved(front, 0, p.xs.in_dims[k]) : front);
  }
  return directions;
}

/// The derivative of the mapped function, brought to lanes in front.
Tensors derivative_of_mapped(const PerLane& p) {
  const Function mapped = vmap(p.f, {p.xs.in_dims, {0}, Randomness::Error, p.xs.size});
  Tensors out = derivative_of(mapped, p, p.xs.xs, directions_of_mapped(p));
  for (size_t k = 0; !p.forward && k < out.size(); ++k)
    if (p.xs.in_dims[k] != kNone) out[k] = moved(out[k], p.xs.in_dims[k], 0);
  return out;
}

/// Lane by lane. With `shared`, what is not mapped is one tensor: its tangent is lane 0's, its gradients add
/// up.
Tensors looped_derivative(const PerLane& p, bool shared) {
  std::vector<Tensors> lanes;
  for (int64_t i = 0; i < p.xs.size; ++i) {
    Tensors directions = lane(p.directions, i);
    if (shared && p.forward)
      for (size_t k = 0; k < directions.size(); ++k)
        if (p.xs.in_dims[k] == kNone) directions[k] = lane(p.directions, 0)[k];
    lanes.push_back(derivative_of(p.f, p, lane(p.xs, i), directions));
  }
  Tensors out;
  for (size_t k = 0; k < lanes[0].size(); ++k) {
    Tensors column;
    for (const Tensors& ys : lanes) column.push_back(ys[k]);
    out.push_back(stacked(column, 0));
    if (!shared || p.forward || p.xs.in_dims[k] != kNone) continue;
    out[k] = column[0];
    for (size_t i = 1; i < column.size(); ++i) out[k] = add(out[k], column[i]);
  }
  return out;
}

/// In the first of the tensors alone.
std::string derived_text(const PerLane& p) {
  const std::string middle = "xs.begin() + " + std::to_string(p.traced);
  return "  const auto derived = [](const Function& f, const Tensors& xs, const Tensors& us) {\n"
         "    const Function g = [&](const Tensors& ts) {\n      Tensors all = ts;\n"
         "      all.insert(all.end(), " +
         middle + ", xs.end());\n      return f(all);\n    };\n    const Tensors traced(xs.begin(), " +
         middle + ");\n    return " +
         (p.forward ? "jvp(g, traced, us).tangents" : "vjp(g, traced).pullback(us)") + ";\n  };\n";
}

std::string per_lane_program(const Case& c, const PerLane& p, bool outside, const Tensors& want) {
  const size_t n = p.xs.xs.size();
  const Tensors directions = outside ? directions_of_mapped(p) : p.directions.xs;
  const std::string us = cpp_names("u", directions.size()), size = std::to_string(p.xs.size);
  const auto options = [&](const InDims& dims) {
    return "VmapOptions{" + cpp_dims(dims) + ", {0}, Randomness::Error, " + size + "}";
  };
  const auto derivative = [&](const std::string& f, const std::string& xs, const std::string& ts) {
    if (p.traced < n) return "derived(" + f + ", " + xs + ", " + ts + ")";
    return p.forward ? "jvp(" + f + ", " + xs + ", " + ts + ").tangents"
                     : "vjp(" + f + ", " + xs + ").pullback(" + ts + ")";
  };
  std::string out = cpp_declarations(c.with(p.slots, p.xs.xs)) + cpp_tensors("u", directions) +
                    cpp_tensors("w", want) + "  const Function f0 = " + cpp_function(c, p.slots, true) +
                    ";\n  const Tensors xs" + cpp_list(cpp_names(c, p.slots)) + ", us" + us + ";\n";
  if (p.traced < n) out += derived_text(p);
  if (outside) {
    out += "  const Function f1 = vmap(f0, " + options(p.xs.in_dims) +
           ");\n  const Tensors got = " + derivative("f1", "xs", "us") + ";  // lanes where xs has them\n";
  } else {
    InDims dims = p.xs.in_dims;
    dims.insert(dims.end(), p.directions.in_dims.begin(), p.directions.in_dims.end());
    const std::string middle = "all.begin() + " + std::to_string(n);
    out +=
        "  Tensors all = xs;\n  all.insert(all.end(), us.begin(), us.end());\n"
        "  const Function f1 = [&](const Tensors& all) {\n    return " +
        derivative("f0", "Tensors(all.begin(), " + middle + ")", "Tensors(" + middle + ", all.end())") +
        ";\n  };\n  const Tensors got = vmap(f1, " + options(dims) + ")(all);\n";
  }
  return out + "  for (const Tensor& y : got) std::cout << \"got      \" << str(y) << '\\n';\n" +
         "  for (const Tensor& y : Tensors" + cpp_names("w", want.size()) +
         ") std::cout << \"expected \" << str(y) << \"  (the loop, lanes in front)\\n\";\n";
}

Verdict per_lane(Case& c) {
  PerLane p;
  if (!draw_per_lane(c, p)) return Verdict::discard();
  const bool outside = c.draw.flag();
  Tensors want, got;
  if (status_of([&] { want = looped_derivative(p, outside); }).raised) return Verdict::discard();
  const Status s = status_of([&] { got = outside ? derivative_of_mapped(p) : mapped_derivative(p); });
  if (declined(c.op, s)) return Verdict::discard();
  const Roundings few{1024, 1, std::max(coarsest(p.xs.xs), coarsest(p.directions.xs))};
  Finding d = s.raised ? str(s) : disagrees(got, want, Agreement::Rounding, few);
  if (!s.raised && !d.empty()) {
    Roundings larger = on_the_way([&] { (void)looped_derivative(p, outside); });
    larger.unit = few.unit;
    d = disagrees(got, want, Agreement::Rounding, larger);
  }
  if (d.empty()) return Verdict::pass(2);
  return Verdict::fail(d, per_lane_program(c, p, outside, want), 2);
}

// Laws 46, 48 and perturbation confusion: a stack against its numeric reading.

Tensors referenced(const Tensors& ts) {
  Tensors out;
  for (const Tensor& t : ts) out.push_back(to_reference(t));
  return out;
}

double largest(const Tensor& t) {
  double m = 0;
  for (const f128 v : flatten({t})) m = std::max(m, std::abs(double(v)));
  return m;
}
bool finite(const Tensors& ts) {
  for (const f128 v : flatten(ts))
    if (!std::isfinite(double(v))) return false;
  return true;
}

Tensors constant_bounds(const Tensors& want, double relative) {
  Tensors out;
  for (const Tensor& w : want) {
    const double bound = relative * std::max(1.0, largest(w));
    out.push_back(tensor_of(w.sizes(), std::vector<double>(size_t(w.numel()), bound), DType::F64));
  }
  return out;
}

Finding any_outside(const Tensors& got, const Tensors& want, const Tensors& bounds) {
  if (got.size() != want.size()) return other_number(got, want);
  for (size_t k = 0; k < got.size(); ++k) {
    const Finding d = outside(got[k], want[k], bounds[k]);
    if (!d.empty()) return format("result {}: ", k) + d;
  }
  return "";
}

/// Inputs off by a relative `by`, as if they were at least `least`, up or down as the bits of `phase` and the
/// position say; element n by 1 + n * `uneven` times as much.
Tensors nudged(const Tensors& xs, double by, uint32_t phase, double least = 0, double uneven = 0) {
  Tensors out;
  uint32_t n = 0;
  for (const Tensor& x : xs) {
    Reals flat = flatten({x});
    for (f128& v : flat) {
      const bool up = (phase * 0x9E3779B9u >> (n % 29)) & 1;
      const double step = by * (1 + uneven * n++);
      const bool is_small = v == 0 || (v < 0 ? -v : v) < f128(least);
      v += (is_small ? f128(1) : v) * f128(up ? step : -step);
    }
    size_t at = 0;
    out.push_back(unflatten(flat, at, x));
  }
  return out;
}

double distance(const Tensors& a, const Tensors& b) {
  const Reals x = flatten(a), y = flatten(b);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(double(x[i] - y[i])));
  return most;
}

/// Whether points close by, but farther than the difference quotients reach, have other derivatives. Those go
/// as far around a small number as around 1. Two numbers that tie may go the same way by as much in all of
/// six patterns: in the last ones no two go as far.
bool near_kink(const Stack& s, const Tensors& xs, const Tensors& want, double error) {
  double spread = 0;
  const auto look = [&](uint32_t phase, double uneven) {
    const Tensors near = nudged(xs, 0x1p-13, phase, 1, uneven);
    spread = std::max(spread, distance(s.numeric(0x1p-5)(near), want));
  };
  for (const uint32_t phase : {1u, 2u, 3u, 5u, 7u, 11u}) look(phase, 0);
  for (const uint32_t phase : {1u, 2u, 3u}) look(phase, 1);
  return spread > error / 4;
}

/// Whether the point alone is special: then points close by are right.
bool right_close_by(const Stack& s, const Tensors& xs) {
  for (const uint32_t phase : {1u, 2u, 3u}) {
    const Tensors near = nudged(xs, 0x1p-13, phase, 1, 1);  // no two elements by the same: ties end
    Tensors inputs = s.inputs();
    for (size_t k = 0; k < inputs.size(); ++k)
      if (is_inexact(inputs[k].dtype())) inputs[k] = narrow(near[k], inputs[k].dtype());
    const Tensors want = s.numeric(0x1p-5)(near);
    double scale = 1;
    for (const Tensor& w : want) scale = std::max(scale, largest(w));
    if (!(distance(referenced(s.function()(inputs)), want) <= 0x1p-8 * scale)) return false;
  }
  return true;
}

/// Whether the operator's forward jumps or bends at the drawn arguments themselves, by the oracle alone:
/// difference quotients of a stack look beside the point, so a jump there (the square of sign at 0) escapes
/// them.
bool kink_at_arguments(Case& c) { return !Oracle(c, c.inexact()).twice_smooth(); }

/// f128 results in the dtypes of `got`: for printing.
Tensors rounded_like(const Tensors& want, const Tensors& got) {
  Tensors out;
  for (size_t k = 0; k < std::min(want.size(), got.size()); ++k) {
    out.push_back(make_tensor(want[k].sizes(), got[k].dtype()));
    write_parts(out.back(), flatten({want[k]}).data());
  }
  return out;
}

Tensors differences(const Tensors& a, const Tensors& b) {
  Tensors out;
  for (size_t k = 0; k < a.size(); ++k) out.push_back(sub(a[k], b[k]));
  return out;
}
Tensors sums(const Tensors& a, const Tensors& b) {
  Tensors out;
  for (size_t k = 0; k < a.size(); ++k) out.push_back(add(a[k], b[k]));
  return out;
}

/// Half the steps leave a sixteenth of the error (h^4): taken off, so that a derivative of 0 beside one of
/// 10^3 is not judged by what the steps are off.
Tensors extrapolated(const Tensors& coarse, const Tensors& want) {
  Tensors out = differences(want, coarse);
  for (size_t k = 0; k < out.size(); ++k) out[k] = add(want[k], div(out[k], Scalar(15.0)));
  return out;
}

/// The operator, off by what a floor that is over the result allows: a smooth function of its operands whose
/// derivatives of order n are up to floor * by * over^(n - 1).
Stack::Around off_by_floor(double floor, f128 over, f128 by, uint32_t phase) {
  return [=](const Function& op, const Tensors& operands) {
    f128 along = 0;
    uint32_t n = 0;
    for (const f128 x : flatten(operands)) along += (phase * 0x9E3779B9u >> (n++ % 29)) & 1 ? x : -x;
    const f128 off = floor * by / over * (sinq(over * along) + cosq(over * along));
    Tensors ys = op(operands);
    for (Tensor& y : ys) {
      Reals flat = flatten({y});
      for (f128& v : flat) v += off;
      size_t at = 0;
      y = unflatten(flat, at, y);
    }
    return ys;
  };
}

/// How far changes of 2^-40 move the result. What comes after the operator may cancel most of its derivatives
/// (x / x): then the whole is well-conditioned and its parts are not, which shows when the operator alone is
/// moved. So do its results, rounded in units of themselves, where what comes after undoes the operator:
/// sqrt(x)^2.
double moved_by_roundings(const Case& c, const Stack& s, const Tensors& xs, const Tensors& want) {
  const Tolerance& tol = tolerance(c.op.name);
  const Tensors operands = referenced(s.operands()), results = s.numeric_operator()(operands);
  Tensors ones;
  for (const Tensor& y : results) ones.push_back(ones_like(y));
  const double over = over_results(tol, results);
  double most = 0;
  const auto take = [&](const Function& f, const Tensors& at) {
    most = std::max(most, distance(f(at), want));
  };
  for (const uint32_t phase : {1u, 2u, 3u}) {
    take(s.numeric(0.5), nudged(xs, 0x1p-40, phase));
    const Tensors by = differences(nudged(operands, 0x1p-40, phase), operands);
    take(s.numeric(0.5, [&](const Function& op, const Tensors& at) { return op(sums(at, by)); }), xs);
    Tensors rounded = differences(nudged(ones, 0x1p-40, phase), ones);
    for (size_t k = 0; k < rounded.size(); ++k) rounded[k] = mul(results[k], rounded[k]);
    take(s.numeric(0.5, [&](const Function& op, const Tensors& at) { return sums(op(at), rounded); }), xs);
    if (!tol.floor_over_result) continue;
    take(s.numeric(0.5, off_by_floor(tol.derivative_floor, over, f128(0x1p-40), phase)), xs);
  }
  return most;
}

/// The slow part of a comparison that looks wrong: how far rounding of the inputs moves the result, how exact
/// the differences are, and whether the point is a kink.
Verdict judge(Case& c, const Stack& s, const Tensors& got) {
  const Tensors xs = referenced(s.inputs());
  const Tensors coarse = s.numeric()(xs), want = s.numeric(0.5)(xs);
  double scale = 1;
  for (const Tensor& w : want) scale = std::max(scale, largest(w));
  if (c.op.has(kKinks) && near_kink(s, xs, want, distance(referenced(got), want))) return Verdict::discard();
  const double moved_by = moved_by_roundings(c, s, xs, want);
  const double bound = 4 * distance(coarse, want) + 512 * s.roundoff() * (scale + moved_by * 0x1p40);
  if (bound > 0x1p-8 * scale) return Verdict::discard();  // ill-conditioned here
  const Finding d = any_outside(got, extrapolated(coarse, want), constant_bounds(want, bound / scale));
  if (d.empty()) return Verdict::pass(s.depth());
  // One tensor may be several arguments: max(x, x) bends in its arguments and not along x, so both are asked.
  if (c.op.has(kKinks) && kink_at_arguments(c) && right_close_by(s, xs)) return Verdict::discard();
  return Verdict::fail(s.str() + ": " + d, s.cpp(rounded_like(want, got)), s.depth());
}

/// Composites that cross columns have no reading in one of them.
bool declined_by_column(const Op& op, const Status& s) {
  return op.composite && s.raised &&
         (s.code == ErrorCode::DType || s.code == ErrorCode::Device || s.code == ErrorCode::NoKernel);
}

Verdict check_stack(Case& c, const Stack::Options& options) {
  const Stack s(c, options);
  if (!s.valid()) return Verdict::discard();
  Tensors got;
  const Status status = status_of([&] { got = s.function()(s.inputs()); });
  if (declined(c.op, status)) return Verdict::discard();
  if (status.raised) return Verdict::fail(s.str() + " raises " + str(status), s.cpp(), s.depth());
  Tensors want;
  const Status oracle = status_of([&] { want = s.numeric()(referenced(s.inputs())); });
  if (declined_by_column(c.op, oracle)) return Verdict::discard();
  if (oracle.raised) return Verdict::fail(s.str() + ": the oracle raises " + str(oracle), s.cpp(), s.depth());
  if (!finite(want)) return Verdict::discard();
  const Finding d = any_outside(got, want, constant_bounds(want, 256 * s.roundoff()));
  return d.empty() ? Verdict::pass(s.depth()) : judge(c, s, got);
}

int deepest(const Case& c) { return c.draw.options().depth; }
Verdict any_stack(Case& c) { return check_stack(c, {.max_depth = deepest(c)}); }
Verdict captures(Case& c) {
  return check_stack(c, {.min_depth = std::min(2, deepest(c)), .max_depth = deepest(c), .captures = true});
}
Verdict no_confusion(Case& c) {
  return check_stack(c, {.min_depth = std::min(2, deepest(c)), .max_depth = deepest(c), .shares = true});
}

}  // namespace

void add_compose_laws(std::vector<Law>& laws) {
  constexpr DTypeMask kWide = mask(DType::F64) | mask(DType::C128);
  const DrawOptions lanes{
      .dtypes = kWide | mask(DType::F32), .tame = true, .max_numel = 16, .one_large = true};
  const DrawOptions tiny{.dtypes = kWide, .tame = true, .max_numel = 4};
  laws.push_back({43, "derivatives_per_lane", "compose",
                  "vmap of a derivative is the loop of derivatives, and the derivative of a vmap too.", lanes,
                  false, differentiable, per_lane});
  laws.push_back({46, "stacks", "compose", "A stack of transforms is its loops and difference quotients.",
                  tiny, true, differentiable, any_stack});
  laws.push_back({48, "captures", "compose", "Inner transforms may use values of outer levels.", tiny, true,
                  differentiable, captures});
  laws.push_back({68, "no_confusion", "compose",
                  "One value may carry derivatives of several levels without mixing them.", tiny, true,
                  differentiable, no_confusion});
}

}  // namespace lamella::verify
