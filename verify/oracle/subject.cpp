// Functions under test and their directions.
#include "lamella/verify/oracle/subject.h"

#include <algorithm>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"

namespace lamella::verify {

bool both_ways(const Op& op) { return has_jvp(op) && has_vjp(op); }

namespace {
/// Calls f for each real part of the inexact tensors.
template <class F> void each_part(const Tensors& ts, F&& f) {
  for (const Tensor& t : ts) {
    if (!is_inexact(t.dtype())) continue;
    visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const T* const from = static_cast<const T*>(t.raw_data());
      each_element(t, [&](int64_t offset) {
        if constexpr (is_complex_type<T>) f(from[offset].real()), f(from[offset].imag());
        else if constexpr (is_half_type<T>) f(float(from[offset]));
        else f(from[offset]);
      });
    });
  }
}
}  // namespace

bool finite(const Tensors& ts) {
  bool all = true;
  each_part(ts, [&](auto v) { all &= v - v == 0; });
  return all;
}

std::vector<long double> short_parts(const Tensors& ts) {
  size_t n = 0;
  for (const Tensor& t : ts)
    if (is_inexact(t.dtype())) n += size_t(t.numel()) * (is_complex(t.dtype()) ? 2 : 1);
  std::vector<long double> out(n);
  long double* to = out.data();
  each_part(ts, [&to](auto v) { *to++ = (long double)(v); });
  return out;
}

namespace {
void add_term(ShortSums& s, long double a, long double b) {
  s.sum += a * b, s.size += std::fabs(a * b), ++s.terms;
}

/// Most pairs are of one dtype: where they are dense, their parts lie beside each other.
void add_dense(ShortSums& s, const Tensor& a, const Tensor& b) {
  const int64_t n = a.numel() * (is_complex(a.dtype()) ? 2 : 1);
  visit_dtype(to_real(a.dtype()), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (!is_complex_type<T>) {
      using Wide = std::conditional_t<is_half_type<T>, float, T>;
      const auto *const x = static_cast<const T*>(a.raw_data()), *const y =
                                                                     static_cast<const T*>(b.raw_data());
      for (int64_t i = 0; i < n; ++i) add_term(s, (long double)(Wide(x[i])), (long double)(Wide(y[i])));
    }
  });
}
}  // namespace

std::optional<ShortSums> short_product(const Tensors& a, const Tensors& b) {
  ShortSums s;
  const bool alike = std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && std::ranges::equal(x.sizes(), y.sizes());
  });
  const auto dense = [](const Tensor& t) { return t.is_contiguous() ? t : plain_copy(t); };
  for (size_t k = 0; alike && k < a.size(); ++k)
    if (is_inexact(a[k].dtype())) add_dense(s, dense(a[k]), dense(b[k]));
  if (alike) return s;
  const std::vector<long double> x = short_parts(a), y = short_parts(b);
  if (x.size() != y.size()) return {};
  for (size_t i = 0; i < x.size(); ++i) add_term(s, x[i], y[i]);
  return s;
}

bool far_from_overflow(const Tensors& ts) {
  for (const Tensor& t : ts) {
    if (is_inexact(t.dtype()) && to_real(t.dtype()) != DType::F64) return false;
    for (const f128 v : flatten({t}))
      if (v != 0 && !(std::fabs(double(v)) >= 0.125 && std::fabs(double(v)) <= 8)) return false;
  }
  return true;
}

bool choose(Case& c, Subject& s) {
  s.slots = c.subset(c.inexact());
  if (s.slots.empty()) return false;
  s.xs = c.values(s.slots);
  s.f = c.smooth_function(s.slots);
  return true;
}

bool give_values(Subject& s, Tensors ys) {
  s.ys = std::move(ys);
  if (s.ys.empty() || !finite(s.ys)) return false;
  for (const Tensor& t : s.xs) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  for (const Tensor& t : s.ys) s.u = std::max(s.u, unit_roundoff(t.dtype()));
  return true;
}

bool prepare(Case& c, Subject& s) { return choose(c, s) && give_values(s, s.f(s.xs)); }

Tensors directions(Case& c, const Tensors& like) {
  Tensors out;
  for (const Tensor& t : like) out.push_back(c.direction(t));
  return out;
}

std::string jvp_text(const Case& c, const Subject& s) {
  return "jvp(" + cpp_function(c, s.slots, true) + ",\n    " + cpp_list(cpp_names(c, s.slots)) + ", " +
         cpp_names("t", s.xs.size()) + ")";
}
std::string vjp_text(const Case& c, const Subject& s) {
  return "vjp(" + cpp_function(c, s.slots, true) + ",\n    " + cpp_list(cpp_names(c, s.slots)) + ")";
}

std::string jvp_program(const Case& c, const Subject& s, const Tensors& ts, const Tensors& want) {
  return cpp_got_want(c, cpp_tensors("t", ts) + cpp_tensors("w", want), jvp_text(c, s) + ".tangents",
                      cpp_names("w", want.size()));
}
std::string vjp_program(const Case& c, const Subject& s, const Tensors& us, const Tensors& want) {
  return cpp_got_want(c, cpp_tensors("u", us) + cpp_tensors("w", want),
                      vjp_text(c, s) + ".pullback(" + cpp_names("u", us.size()) + ")",
                      cpp_names("w", want.size()));
}

double total(const Reals& v) {
  f128 sum = 0;
  for (const f128 x : v) sum += fabsq(x);
  return double(sum);
}

double derivative_floor(const Case& c) {
  const Tolerance& tol = tolerance(c.op.name);
  const int by = tol.floor_times.empty() ? -1 : c.op.schema.find(tol.floor_times);
  f128 largest = 1;
  if (by >= 0 && !is_none(c.args[size_t(by)]))
    for (const f128 v : flatten({std::get<Tensor>(c.args[size_t(by)])})) largest = fmaxq(largest, fabsq(v));
  return tol.derivative_floor * double(largest);
}

double over_results(const Tolerance& tol, const Tensors& ys) {
  f128 least = 0;
  if (tol.floor_over_result)
    for (const f128 y : flatten(ys))
      if (y != 0 && (least == 0 || fabsq(y) < least)) least = fabsq(y);
  return least > 0 ? double(1 / least) : 1;
}

Tensors narrowed(const Tensors& wide, const Tensors& like) {
  Tensors out;
  for (size_t k = 0; k < wide.size(); ++k) out.push_back(narrow(wide[k], like[k].dtype()));
  return out;
}

Finding beyond_rounding(const Op& op, const Subject& s, const Tensors& got, const Reals& want,
                        const Bounds& magnitude, double size, const std::vector<Reals>& parts) {
  const Tolerance& tol = tolerance(op.name);
  size_t at = 0, bound_at = 0;
  Bounds bounds = magnitude;
  for (const Reals& part : parts)
    for (size_t i = 0; i < bounds.size(); ++i) bounds[i] += double(fabsq(part[i]));
  for (double& b : bounds) b = 2 * tol.derivative * s.u * (b + tol.derivative_floor * size);
  for (const Tensor& g : got) {
    const Tensor w = unflatten(want, at, g);
    const Finding d = outside(g, w, unflatten(bounds, bound_at, g, 1));
    if (!d.empty()) return d;
  }
  return "";
}

}  // namespace lamella::verify
