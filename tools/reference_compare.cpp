// Elements as complex doubles, which hold every floating dtype of a pack exactly.
#include "reference_compare.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>

#include "lamella/core/visit.h"
#include "lamella/ops/functions/copy.h"

namespace lamella::tools {

namespace {
double tolerance(DType dtype) {
  switch (to_real(dtype)) {
    case DType::F64: return 1e-9;
    case DType::F32: return 1e-5;
    case DType::F16: return 2e-3;
    case DType::BF16: return 1.6e-2;
    default: return 0;
  }
}

template <class T> c128 widened(T v) {
  if constexpr (is_complex_type<T>) return c128(v);
  else return c128(double(v));
}

bool same_part(double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return got == want || (std::isfinite(got) && std::isfinite(want));
}

double largest_finite_part(const auto* want, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    for (const double part : {widened(want[i]).real(), widened(want[i]).imag()})
      if (std::isfinite(part)) largest = std::max(largest, std::abs(part));
  return largest;
}

bool close(c128 got, c128 want, double bound) {
  if (!same_part(got.real(), want.real()) || !same_part(got.imag(), want.imag())) return false;
  const auto apart = [](double a, double b) {
    return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : 0;
  };
  return std::hypot(apart(got.real(), want.real()), apart(got.imag(), want.imag())) <= bound;
}

template <class T> std::string element(T v) {
  std::ostringstream out;
  out << std::setprecision(17);
  if constexpr (is_complex_type<T>) out << v.real() << (std::signbit(v.imag()) ? "" : "+") << v.imag() << "i";
  else if constexpr (std::is_integral_v<T>) out << int64_t(v);
  else out << double(v);
  return out.str();
}

/// "[1,0]"
std::string position(int64_t flat, Ints sizes) {
  Dims at(int(sizes.size()));
  for (int d = int(sizes.size()) - 1; d >= 0; --d) {
    at[d] = flat % sizes[size_t(d)];
    flat /= sizes[size_t(d)];
  }
  return format("{}", at);
}

template <class T> std::string compare(const Tensor& got, const Tensor& want) {
  const int64_t n = want.numel();
  const T *g = static_cast<const T*>(got.raw_data()), *w = static_cast<const T*>(want.raw_data());
  const double t = tolerance(want.dtype());
  double bound = 0;
  if constexpr (!std::is_integral_v<T>) bound = t * std::max(1.0, largest_finite_part(w, n));
  for (int64_t i = 0; i < n; ++i) {
    bool fine;
    if constexpr (std::is_integral_v<T>) fine = g[i] == w[i];
    else fine = close(widened(g[i]), widened(w[i]), bound);
    if (!fine)
      return format("at {} of {}: got {}, expected {} within {}", position(i, want.sizes()), type_str(want),
                    element(g[i]), element(w[i]), bound);
  }
  return "";
}
}  // namespace

std::string beyond_tolerance(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || !std::ranges::equal(got.sizes(), want.sizes()))
    return format("got {}, expected {}", type_str(got), type_str(want));
  const Tensor g = contiguous(got), w = contiguous(want);
  return visit_dtype(want.dtype(), [&]<class Tag>(Tag) -> std::string {
    using T = typename Tag::type;
    if constexpr (std::is_same_v<T, f128> || std::is_same_v<T, c256>) return "an internal dtype";
    else return compare<T>(g, w);
  });
}

uint64_t ulps_apart(uint64_t a, uint64_t b, DType dtype) {
  const int width = dtype == DType::F32 ? 32 : 64;
  const uint64_t sign = uint64_t{1} << (width - 1),
                 infinity = width == 32 ? 0x7f800000u : 0x7ff0000000000000u;
  const uint64_t size_a = a & ~sign, size_b = b & ~sign;
  const bool nan_a = size_a > infinity, nan_b = size_b > infinity;
  if (nan_a || nan_b) return nan_a && nan_b ? 0 : std::numeric_limits<uint64_t>::max();
  if (((a ^ b) & sign) == 0) return size_a > size_b ? size_a - size_b : size_b - size_a;
  return size_a + size_b;  // across zero; cannot overflow, since both are below 2^63
}

}  // namespace lamella::tools
