// Oracle: elementary functions, each evaluated one precision above compute and rounded once.
#include "lamella/kernels/reference/pointwise.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

template <class F> void elementary(const KernelCall& call, const char* name, F f) {
  unary(call, name, [f](Inexact auto x) { return rounded_once(f, x); });
}

/// Of real numbers.
template <class F> void elementary1(const KernelCall& call, const char* name, F f) {
  unary(call, name, [f](Floating auto x) { return rounded_once(f, x); });
}
template <class F> void elementary2(const KernelCall& call, const char* name, F f) {
  binary(call, name, [f](Floating auto x, Floating auto y) { return rounded_once(f, x, y); });
}

/// x^y by repeated squaring, modulo 2^64. The inverse of an integer is an integer for 1 and -1 alone;
/// otherwise it truncates to 0.
template <Integer W> W power(W x, W y) {
  if (y < 0) {
    if (x == 1) return 1;
    if (x != W(-1)) return 0;
    return y % 2 == 0 ? W(1) : x;
  }
  W result = 1;
  for (; y > 0; y /= 2) {
    if (y % 2 != 0) result = times(result, x);
    x = times(x, x);
  }
  return result;
}

template <Floating W> W power(W x, W y) {
  return rounded_once([](auto a, auto b) { return math::pow(a, b); }, x, y);
}

/// exp(y log x), except where log has a pole: anything to the power 0 is 1, and 0 to a power with positive
/// real part is 0.
template <Complex W> W power(W x, W y) {
  if (y == W(0)) return W(1);
  if (x == W(0) && y.real() > 0) return W(0);
  return rounded_once([](auto a, auto b) { return math::pow(a, b); }, x, y);
}

void exp(const KernelCall& call) {
  elementary(call, "exp", [](auto x) { return math::exp(x); });
}

f128 less_one(f128 x) { return expm1q(x); }
double less_one(double x) { return std::expm1(x); }
/// By its series where e^x - 1 would cancel: the next term is below 2^-113 of x.
template <Complex W> W less_one(W x) {
  if (math::magnitude(x) >= decltype(x.real())(0x1p-37)) return math::exp(x) - W(1);
  return x + x * x / W(2) + x * x * x / W(6);
}

void expm1(const KernelCall& call) {
  elementary(call, "expm1", [](auto x) { return less_one(x); });
}

void log(const KernelCall& call) {
  elementary(call, "log", [](auto x) { return math::log(x); });
}

void sin(const KernelCall& call) {
  elementary(call, "sin", [](auto x) { return math::sin(x); });
}

void cos(const KernelCall& call) {
  elementary(call, "cos", [](auto x) { return math::cos(x); });
}

void tanh(const KernelCall& call) {
  elementary(call, "tanh", [](auto x) { return math::tanh(x); });
}

void sqrt(const KernelCall& call) {
  elementary(call, "sqrt", [](auto x) { return math::sqrt(x); });
}

void pow(const KernelCall& call) {
  binary(
      call, "pow", []<class W>(W x, W y) requires(!Bool<W>) { return power(x, y); });
}

f128 log_beside_one(f128 x) { return math::log1p(x); }
double log_beside_one(double x) { return std::log1p(x); }
/// By its series where 1 + x would drop the digits of x: the next term is below 2^-113 of x.
template <Complex W> W log_beside_one(W x) {
  using R = typename W::value_type;
  const W beside(R(1) + x.real(), x.imag());
  if (math::magnitude(x) >= R(0x1p-29)) return math::log(beside);
  const W series = x - x * x / W(2) + x * x * x / W(3) - x * x * x * x / W(4);
  return W(series.real(), math::log(beside).imag());
}

void log1p(const KernelCall& call) {
  elementary(call, "log1p", [](auto x) { return log_beside_one(x); });
}

void exp2(const KernelCall& call) {
  elementary(call, "exp2", [](auto x) { return math::exp2(x); });
}

void log2(const KernelCall& call) {
  elementary(call, "log2", [](auto x) { return math::log2(x); });
}

