// Evaluating a user's function on real parts, and differences of it.
#include "lamella/verify/oracle/real_function.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/modes.h"

namespace lamella::verify {

std::string_view name(Kink k) {
  constexpr std::string_view kNames[] = {"smooth", "one-sided derivatives differ", "not differentiable"};
  return kNames[int(k)];
}
std::string_view name(OracleKind k) {
  return k == OracleKind::Reference ? "f128 on the Reference column" : "differences in its own dtype";
}

void write_parts(const Tensor& t, const f128* from) {
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const p = static_cast<T*>(t.raw_data());
    each_element(t, [&](int64_t offset) {
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        p[offset] = T(R(from[0]), R(from[1]));
        from += 2;
      } else if constexpr (is_floating_type<T>) p[offset] = T(*from++);
    });
  });
}

namespace {

f128 round_to(DType d, f128 v) {
  switch (to_real(d)) {
    case DType::F16: return float(f16(v));
    case DType::BF16: return float(bf16(v));
    case DType::F32: return float(v);
    case DType::F64: return double(v);
    default: return v;
  }
}

bool is_finite(f128 v) { return v - v == 0; }
}  // namespace

RealFunction::RealFunction(const Function& f, const Tensors& inputs, OracleKind kind)
    : f_(f), kind_(kind), u_(0) {
  for (const Tensor& t : inputs) {
    inputs_.push_back(!t.defined()                              ? t
                      : kind == OracleKind::Reference           ? to_reference(t)
                      : t.is_contiguous() || overlaps_itself(t) ? plain_copy(t)
                                                                : strided_copy(t));
    if (!t.defined() || !is_inexact(t.dtype())) continue;
    const Reals parts = flatten({t});
    x_.insert(x_.end(), parts.begin(), parts.end());
    u_ = std::max(u_, unit_roundoff(inputs_.back().dtype()));
    dtypes_.insert(dtypes_.end(), size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1),
                   inputs_.back().dtype());
  }
  set_roundoff(u_);
}

void RealFunction::set_roundoff(double u) {
  u_ = u;
  shake_ = std::ldexp(1, int(0.4 * std::log2(u)));
}

f128 RealFunction::representable(size_t j, f128 v) const { return round_to(dtypes_[j], v); }

void RealFunction::place(const Reals& x) const {
  size_t at = 0;
  for (const Tensor& t : inputs_) {
    if (!t.defined() || !is_inexact(t.dtype())) continue;
    write_parts(t, x.data() + at);
    at += size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1);
  }
}

Reals RealFunction::evaluate(const Reals& x) const {
  place(x);
  if (kind_ == OracleKind::Differences) return flatten(f_(inputs_));
  const ReferenceRun there;
  return flatten(f_(inputs_));
}

Reals RealFunction::operator()(const Reals& x) const { return evaluate(x); }

Reals RealFunction::shaken(const Reals& x, size_t sample, double size) const {
  place(x);
  std::optional<ReferenceRun> there;
  if (kind_ == OracleKind::Reference) there.emplace();
  Shaken mode(size, sample);
  const Level level(mode);
  return flatten(f_(inputs_));
}

const Reals& RealFunction::values() const {
  if (y_.empty()) y_ = evaluate(x_);
  return y_;
}

const Reals& RealFunction::noise() const {
  if (!noise_.empty()) return noise_;
  noise_ = values();
  for (f128& v : noise_) v = fabsq(v);
  for (size_t s = 0; s < kShakes; ++s) {
    const Reals y = shaken(x_, s);
    for (size_t i = 0; i < y.size(); ++i)
      if (is_finite(y[i])) noise_[i] = fmaxq(noise_[i], fabsq(y_[i]) + fabsq(y[i] - y_[i]) / shake_);
  }
  for (f128& v : noise_) v *= 4 * f128(u_);
  return noise_;
}

std::pair<Reals, Reals> sides(const RealFunction& g, const Reals& direction, f128 h) {
  Reals right = g.point(), left = right;
  for (size_t j = 0; j < right.size(); ++j)
    if (direction[j] != 0) right[j] += h * direction[j], left[j] -= h * direction[j];
  return {g(right), g(left)};
}

Reals conditions(const RealFunction& g, const Reals& direction, f128 step, size_t shakes) {
  Reals right = g.point(), left = right;
  for (size_t j = 0; j < right.size(); ++j)
    if (direction[j] != 0) right[j] += step * direction[j], left[j] -= step * direction[j];
  const auto slope = [&](const Reals& a, const Reals& b) {
    Reals out(a.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = (a[i] - b[i]) / (2 * step);
    return out;
  };
  const Reals plain = slope(g(right), g(left));
  Reals out(plain.size());
  for (size_t s = 0; s < shakes; ++s) {
    double size = g.shake_size();
    const auto moved = [&] { return slope(g.shaken(right, s, size), g.shaken(left, s, size)); };
    Reals d = moved();
    if (!std::ranges::all_of(d, is_finite)) size *= 0x1p-8, d = moved();  // an operand left its domain
    for (size_t i = 0; i < out.size(); ++i) {
      const f128 change = fabsq(d[i] - plain[i]) / size;
      out[i] = is_finite(change) ? fmaxq(out[i], change) : kInfinity;
    }
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] += fabsq(plain[i]);
  return out;
}

Rounding rounding_of(DType d) { return {unit_roundoff(d), 4 * smallest_number(d)}; }
Rounding coarser(Rounding a, Rounding b) { return {std::max(a.u, b.u), std::max(a.tiny, b.tiny)}; }

namespace {
/// Notes what operators leave, whatever they were given.
class Grains : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "grains"; }
  void call(Frame& frame, int key) override {
    const Op& op = *frame.op;
    if (op.composite) return op.composite(frame);
    const Below below(key);
    lamella::call(frame);
    if (op.is_view() || frame.list) return;
    for (int k = 0; k < op.schema.n_results; ++k)
      coarsest = coarser(coarsest, rounding_of(frame.results[k].dtype()));
  }
  Rounding coarsest;
};
}  // namespace

