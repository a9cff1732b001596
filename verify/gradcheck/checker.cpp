// A random direction first; columns only where it disagrees.
#include "lamella/verify/gradcheck/checker.h"

#include <algorithm>
#include <cmath>
#include <quadmath.h>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/strided.h"
#include "lamella/transforms/autograd.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"

namespace lamella::verify {

namespace {

constexpr int kWideStep = -38;  ///< exponent of a direction's step in f128: error 2^-76 f''', roundoff 2^-75

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

size_t parts_in(const Tensor& t) { return size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1); }

std::vector<Rounding> roundings_of(const Tensors& ts) {
  std::vector<Rounding> out;
  for (const Tensor& t : ts) out.insert(out.end(), parts_in(t), rounding_of(t.dtype()));
  return out;
}

/// Where 64 bits are enough: f128 is emulated, at 30 to 100 ns an operation.
using Fast = std::vector<long double>;
Fast fast(const Reals& v) { return Fast(v.begin(), v.end()); }

/// NaN equals NaN.
bool same(const Reals& a, const Reals& b) {
  return std::ranges::equal(a, b, [](f128 x, f128 y) { return x == y || (x != x && y != y); });
}

}  // namespace

std::string raised_text() {
  try {
    throw;
  } catch (const std::exception& e) { return e.what(); } catch (...) {
    return "something that is not a std::exception";
  }
}

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
  DType first = DType::F64;
  for (const Tensors* list : {&xs_, &ys_})
    for (const Tensor& t : *list) {
      if (coarsest_.u == 0) first = to_real(t.dtype());
      mixed_ = mixed_ || to_real(t.dtype()) != first;
      coarsest_ = coarser(coarsest_, rounding_of(t.dtype()));
    }
  for (Tensor& y : ys_) y = plain_copy(y);
  if (mixed_) {
    inside_ = rounding_inside(f, inputs);
    own_.set_roundoff(std::max(inside_.u, 0x1p-53));
    of_result_ = roundings_of(ys_), of_variable_ = roundings_of(xs_);
  }
  odd_rows_.resize(values()), odd_columns_.resize(variables());
  t_ = direction(xs_, own_.point(), 1);
}

Reals Checker::direction(const Tensors& like, const Reals& scale, uint64_t salt) const {
  Reals out;
  for (const Tensor& tensor : like) {
    const int bits = std::min(20, -std::ilogb(unit_roundoff(tensor.dtype())) - 1);
    for (size_t n = parts_in(tensor); n > 0; --n) {
      const size_t j = out.size();
      const uint64_t w = mixed(options_.seed * 977 + salt * 131071 + j), few = w & ((1u << bits) - 1);
      const int exponent = scale.empty() ? 0 : std::max(0, std::ilogb(double(scale[j])));
      const double size = std::ldexp(1 + std::ldexp(double(few), -bits), exponent);
      out.push_back(w >> 63 ? size : -size);
    }
  }
  return out;
}

bool Checker::same_values(const Reals& wide) const {
  const Fast mine = fast(flatten(ys_)), other = fast(wide);
  if (mine.size() != other.size()) return false;
  long double largest = 0x1p-60;
  for (const long double v : mine)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const long double most = std::max(0x1p-10, 256 * coarsest_.u) * largest;
  for (size_t i = 0; i < mine.size(); ++i)
    if (std::isfinite(mine[i]) && !(std::fabs(mine[i] - other[i]) <= most)) return false;
  return true;
}

void Checker::choose_oracle() {
  oracle_ = &own_;
  if (options_.oracle == OracleKind::Differences) return;
  try {
    wide_.emplace(f_, inputs_, OracleKind::Reference);
    beside_ = sides(*wide_, t_, ldexpq(1, kWideStep));
    // Next to a kink or an edge of the domain one side alone may be far off.
    if (same_values(beside_.first) || same_values(wide_->values())) oracle_ = &*wide_;
    else report_.why_not_reference = label_ + "its values differ there";
  } catch (...) { report_.why_not_reference = label_ + raised_text(); }
  LAMELLA_CHECK(oracle_ != &own_ || options_.oracle != OracleKind::Reference, Usage,
                "gradcheck: the function does not run on the Reference column: {}",
                report_.why_not_reference);
}