void rsqrt(const KernelCall& call) {
  elementary(call, "rsqrt", [](auto x) { return divide(decltype(x)(1), math::sqrt(x)); });
}

void sinh(const KernelCall& call) {
  elementary(call, "sinh", [](auto x) { return math::sinh(x); });
}

void cosh(const KernelCall& call) {
  elementary(call, "cosh", [](auto x) { return math::cosh(x); });
}

void atan(const KernelCall& call) {
  elementary(call, "atan", [](auto x) { return math::atan(x); });
}

void erf(const KernelCall& call) {
  elementary1(call, "erf", [](auto x) { return math::erf(x); });
}

void erfc(const KernelCall& call) {
  elementary1(call, "erfc", [](auto x) { return math::erfc(x); });
}

/// 1 / (1 + e^-x), by e^x where e^-x would overflow.
template <class W> W logistic(W x) {
  if (real_part(x) < 0) return divide(math::exp(x), W(1) + math::exp(x));
  return divide(W(1), W(1) + math::exp(-x));
}

void sigmoid(const KernelCall& call) {
  elementary(call, "sigmoid", [](auto x) { return logistic(x); });
}

/// 1 / cosh(x)^2 = (2 / (e^x + e^-x))^2, both parts divided by the larger power.
template <class W> W sech_squared_of(W x) {
  const W small = math::exp(real_part(x) < 0 ? x : -x), s = divide(small + small, W(1) + small * small);
  return s * s;
}

void sech_squared(const KernelCall& call) {
  elementary(call, "sech_squared", [](auto x) { return sech_squared_of(x); });
}

void atan2(const KernelCall& call) {
  elementary2(call, "atan2", [](auto a, auto b) { return math::atan2(a, b); });
}

void hypot(const KernelCall& call) {
  elementary2(call, "hypot", [](auto a, auto b) { return math::hypot(a, b); });
}

/// The larger one, and what the other adds.
template <Floating W> W log_of_sum(W a, W b) {
  if (a < b) return log_of_sum(b, a);
  return math::log1p(a == b ? W(1) : math::exp(b - a)) + a;
}

void logaddexp(const KernelCall& call) {
  elementary2(call, "logaddexp", [](auto a, auto b) { return log_of_sum(a, b); });
}

template <Floating W> W times_log(W x, W y) { return x == 0 && !is_nan(y) ? W(0) : x * math::log(y); }

void xlogy(const KernelCall& call) {
  elementary2(call, "xlogy", [](auto a, auto b) { return times_log(a, b); });
}

void asinh(const KernelCall& call) {
  elementary(call, "asinh", [](auto x) { return math::asinh(x); });
}

}  // namespace

Texts elementary_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      {"exp", exp},
      {"expm1", expm1, Takes::All, Result::Floating},
      {"log", log},
      {"sin", sin},
      {"cos", cos},
      {"tanh", tanh},
      {"sqrt", sqrt},
      {"pow", pow},
      {"log1p", log1p, Takes::All, Result::Floating},
      {"exp2", exp2, Takes::All, Result::Floating},
      {"log2", log2, Takes::All, Result::Floating},
      {"rsqrt", rsqrt, Takes::All, Result::Floating},
      {"sinh", sinh, Takes::All, Result::Floating},
      {"cosh", cosh, Takes::All, Result::Floating},
      {"atan", atan, Takes::All, Result::Floating},
      {"erf", erf, Takes::Real, Result::Floating},
      {"erfc", erfc, Takes::Real, Result::Floating},
      {"sigmoid", sigmoid, Takes::All, Result::Floating},
      {"sech_squared", sech_squared, Takes::All, Result::Floating},
      {"atan2", atan2, Takes::Real, Result::Floating},
      {"hypot", hypot, Takes::Real, Result::Floating},
      {"logaddexp", logaddexp, Takes::Real, Result::Floating},
      {"xlogy", xlogy, Takes::Real, Result::Floating},
      {"asinh", asinh, Takes::All, Result::Floating},
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
