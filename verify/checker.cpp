// A random direction first; columns and rows only where it disagrees.
#include "lamella/verify/checker.h"

#include <algorithm>
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/compare.h"
#include "lamella/verify/tolerances.h"

namespace lamella::verify {

namespace {

constexpr size_t kManyShakes = 32;
constexpr int kWideStep = -38;  ///< exponent of a direction's step in f128: error 2^-76 f''', roundoff 2^-75

bool finite_part(f128 v) { return v - v == 0; }
bool all_finite(const Reals& v) { return std::ranges::all_of(v, finite_part); }

/// The function of its floating and complex inputs alone.
struct Active {
  Function f;
  Tensors inputs;
  Tensors operator()(const Tensors& xs) const {
    Tensors all = inputs;
    size_t at = 0;
    for (Tensor& t : all)
      if (t.defined() && is_inexact(t.dtype())) t = xs[at++];
    return f(all);
  }
};

Tensors inexact_of(const Tensors& ts) {
  Tensors out;
  for (const Tensor& t : ts)
    if (t.defined() && is_inexact(t.dtype())) out.push_back(t);
  return out;
}

uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Where 64 bits are enough: f128 is emulated, at 30 to 100 ns an operation.
using Fast = std::vector<long double>;
Fast fast(const Reals& v) { return Fast(v.begin(), v.end()); }

Reals unit(size_t n, size_t j) {
  Reals out(n);
  out[j] = 1;
  return out;
}

}  // namespace

std::vector<GradcheckPart> parts_of(const Tensors& ts) {
  std::vector<GradcheckPart> out;
  for (size_t k = 0; k < ts.size(); ++k) {
    if (!ts[k].defined() || !is_inexact(ts[k].dtype())) continue;
    for (int64_t i = 0; i < ts[k].numel(); ++i) {
      Dims at(ts[k].rank());
      int64_t flat = i;
      for (int d = ts[k].rank() - 1; d >= 0; --d) at[d] = flat % ts[k].size(d), flat /= ts[k].size(d);
      out.push_back({int(k), at, false});
      if (is_complex(ts[k].dtype())) out.push_back({int(k), at, true});
    }
  }
  return out;
}

Tensors tensors_of(const Reals& flat, const Tensors& like) {
  Tensors out;
  auto from = flat.begin();
  for (const Tensor& t : like) {
    const auto to = from + t.numel() * (is_complex(t.dtype()) ? 2 : 1);
    if (std::all_of(from, to, [](f128 v) { return v == 0; })) {
      out.emplace_back();
    } else {
      out.push_back(make_tensor(t.sizes(), t.dtype(), t.device()));
      write_parts(out.back(), &*from);
    }
    from = to;
  }
  return out;
}

Checker::Checker(const Function& f, const Tensors& inputs, const GradcheckOptions& options, double units,
                 std::string label, GradcheckReport& report)
    : f_(f),
      active_function_(Active{f, inputs}),
      inputs_(inputs),
      xs_(inexact_of(inputs)),
      ys_(f(inputs)),
      options_(options),
      units_(units),
      label_(std::move(label)),
      report_(report),
      n_(flatten(xs_).size()),
      m_(flatten(ys_).size()),
      own_(f, inputs, OracleKind::Differences) {
  for (const Tensors* list : {&xs_, &ys_})
    for (const Tensor& t : *list) {
      u_ = std::max(u_, unit_roundoff(t.dtype()));
      tiny_ = std::max(tiny_, 4 * smallest_number(t.dtype()));
    }
  for (Tensor& y : ys_) y = plain_copy(y);
  odd_rows_.resize(values()), odd_columns_.resize(variables());
  t_ = direction(own_.point(), 1);
}

Reals Checker::direction(const Reals& scale, uint64_t salt) const {
  Reals out(scale.size());
  for (size_t j = 0; j < out.size(); ++j) {
    const uint64_t w = mixed(options_.seed * 977 + salt * 131071 + j);
    const double size = std::ldexp(1 + double(w % 32) / 32, std::max(0, std::ilogb(double(scale[j]))));
    out[j] = w >> 63 ? size : -size;
  }
  return out;
}

bool Checker::same_values(const Reals& wide) const {
  const Fast mine = fast(flatten(ys_)), other = fast(wide);
  if (mine.size() != other.size()) return false;
  long double largest = 0x1p-60;
  for (const long double v : mine)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const long double most = std::max(0x1p-10, 256 * u_) * largest;
  for (size_t i = 0; i < mine.size(); ++i)
    if (std::isfinite(mine[i]) && !(std::fabs(mine[i] - other[i]) <= most)) return false;
  return true;
}

void Checker::choose_oracle() {
  oracle_ = &own_;
  if (options_.oracle == OracleKind::Differences) return;
  try {
    wide_.emplace(f_, inputs_, OracleKind::Reference);
    Reals right = wide_->point(), left = right;
    const f128 h = ldexpq(1, kWideStep);
    for (size_t j = 0; j < right.size(); ++j) right[j] += h * t_[j], left[j] -= h * t_[j];
    right_ = (*wide_)(right), left_ = (*wide_)(left);
    // Next to a kink or an edge of the domain one side alone may be far off.
    if (same_values(right_) || same_values(wide_->values())) oracle_ = &*wide_;
    else report_.why_not_reference = label_ + "its values differ there";
  } catch (const std::exception& e) { report_.why_not_reference = label_ + e.what(); }
  LAMELLA_CHECK(oracle_ != &own_ || options_.oracle != OracleKind::Reference, Usage,
                "gradcheck: the function does not run on the Reference column: {}",
                report_.why_not_reference);
}

Reals Checker::push(const Reals& t) {
  if (forward_) return flatten(jvp(active_function_, xs_, tensors_of(t, xs_)).tangents);
  Reals out(values());
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t j = 0; j < t.size(); ++j)
      if (t[j] != 0) out[i] += rows_[i][j] * t[j];
  return out;
}

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

