// Oracle: elementary functions, each evaluated one precision above compute and rounded once.
#include <algorithm>

#include "lamella/kernels/reference/pointwise.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

/// A string as an argument of templates.
template <size_t n> struct Name {
  char text[n];
  consteval Name(const char (&given)[n]) { std::copy_n(given, n, text); }
};

/// Rows of functions of real and complex numbers, of real ones, and of two: lambdas without captures.
template <Name name, class F> constexpr Text inexact(F, Result result = Result::Floating) {
  return {
      name.text,
      [](const KernelCall& c) { unary(c, name.text, [](Inexact auto x) { return rounded_once(F{}, x); }); },
      Takes::All, result};
}
template <Name name, class F> constexpr Text real(F) {
  return {
      name.text,
      [](const KernelCall& c) { unary(c, name.text, [](Floating auto x) { return rounded_once(F{}, x); }); },
      Takes::Real, Result::Floating};
}
template <Name name, class F> constexpr Text real_two(F) {
  return {name.text,
          [](const KernelCall& c) {
            binary(c, name.text, [](Floating auto x, Floating auto y) { return rounded_once(F{}, x, y); });
          },
          Takes::Real, Result::Floating};
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

f128 less_one(f128 x) { return expm1q(x); }
double less_one(double x) { return std::expm1(x); }
/// By its series where e^x - 1 would cancel: the next term is below 2^-113 of x.
template <Complex W> W less_one(W x) {
  if (math::magnitude(x) >= decltype(x.real())(0x1p-37)) return math::exp(x) - W(1);
  return x + x * x / W(2) + x * x * x / W(6);
}

void pow(const KernelCall& call) {
  binary(
      call, "pow", []<class W>(W x, W y) requires(!Bool<W>) { return power(x, y); });
}

template <Floating W> W log_beside_one(W x) { return math::log1p(x); }
/// By its series where 1 + x would drop the digits of x: the next term is below 2^-113 of x.
template <Complex W> W log_beside_one(W x) {
  const W beside(1 + x.real(), x.imag());
  if (math::magnitude(x) >= 0x1p-29) return math::log(beside);
  const W series = x - x * x / W(2) + x * x * x / W(3) - x * x * x * x / W(4);
  return W(series.real(), math::log(beside).imag());
}

/// 1 / (1 + e^-x), by e^x where e^-x would overflow.
template <class W> W logistic(W x) {
  if (real_part(x) < 0) return divide(math::exp(x), W(1) + math::exp(x));
  return divide(W(1), W(1) + math::exp(-x));
}

/// 1 / cosh(x)^2 = (2 / (e^x + e^-x))^2, both parts divided by the larger power.
template <class W> W sech_squared_of(W x) {
  const W small = math::exp(real_part(x) < 0 ? x : -x), s = divide(small + small, W(1) + small * small);
  return s * s;
}

/// The larger one, and what the other adds.
template <Floating W> W log_of_sum(W a, W b) {
  if (a < b) return log_of_sum(b, a);
  return math::log1p(a == b ? W(1) : math::exp(b - a)) + a;
}

template <Floating W> W times_log(W x, W y) { return x == 0 && !is_nan(y) ? W(0) : x * math::log(y); }

}  // namespace

Texts elementary_texts() {
  // clang-format off
  static constexpr Text kTexts[] = {
      inexact<"exp">([](auto x) { return math::exp(x); }, Result::Unsaid),
      inexact<"expm1">([](auto x) { return less_one(x); }),
      inexact<"log">([](auto x) { return math::log(x); }, Result::Unsaid),
      inexact<"sin">([](auto x) { return math::sin(x); }, Result::Unsaid),
      inexact<"cos">([](auto x) { return math::cos(x); }, Result::Unsaid),
      inexact<"tanh">([](auto x) { return math::tanh(x); }, Result::Unsaid),
      inexact<"sqrt">([](auto x) { return math::sqrt(x); }, Result::Unsaid),
      {"pow", pow},
      inexact<"log1p">([](auto x) { return log_beside_one(x); }),
      inexact<"exp2">([](auto x) { return math::exp2(x); }),
      inexact<"log2">([](auto x) { return math::log2(x); }),
      inexact<"rsqrt">([](auto x) { return divide(decltype(x)(1), math::sqrt(x)); }),
      inexact<"sinh">([](auto x) { return math::sinh(x); }),
      inexact<"cosh">([](auto x) { return math::cosh(x); }),
      inexact<"atan">([](auto x) { return math::atan(x); }),
      real<"erf">([](auto x) { return math::erf(x); }),
      real<"erfc">([](auto x) { return math::erfc(x); }),
      inexact<"sigmoid">([](auto x) { return logistic(x); }),
      inexact<"sech_squared">([](auto x) { return sech_squared_of(x); }),
      real_two<"atan2">([](auto a, auto b) { return math::atan2(a, b); }),
      real_two<"hypot">([](auto a, auto b) { return math::hypot(a, b); }),
      real_two<"logaddexp">([](auto a, auto b) { return log_of_sum(a, b); }),
      real_two<"xlogy">([](auto a, auto b) { return times_log(a, b); }),
      inexact<"asinh">([](auto x) { return math::asinh(x); }),
  };
  // clang-format on
  return kTexts;
}

}  // namespace lamella::kernels::reference