Reals Checker::push(const Reals& t) {
  if (forward_)
    return under_test("jvp", [&] {
      Reals out = flatten(jvp(active_function_, xs_, tensors_of(t, xs_)).tangents);
      LAMELLA_CHECK(out.size() == m_, Shape, "got tangents of {} parts, expected {}", out.size(), m_);
      return out;
    });
  Reals out(values());
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t j = 0; j < t.size(); ++j)
      if (t[j] != 0) out[i] += rows_[i][j] * t[j];
  return out;
}

/// J^H u by backward, from each result that requires grad.
Reals Checker::pull_in_base(const Reals& u) const {
  return under_test("backward", [&] {
    Tensors leaves;
    for (const Tensor& x : xs_) leaves.push_back(requires_grad(strided_copy(x)));
    Tensors ys = active_function_(leaves);
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    const Tensors us = tensors_of(u, ys_);
    LAMELLA_CHECK(ys.size() == us.size(), Shape, "got {} results, expected {}", ys.size(), us.size());
    for (size_t k = 0; k < ys.size(); ++k)
      if (us[k].defined() && is_grad_required(ys[k])) backward(ys[k], us[k]);
    for (Tensor& leaf : leaves) leaf = grad_of(leaf).defined() ? grad_of(leaf) : zeros_like(detach(leaf));
    Reals out = flatten(leaves);
    LAMELLA_CHECK(out.size() == n_, Shape, "got gradients of {} parts, expected {}", out.size(), n_);
    return out;
  });
}

Reals Checker::pull(const Reals& u) const {
  if (in_base_) return pull_in_base(u);
  return under_test("vjp", [&] {
    Reals out = flatten(pullback_->pullback(tensors_of(u, ys_)));
    LAMELLA_CHECK(out.size() == n_, Shape, "got gradients of {} parts, expected {}", out.size(), n_);
    return out;
  });
}

/// Whether one-sided slopes agree along t: the values on both sides of a smooth point add up to twice its own
/// but for h^2 f''. A kink of 2^-28 of the slope or more is looked at closely elsewhere.
bool Checker::straight(const std::pair<Reals, Reals>& beside, const Reals& slope) const {
  const Reals& y = oracle_->values();
  for (size_t i = 0; i < y.size(); ++i) {
    using Short = long double;
    const Short bend = Short((beside.first[i] - y[i]) + (beside.second[i] - y[i])), d = Short(slope[i]);
    if (!(std::fabs(bend) <= std::fabs(d) * 0x1p-66L + std::fabs(Short(y[i])) * 0x1p-90L)) return false;
  }
  return true;
}

/// Whether all gaps are roundings, times the condition of J t. It is measured in f64 where that is the
/// function's own dtype, which costs little; but that step of 2^-14 may leave the domain or come near a pole,
/// so it speaks for gaps of up to 2^6 roundings of the slope itself, and beyond them the oracle does.
bool Checker::within_condition(const Reals& got, const Reals& want, const Reals& t) const {
  Fast gaps(want.size()), sizes = fast(want);
  for (size_t i = 0; i < gaps.size(); ++i) gaps[i] = std::fabs((long double)(got[i] - want[i]));
  const long double rounding = units_ * coarsest_.u;
  const auto within = [&](const Fast& condition, std::optional<long double> most) {
    for (size_t i = 0; i < gaps.size(); ++i) {
      long double c = std::fabs(condition[i]);
      if (most) c = std::min(c, *most * std::fabs(sizes[i]));
      if (!std::isfinite(condition[i]) || !(gaps[i] <= rounding * c)) return false;
    }
    return true;
  };
  if (within(sizes, 1)) return true;
  if (own_.roundoff() == 0x1p-53)
    for (const size_t shakes : {size_t(1), kShakes})
      if (within(fast(conditions(own_, t, 0x1p-14, shakes)), 64)) return true;
  return within(fast(conditions(*oracle_, t, ldexpq(1, kWideStep), kShakes)), {});
}