/// Whether `gap` exceeds `rest` + `rounding` x the condition of the entry; four random perturbations say no
/// quickly, and now and then all are small by chance: only many say yes. The bound goes to `bound`.
bool Checker::exceeds(f128 gap, size_t i, size_t j, f128 rounding, f128 rest, f128& condition_of,
                      double& bound) {
  for (const size_t shakes : {kShakes, kManyShakes}) {
    condition_of = condition(j, shakes)[i];
    bound = double(rounding * condition_of + rest);
    if (gap <= f128(bound)) return false;
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

void Checker::wrong(GradcheckEntry e) {
  if (report_.wrong++ < options_.most_findings) report_.findings.push_back(std::move(e));
}

void Checker::raised(const std::string& check, const std::exception& e) {
  GradcheckEntry entry;
  entry.check = label_ + check;
  entry.raised = e.what();
  wrong(std::move(entry));
}

std::string Checker::bound_text(double condition, f128 error, f128 step) const {
  return format("{} roundings of 2^{} x condition {} + error of the difference {} (last step 2^{})", units_,
                std::ilogb(u_), condition, double(error), std::ilogb(double(step)));
}

/// Whether one-sided slopes agree along t, roughly: a kink is looked at closely elsewhere. In f64 where that
/// is the function's own dtype, which costs little.
bool Checker::straight(const Reals& t, const Reals& slope) {
  const bool in_double = own_.roundoff() == 0x1p-53;
  const RealFunction& g = in_double ? own_ : *oracle_;
  const long double h = std::ldexp(1.0L, in_double ? -20 : kWideStep);
  Reals right = g.point(), left = right;
  for (size_t j = 0; j < t.size(); ++j) right[j] += f128(h) * t[j], left[j] -= f128(h) * t[j];
  const Fast y = fast(in_double ? flatten(ys_) : g.values()), a = fast(g(right)), b = fast(g(left)),
             d = fast(slope);
  const long double least = in_double ? 0x1p-50 : 0x1p-60;
  for (size_t i = 0; i < y.size(); ++i)
    if (!(std::fabs(a[i] + b[i] - 2 * y[i]) <= h * std::fabs(d[i]) * 0x1p-10L + least * std::fabs(y[i])))
      return false;
  return true;
}

/// jvp along a random combination of columns against the f128 difference.
bool Checker::agrees(size_t first, size_t last) {
  const bool all = first == 0 && last == variables();
  Reals t = t_;
  for (size_t j = 0; j < t.size(); ++j)
    if (j < first || j >= last) t[j] = 0;
  const f128 h = ldexpq(1, kWideStep);
  const Reals got = all ? jt_ : push(t);
  Reals want(got.size());
  if (all)
    for (size_t i = 0; i < want.size(); ++i) want[i] = (right_[i] - left_[i]) * ldexpq(1, -kWideStep - 1);
  else want = central(*oracle_, t, h);
  if (!all_finite(got) || !all_finite(want)) return false;
  const auto within = [&](const Reals& condition) {
    for (size_t i = 0; i < want.size(); ++i)
      if (fabsq(got[i] - want[i]) > f128(units_ * u_) * fabsq(condition[i])) return false;
    return true;
  };
  const bool in_double = own_.roundoff() == 0x1p-53;
  const auto conditioned = [&](size_t shakes) {
    return conditions(in_double ? own_ : *oracle_, t, in_double ? 0x1p-14 : 0x1p-38, shakes);
  };
  if (!within(want) && !within(conditioned(1)) && !within(conditioned(kShakes))) return false;
  return straight(t, want);
}

/// Bisects to the columns that need care.
void Checker::suspect(size_t first, size_t last) {
  if (first == last || agrees(first, last)) return;
  if (last - first == 1) return check_column(first);
  const size_t middle = first + (last - first) / 2;
  suspect(first, middle);
  suspect(middle, last);
}

void Checker::check_column(size_t j) {
  const Reals got = column(j);
  const Slope& s = slope_of(j);
  for (size_t i = 0; i < got.size(); ++i) judge(i, j, got[i], s);
}

void Checker::judge(size_t i, size_t j, f128 got, const Slope& s) {
  const Kink kink = s.kink[i];
  double bound = 0;
  std::string bound_from;
  if (kink != Kink::Smooth) {
    note_kink(i, j, got, s);
    if (kink == Kink::NotDifferentiable) return;
    const f128 slack = units_ * u_ * (fabsq(s.low[i]) + fabsq(s.high[i]));
    if (got >= s.low[i] - slack && got <= s.high[i] + slack) return;
    bound = double((s.high[i] - s.low[i]) / 2 + slack);
    bound_from = format("slopes on both sides lie within [{}, {}]", double(s.low[i]), double(s.high[i]));
  } else {
    const f128 gap = fabsq(got - s.value[i]), rounding = units_ * u_;
    if (gap <= rounding * fabsq(s.value[i]) + s.error[i] + tiny_) return;
    f128 c;
    if (!exceeds(gap, i, j, rounding, s.error[i] + tiny_, c, bound)) return;
    bound_from = bound_text(double(c), s.error[i], s.step);
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
  Reals sum(values()), size(values());
  for (size_t j = 0; j < variables(); ++j)
    for (size_t i = 0; i < sum.size(); ++i) {
      const f128 term = column(j)[i] * t_[j];
      sum[i] += term, size[i] += fabsq(term);
    }
  for (size_t i = 0; i < sum.size(); ++i) {
    f128 bound = 2 * units_ * u_ * size[i];
    const f128 gap = fabsq(jt_[i] - sum[i]);
    if (gap <= bound || !finite_part(sum[i])) continue;
    for (size_t j = 0; j < variables(); ++j)
      bound += 2 * units_ * u_ * fabsq(condition(j, kManyShakes)[i] * t_[j]);
    if (gap <= bound) continue;
    GradcheckEntry e =
        entry(forward_ ? "jvp along a random direction" : "vjp", i, variables(), jt_[i], sum[i]);
    e.bound = double(bound);
    e.bound_from = "roundings of the sum over unit directions: jvp must be linear in its tangent";
    wrong(std::move(e));
  }
}

bool Checker::adjoint_holds() const {
  const Reals wide = direction(Reals(values(), 1), 2);
  const Fast u = fast(wide), pulled = fast(pull(wide)), j_t = fast(jt_), t = fast(t_);
  long double left = 0, right = 0, size = 0;
  for (size_t i = 0; i < u.size(); ++i) left += u[i] * j_t[i], size += std::fabs(u[i] * j_t[i]);
  for (size_t j = 0; j < pulled.size(); ++j) right += pulled[j] * t[j], size += std::fabs(pulled[j] * t[j]);
  return std::fabs(left - right) <= units_ * u_ * size;
}

void Checker::compare_rows(const std::string& check, size_t i, const Reals& row) {
  for (size_t j = 0; j < row.size(); ++j) {
    const f128 want = column(j)[i], gap = fabsq(row[j] - want), rounding = 2 * units_ * u_;
    if (gap <= rounding * fabsq(want) + tiny_) continue;
    const Slope& s = slope_of(j);
    if (s.kink[i] == Kink::NotDifferentiable) odd_rows_[i] = odd_columns_[j] = true;
    if (odd_rows_[i] && odd_columns_[j] && s.kink[i] == Kink::NotDifferentiable) continue;
    f128 c;
    double bound;
    if (!exceeds(gap, i, j, rounding, tiny_, c, bound)) continue;
    GradcheckEntry e = entry(check, i, j, row[j], want);
    e.kink = s.kink[i];
    e.bound = bound;
    e.bound_from = format("2 x {} roundings of 2^{} x condition {}; expected is the jvp's entry", units_,
                          std::ilogb(u_), double(c));
    undecided_.push_back(std::move(e));
    undecided_at_.emplace_back(i, j);
  }
}

void Checker::check_pullback() {
  if (!options_.every_entry && all_finite(jt_) && adjoint_holds()) return;
  const size_t before = undecided_.size();
  for (size_t i = 0; i < values(); ++i) compare_rows("vjp", i, pull(unit(values(), i)));
  if (undecided_.size() > before || !all_finite(jt_)) return;
  const Reals u = direction(Reals(values(), 1), 2), pulled = pull(u);
  for (size_t j = 0; j < variables(); ++j) {
    f128 sum = 0, size = 0;
    for (size_t i = 0; i < values(); ++i) sum += u[i] * column(j)[i], size += fabsq(u[i] * column(j)[i]);
    if (fabsq(pulled[j] - sum) <= f128(4 * units_ * u_) * size || !finite_part(sum)) continue;
    for (size_t i = 0; i < values(); ++i) size += fabsq(u[i] * condition(j, kManyShakes)[i]);
    if (fabsq(pulled[j] - sum) <= f128(4 * units_ * u_) * size) continue;
    GradcheckEntry e = entry("vjp of a random cotangent", 0, j, pulled[j], sum);
    e.result = {};
    e.bound = double(f128(4 * units_ * u_) * size);
    e.bound_from = "roundings of the sum over unit cotangents: a pullback must be linear";
    wrong(std::move(e));
  }
}

void Checker::run() {
  const bool deterministic = flatten(f_(inputs_)) == flatten(ys_) || !all_finite(flatten(ys_));
  LAMELLA_CHECK(deterministic, Usage,
                "gradcheck: two calls of the function differ: it is random or keeps state");
  if (options_.vjp) try {
      pullback_.emplace(vjp(active_function_, xs_));
      if (!options_.jvp)
        for (size_t i = 0; i < values(); ++i) rows_.push_back(pull(unit(values(), i)));
    } catch (const std::exception& e) { return raised("vjp", e); }
  forward_ = options_.jvp;
  try {
    jt_ = push(t_);
  } catch (const std::exception& e) { return raised("jvp", e); }
  choose_oracle();
  if (oracle_ == &own_) report_.oracle = OracleKind::Differences;
  const bool everywhere = options_.every_entry || oracle_ == &own_;
  const size_t kinks_before = report_.not_smooth;
  if (everywhere)
    for (size_t j = 0; j < variables(); ++j) check_column(j);
  else suspect(0, variables());
  const bool found = !undecided_.empty() || report_.not_smooth > kinks_before;
  if (!found && (everywhere || !columns_.empty())) check_linear();
  if (options_.vjp && options_.jvp) check_pullback();
  conclude();
}

void Checker::conclude() {
  for (size_t k = 0; k < undecided_.size(); ++k)
    if (const auto [i, j] = undecided_at_[k]; !excused(i, j, undecided_[k])) wrong(std::move(undecided_[k]));
  undecided_.clear(), undecided_at_.clear();
}

}  // namespace lamella::verify
