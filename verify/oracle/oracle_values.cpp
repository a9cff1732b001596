// How far rounding may move values, and what may be lost or overflow on the way to them.
#include <algorithm>
#include <cmath>
#include <quadmath.h>
#include <span>
#include <utility>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

Bounds Oracle::value_bounds(double u) {
  Bounds out(y_.size());
  for (size_t i = 0; i < y_.size(); ++i) out[i] = double(fabsq(y_[i]));
  const f128 step = 8 * f128(u);
  // One result per element: all elements of a tensor may move at once.
  const bool elementwise = op_.shape == ShapeClass::Broadcast;
  if (!elementwise && x_.size() > kMostMoved) return estimated_bounds(std::move(out), step);
  size_t begin = 0;
  terms_.assign(y_.size(), 0);
  for (const Tensor& t : inputs_) {
    const size_t end = begin + part_count(t);
    const size_t stride = elementwise ? (is_complex(t.dtype()) ? 2 : 1) : 0;
    for (size_t j = begin; j < (elementwise ? begin + std::min(stride, end - begin) : end); ++j)
      for (const int sign : {1, -1}) {
        Reals x = x_;
        for (size_t k = j; k < end; k += elementwise ? stride : end) { x[k] += sign * step * x_[k]; }
        const Reals y = evaluate(x);
        for (size_t i = 0; i < y.size(); ++i) {
          out[i] += double(fabsq(y[i] - y_[i])) / (16 * u);
          terms_[i] += sign > 0 && y[i] != y_[i];
        }
      }
    begin = end;
  }
  for (double& b : out)
    if (std::isnan(b)) b = HUGE_VAL;
  make_normwise(out, values_);
  return out;
}

bool Oracle::turns(double u, size_t part, f128 by) {
  for (size_t sample = 0; sample < 16; ++sample) {
    Reals x = x_;
    // Anywhere on the way: of steps that are multiples of one another each may be nearly a whole turn.
    for (size_t k = 0; k < x.size(); ++k) x[k] += 8 * f128(u) * x[k] * unit_noise(sample, k);
    const f128 y = evaluate(x)[part];
    if (!(fabsq(y - y_[part]) <= by)) return true;
  }
  return false;
}

/// Sums of halves are kept in f32.
Bounds Oracle::tolerances(const Bounds& conditions, DType d) const {
  const Tolerance& tol = tolerance(op_.name);
  const double u = unit_roundoff(d), of_sums = is_half(d) ? unit_roundoff(DType::F32) : u;
  Bounds out = conditions;
  for (size_t i = 0; i < out.size(); ++i) {
    const double in_a_row = tol.additions > 0 ? 1 + tol.additions * terms_[i] / 2 : 0;
    out[i] *= std::max(tol.value * u, in_a_row * of_sums);
  }
  return out;
}

Tensor integers_as_numbers(const Tensor& t) {
  Tensor out = make_tensor(t.sizes(), DType::F128, Device::Reference);
  f128* to = static_cast<f128*>(out.raw_data());
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (is_integer_type<T>)
      each_element(t, [&](int64_t offset) { *to++ = f128(static_cast<const T*>(t.raw_data())[offset]); });
  });
  return out;
}

Tensor Oracle::converted_integers() const {
  const int at = op_.schema.find("dtype");
  if (at < 0 || is_none(args_[size_t(at)]) || !is_inexact(std::get<DType>(args_[size_t(at)]))) return {};
  const Tensor* const given = std::get_if<Tensor>(&args_[0]);
  if (!given || is_inexact(given->dtype()) || is_bool(given->dtype())) return {};
  return integers_as_numbers(*given);
}

Reals Oracle::reach() {
  const auto raise = [](f128& v) { v = fmaxq(1, fabsq(v)); };
  Reals x = x_;
  std::ranges::for_each(x, raise);
  const Tensor integers = converted_integers();
  if (!integers.defined()) return evaluate(x);
  std::ranges::for_each(std::span(static_cast<f128*>(integers.raw_data()), part_count(integers)), raise);
  const Value given = std::exchange(args_[0], integers);
  Reals all = evaluate(x);
  args_[0] = given;
  return all;
}

/// see NOTE: [underflow inside]
double Oracle::lost_to_underflow(DType d, std::initializer_list<const Reals*> directions) {
  const bool of_many = op_.shape != ShapeClass::Broadcast && op_.shape != ShapeClass::Linalg;
  if (directions.size() == 0 && !of_many) return 0;
  const DType of_sums = is_half(d) ? DType::F32 : d;
  f128 scale = smallest_number(of_sums) * f128(x_.size()), least = 1, later = 16;
  for (const Reals* v : directions) {
    f128 sum = 1, small = 1;
    for (const f128 t : *v) sum += fabsq(t), small = t == 0 ? small : fminq(small, fabsq(t));
    scale *= sum, least *= small;
  }
  for (const f128 v : x_) later += fabsq(v);
  if (of_many) {
    Reals x = x_;
    for (f128& v : x) v = v == 0 ? 1 : fminq(1, fabsq(v));
    f128 factor = 1;
    for (const f128 v : evaluate(x)) factor = fminq(factor, fabsq(v));
    if (least * factor >= smallest_number(of_sums) / unit_roundoff(of_sums)) return 0;
    for (const f128 v : reach()) later = fmaxq(later, fabsq(v));
  }
  for (size_t k = 1; k < directions.size(); ++k) scale *= later;
  return double(scale * later);
}

bool overflows_inside(Oracle& oracle, const Bounds& conditions, const Op& op, DType d) {
  if (op.shape == ShapeClass::Broadcast || op.shape == ShapeClass::Linalg) return false;
  for (const double c : conditions)
    if (!(c < half_range(d))) return true;
  for (const f128 v : oracle.reach())
    if (!(fabsq(v) <= largest_number(d))) return true;
  return false;
}

}  // namespace lamella::verify