/// jvp along a random combination of columns against the f128 difference.
bool Checker::agrees(size_t first, size_t last) {
  const bool all = first == 0 && last == variables();
  Reals t = t_;
  for (size_t j = 0; j < t.size(); ++j)
    if (j < first || j >= last) t[j] = 0;
  const Reals got = all ? jt_ : push(t);
  const auto beside = all ? beside_ : sides(*oracle_, t, ldexpq(1, kWideStep));
  Reals want(got.size());
  for (size_t i = 0; i < want.size(); ++i)
    want[i] = (beside.first[i] - beside.second[i]) * ldexpq(1, -kWideStep - 1);
  return all_finite(got) && all_finite(want) && within_condition(got, want, t) && straight(beside, want);
}

/// Whether no variable of these is so small beside another that its column is lost in their sum.
bool Checker::alike(size_t first, size_t last) const {
  const auto [least, most] = std::minmax_element(t_.begin() + long(first), t_.begin() + long(last),
                                                 [](f128 a, f128 b) { return fabsq(a) < fabsq(b); });
  return double(fabsq(*most)) <= 0x1p10 * double(fabsq(*least));
}

/// Bisects to the columns that need care, and to variables of one magnitude.
void Checker::suspect(size_t first, size_t last) {
  if (first == last) return;
  const bool fine = agrees(first, last);
  if (fine && alike(first, last)) return;
  if (last - first == 1) return check_column(first);
  const size_t middle = first + (last - first) / 2;
  suspect(first, middle);
  suspect(middle, last);
}

/// What derivative code answers before anything is compared.
void Checker::first_derivatives() {
  if (options_.vjp) {
    under_test("vjp", [&] { pullback_.emplace(vjp(active_function_, xs_)); });
    if (!options_.jvp)
      for (size_t i = 0; i < values(); ++i) rows_.push_back(pull(unit(values(), i)));
  }
  forward_ = options_.jvp;
  jt_ = push(t_);
  if (all_finite(jt_)) return;
  t_ = direction(xs_, {}, 1);
  for (f128& v : t_) v /= 4;  // the sum may overflow where no column does
  jt_ = push(t_);
}

void Checker::check() {
  first_derivatives();
  choose_oracle();
  if (oracle_ == &own_) report_.oracle = OracleKind::Differences;
  const bool everywhere = options_.every_entry || mixed_ || oracle_ == &own_;
  const size_t kinks_before = report_.not_smooth;
  if (everywhere)
    for (size_t j = 0; j < variables(); ++j) check_column(j);
  else suspect(0, variables());
  const bool found = !undecided_.empty() || report_.not_smooth > kinks_before;
  if (!found && (everywhere || !columns_.empty())) check_linear();
  if (options_.vjp && options_.jvp) check_pullback();
  if (options_.backward && label_.empty()) check_backward();
}

void Checker::run() {
  LAMELLA_CHECK(same(flatten(f_(inputs_)), flatten(ys_)), Usage,
                "gradcheck: two calls of the function differ: it is random or keeps state");
  try {
    check();
    ran_ = true;
  } catch (const DerivativeRaised& r) { wrong(raised_entry(label_, r)); }
  conclude();
}

void Checker::conclude() {
  for (size_t k = 0; k < undecided_.size(); ++k)
    if (const auto [i, j] = undecided_at_[k]; !excused(i, j, undecided_[k])) wrong(std::move(undecided_[k]));
  undecided_.clear(), undecided_at_.clear();
}

}  // namespace lamella::verify
