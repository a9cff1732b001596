// Spike 0006: central differences in f128 as the derivative oracle: how accurate, at which step, at what
// price.
#include <cmath>
#include <quadmath.h>

#include "timing.h"

namespace {
using f128 = __float128;

/// A function and its first three derivatives, written down by hand: what the differences are compared with.
struct Known {
  const char* name;
  f128 (*f)(f128);
  f128 (*derivative[3])(f128);
  double (*in_double)(double);
};
f128 s2(f128 x) { return 1 / (coshq(x) * coshq(x)); }  // the square of sech
const Known kKnown[] = {
    {"exp", expq, {expq, expq, expq}, std::exp},
    {"sin", sinq, {cosq, [](f128 x) { return -sinq(x); }, [](f128 x) { return -cosq(x); }}, std::sin},
    {"log",
     logq,
     {[](f128 x) { return 1 / x; }, [](f128 x) { return -1 / (x * x); },
      [](f128 x) { return 2 / (x * x * x); }},
     std::log},
    {"tanh",
     tanhq,
     {s2, [](f128 x) { return -2 * tanhq(x) * s2(x); },
      [](f128 x) { return s2(x) * (4 * tanhq(x) * tanhq(x) - 2 * s2(x)); }},
     std::tanh}};

/// Antisymmetric or symmetric weights of f(x + i h), i = 1, 2, 3; the weight of f(x) makes the even sum zero.
struct Stencil {
  int order, bits;  ///< derivative; step 2^-bits * max(1, |x|)
  double weights[3], divisor;
};
const Stencil kShort[] = {{1, 38, {1}, 2}, {2, 28, {1}, 1}, {3, 22, {-2, 1}, 2}};                 // error h^2
const Stencil kLong[] = {{1, 24, {8, -1}, 12}, {2, 20, {16, -1}, 12}, {3, 17, {-13, 8, -1}, 8}};  // error h^4

template <class T, class F> T difference(const Stencil& s, F f, T x, T h) {
  T sum = 0;
  for (int i = 1; i <= 3; ++i)
    if (const T w = s.weights[i - 1]; w != 0)
      sum += s.order == 2 ? w * (f(x + i * h) - 2 * f(x) + f(x - i * h)) : w * (f(x + i * h) - f(x - i * h));
  for (int i = 0; i < s.order; ++i) sum /= h;
  return sum / s.divisor;
}
/// The largest relative error over 200 points in (0.05, 5.05).
double worst(const Known& k, const Stencil& s) {
  double out = 0;
  for (int i = 0; i < 200; ++i) {
    const f128 x = f128(0.05) + f128(i) / 40, h = ldexpq(x > 1 ? x : 1, -s.bits),
               want = k.derivative[s.order - 1](x);
    out = std::max(out, double(fabsq((difference(s, k.f, x, h) - want) / want)));
  }
  return out;
}
double worst_in_double(const Known& k) {
  double out = 0;
  for (int i = 0; i < 200; ++i) {
    const double x = 0.05 + i / 40.0, h = std::ldexp(x > 1 ? x : 1, -17), want = double(k.derivative[0](x));
    out = std::max(out, std::abs((difference(kShort[0], k.in_double, x, h) - want) / want));
  }
  return out;
}

/// Double-double, the alternative without libquadmath: one product and one sum.
struct Pair {
  double high, low = 0;
};
Pair multiply_add(Pair a, Pair b, Pair c) {
  const double p = a.high * b.high, e = std::fma(a.high, b.high, -p) + (a.high * b.low + a.low * b.high);
  const double s = p + c.high, v = s - p, t = ((p - (s - v)) + (c.high - v)) + e + c.low;
  return {s + t, t - ((s + t) - s)};
}
}  // namespace

int main() {
  std::puts("largest relative error of central differences       shortest stencil, h^2     next, h^4");
  for (int order = 1; order <= 3; ++order)
    for (const Known& k : kKnown) {
      const Stencil &a = kShort[order - 1], &b = kLong[order - 1];
      std::printf("  f128 order %d %-5s %30.1e (2^-%d)  %.1e (2^-%d)\n", order, k.name, worst(k, a), a.bits,
                  worst(k, b), b.bits);
    }
  for (const Known& k : kKnown) std::printf("  f64 order 1 %-5s %31.1e\n", k.name, worst_in_double(k));
  double d = 1.25;
  f128 q = d, r = 0.75;
  Pair pair{1.25, 1e-20};
  spike::Contest contest("one evaluation");
  contest.add("f64 multiply and add", 500000, [&] { spike::keep(d = d * 0.75 + 0.3); });
  contest.add("double-double likewise", 200000,
              [&] { spike::keep(pair = multiply_add(pair, {0.75}, {0.3})); });
  contest.add("f128 multiply and add", 200000, [&] { spike::keep(q = q * r + f128(0.3)); });
  contest.add("f64 exp", 200000, [&] { spike::keep(std::exp(d)); });
  contest.add("f128 exp", 20000, [&] { spike::keep(expq(q)); });
  contest.add("f128 pow", 20000, [&] { spike::keep(powq(q, r)); });
  contest.run();
}