Rounding rounding_inside(const Function& f, const Tensors& inputs) {
  Grains mode;
  const Level level(mode);
  f(inputs);
  return mode.coarsest;
}

namespace {

/// Three steps h, h/2, h/4 to both sides of variable j.
struct Ladder {
  f128 h;
  f128 right_step[3], left_step[3];
  Reals right[3], left[3];
};

Ladder climb(const RealFunction& g, size_t j, f128 h) {
  Ladder out;
  out.h = h;
  const f128 x = g.point()[j];
  Reals at = g.point();
  for (int k = 0; k < 3; ++k) {
    at[j] = g.representable(j, x + ldexpq(h, -k));
    out.right_step[k] = at[j] - x;
    out.right[k] = g(at);
    at[j] = g.representable(j, x - ldexpq(h, -k));
    out.left_step[k] = x - at[j];
    out.left[k] = g(at);
  }
  return out;
}

/// One entry on one ladder.
struct Rung {
  f128 value, error, low, high;
  Kink kink;
};

Rung read(const Ladder& l, size_t i, f128 y, f128 noise) {
  const f128 floor = noise * 4 / l.h;  // of one slope at the shortest step
  if (is_finite(y) && l.right[0][i] == y && l.left[0][i] == y && l.right[2][i] == y && l.left[2][i] == y)
    return {0, 2 * floor, -2 * floor, 2 * floor, Kink::Smooth};
  f128 d[3], up[3], down[3], bend[3];
  bool finite = is_finite(y);
  for (int k = 0; k < 3; ++k) {
    const f128 a = l.right[k][i], b = l.left[k][i];
    finite = finite && is_finite(a) && is_finite(b);
    d[k] = (a - b) / (l.right_step[k] + l.left_step[k]);
    up[k] = (a - y) / l.right_step[k], down[k] = (y - b) / l.left_step[k];
    bend[k] = fabsq(up[k] - down[k]);
  }
  if (!finite) return {d[2], kInfinity, 0, 0, Kink::NotDifferentiable};
  const f128 fine = (4 * d[1] - d[0]) / 3, finer = (4 * d[2] - d[1]) / 3;
  Rung r{(16 * finer - fine) / 15, fabsq(finer - fine) + 2 * floor, 0, 0, Kink::Smooth};
  const f128 slack = fabsq(up[2] - up[1]) + fabsq(down[2] - down[1]) + 2 * floor;
  r.low = fminq(up[2], down[2]) - slack, r.high = fmaxq(up[2], down[2]) + slack;
  const f128 steep = fmaxq(fabsq(up[2]), fabsq(down[2])), flat = fmaxq(fabsq(up[0]), fabsq(down[0]));
  if (steep > f128(1.2) * flat && r.error > f128(0.05) * steep + 16 * floor) r.kink = Kink::NotDifferentiable;
  if (bend[2] <= 16 * floor || bend[2] <= f128(0.5) * bend[0]) return r;
  r.kink =
      steep > f128(1.2) * flat && bend[2] > f128(1.2) * bend[0] ? Kink::NotDifferentiable : Kink::OneSided;
  return r;
}

/// Steps to try: for a variable of order one, then for a small one on its own scale, then ever shorter.
std::vector<f128> steps_for(f128 x, double u) {
  const double bits = std::log2(u);
  const f128 size = fabsq(x), scale = fmaxq(1, size);
  std::vector<f128> out;
  for (const double part : {0.19, 0.34, 0.49}) {
    const int e = int(part * bits);
    out.push_back(ldexpq(ldexpq(1, std::ilogb(double(scale))), e));
    if (x != 0 && size < 1) out.push_back(ldexpq(ldexpq(1, std::ilogb(double(size))), e));
  }
  std::ranges::sort(out, std::greater<>());
  return out;
}

}  // namespace

Slope slope(const RealFunction& g, size_t j) {
  const Reals &y = g.values(), &noise = g.noise();
  const size_t n = y.size();
  Slope out{Reals(n), Reals(n, kInfinity), Reals(n), Reals(n), std::vector<Kink>(n, Kink::NotDifferentiable),
            0};
  const double u = g.roundoff(j), aim = std::sqrt(u) * std::pow(u, 0.12);  // f64: 2^-33
  for (const f128 h : steps_for(g.point()[j], u)) {
    const Ladder ladder = climb(g, j, h);
    if (ladder.right_step[2] == 0 || ladder.left_step[2] == 0) break;  // below the variable's resolution
    bool enough = true;
    for (size_t i = 0; i < n; ++i) {
      const Rung r = read(ladder, i, y[i], noise[i]);
      const bool smooth = r.kink == Kink::Smooth, had = out.kink[i] == Kink::Smooth;
      enough = enough && (smooth || had) &&
               fminq(r.error, out.error[i]) <= fmaxq(aim * fabsq(r.value), 32 * noise[i] / h);
      if (had ? !smooth || r.error >= out.error[i] : false) continue;
      out.value[i] = r.value, out.error[i] = r.error, out.kink[i] = r.kink;
      out.low[i] = r.low, out.high[i] = r.high;
    }
    out.step = h;
    if (enough) break;
  }
  return out;
}

}  // namespace lamella::verify
