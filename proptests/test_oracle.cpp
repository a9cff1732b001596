// The oracle's first and second derivatives against formulas: how far off they may be is computed from the
// step, and so is what the oracle may say of its own error.
#include <algorithm>
#include <gtest/gtest.h>
#include <quadmath.h>

#include "lamella/dispatch/table.h"
#include "lamella/lamella.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/fault.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/run/context.h"
#include "lamella/verify/run/runner.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

/// tanh^(n) as a polynomial in t = tanh(x), by d/dx t = 1 - t^2: p' -> p' (1 - t^2).
Reals tanh_polynomial(int order) {
  Reals p = {0, 1};
  for (; order > 0; --order) {
    Reals next(p.size() + 1);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] += f128(k) * p[k];
      next[k + 1] -= f128(k) * p[k];
    }
    p = next;
  }
  return p;
}
f128 tanh_derivative(f128 x, int order) {
  f128 sum = 0;
  const Reals p = tanh_polynomial(order);
  for (size_t k = p.size(); k-- > 0;) sum = sum * tanhq(x) + p[k];
  return sum;
}
/// On 0 < x <= high: |t| <= tanh(high).
f128 tanh_largest(int order, f128 high) {
  f128 sum = 0;
  const Reals p = tanh_polynomial(order);
  for (size_t k = p.size(); k-- > 0;) sum = sum * tanhq(high) + fabsq(p[k]);
  return sum;
}

struct Known {
  const char* op;
  f128 (*derivative)(f128 x, int order);
  f128 (*largest)(int order, f128 low, f128 high);  ///< no smaller than any |derivative| in between
};
f128 log_derivative(f128 x, int order) {
  f128 value = 1 / x;
  for (int k = 1; k < order; ++k) value *= -k / x;
  return order ? value : logq(x);
}
const Known kKnown[] = {
    {"exp", [](f128 x, int) { return expq(x); }, [](int, f128, f128 high) { return expq(high); }},
    {"log", log_derivative, [](int n, f128 low, f128) { return fabsq(log_derivative(low, n)); }},
    {"sin",
     [](f128 x, int n) { return n % 2   ? (n % 4 == 1 ? cosq(x) : -cosq(x))
                                : n % 4 ? -sinq(x)
                                        : sinq(x); },
     [](int, f128, f128) { return f128(1); }},
    {"tanh", tanh_derivative, [](int n, f128, f128 high) { return tanh_largest(n, high); }}};

/// What an f128 evaluation may be off, relative to its result: libquadmath's functions, within 2 units in the
/// last place.
const f128 kEvaluation = ldexpq(1, -111);
/// Each sum or quotient of the stencil rounds once more; a value's error counts with the value's own
/// rounding.
const f128 kRounding = kEvaluation + 2 * ldexpq(1, -113);
f128 step(double x, int exponent) { return ldexpq(fmaxq(1, f128(x)), exponent); }

/// Truncation and roundoff of a difference, by formula.
struct Deviation {
  f128 truncation, roundoff;
  f128 sum() const { return truncation + roundoff; }
};
/// (f(x + h) - f(x - h)) / 2h = f' + h^2 / 6 f'''(somewhere), h = 2^-38 max(1, |x|).
Deviation first_error(const Known& k, double x) {
  const f128 h = step(x, -38);
  const f128 f = fabsq(k.derivative(x, 0)) + h * k.largest(1, x - h, x + h);
  return {h * h / 6 * k.largest(3, x - h, x + h), 2 * f * kRounding / (2 * h)};
}
/// NOTE: [second differences]: D(h) = (f(x + 2h) - 2 f(x) + f(x - 2h)) / 4h^2 = f'' + h^2 / 3 f'''' + R with
/// |R| <= (2h)^4 / 360 max|f^(6)|. In (4 D(h) - D(2h)) / 3 the terms of f'''' cancel, the rest is at most
/// (4 * 16 + 256) / (3 * 360) h^4 max|f^(6)|; its roundoff is (4 + 1/4) / 3 of that of D(h). h = 2^exponent
/// max(1, |x|).
Deviation second_error(const Known& k, double x, int exponent) {
  const f128 h = step(x, exponent);
  const f128 f = fabsq(k.derivative(x, 0)) + 4 * h * k.largest(1, x - 4 * h, x + 4 * h);
  return {f128(8) / 27 * powq(h, 4) * k.largest(6, x - 4 * h, x + 4 * h),
          f128(17) / 12 * 4 * f * kRounding / (4 * h * h)};
}

Oracle oracle_of(const char* name, double x) {
  const Choices none;
  Case c(*OpTable::current().find(name), none, {.layouts = false});
  c.args[0] = full({}, x, DType::F64);
  return Oracle(c, c.inexact());
}

std::string above(const char* what, const Known& k, double x, f128 got, f128 limit) {
  return got <= limit
             ? ""
             : format("{} of {} at {}: {}, expected at most {}\n", what, k.op, x, double(got), double(limit));
}

/// What is wrong with the first or second derivative at x; empty when nothing is.
std::string wrong_first(const Known& k, double x) {
  return above("the error of the first derivative", k, x,
               fabsq(oracle_of(k.op, x).jacobian()(0, 0) - k.derivative(x, 1)), first_error(k, x).sum());
}
std::string wrong_second(const Known& k, double x) {
  Oracle oracle = oracle_of(k.op, x);
  const f128 off = fabsq(oracle.hessian({1})(0, 0) - k.derivative(x, 2));
  const f128 noise = oracle.hessian_noise({1})(0, 0), h = step(x, -20);
  const Deviation fine = second_error(k, x, -20), wide = second_error(k, x, -19);
  // What the oracle allows itself: how far two steps are apart, and 2^-109 of |y| + |y' x| for each point.
  const f128 size = fabsq(k.derivative(x, 0)) + fabsq(k.derivative(x, 1) * x) + first_error(k, x).sum() * x;
  const f128 allowed = fine.sum() + wide.sum() + ldexpq(2 * size / (h * h), -109);
  return above("the error of the second derivative", k, x, off, fine.sum()) +
         above("the error that the oracle does not admit", k, x, off, noise) +
         above("the error that the oracle admits", k, x, noise, allowed * (1 + kRounding));
}

template <class F> size_t points_where(F&& wrong, std::string& all) {
  size_t count = 0;
  for (const Known& k : kKnown)
    for (double x = 0.05; x < 5; x += 0.11) {
      const std::string what = wrong(k, x);
      count += !what.empty();
      all += what;
    }
  return count;
}

TEST(Oracle, DerivativesAreAsExactAsTheirStepAllows) {
  std::string all;
  EXPECT_EQ(points_where(wrong_first, all), 0u) << all;
  EXPECT_EQ(points_where(wrong_second, all), 0u) << all;
}

/// What the bounds above are worth to a law in f64: an oracle at their very edge moves nothing that 2^-53
/// shows.
TEST(Oracle, IsFarBelowTheRoundoffOfF64) {
  for (const Known& k : kKnown)
    for (double x = 0.05; x < 5; x += 0.11) {
      const f128 scale = fmaxq(1, fabsq(k.derivative(x, 2)));
      EXPECT_LT(double(second_error(k, x, -20).sum() / scale), 0x1p-56) << k.op << " " << x;
    }
}

/// A step that is too long is noticed at every point.
TEST(Oracle, BoundsNoticeAWrongStep) {
  const ScopedContext planted([](RunContext& c) { c.fault = Fault::OracleStepTooLong; });
  std::string all;
  const size_t points = points_where([](const Known&, double) { return std::string("."); }, all);
  EXPECT_EQ(points_where(wrong_first, all), points);
  EXPECT_EQ(points_where(wrong_second, all), points);
}
/// Programs expand on the oracle's device, too: what its kernels give does not depend on where elements lie.
TEST(Oracle, ElementsMayShareMemory) {
  const Law& law = *find_law("matches_reference");
  int compared = 0;
  for (const Op* op : all_operators()) {
    if (!law.applies(*op)) continue;
    for (uint64_t i = 0; i < 12; ++i) {
      const Choices choices = choices_of(5, law, *op, i);
      const Case c(*op, choices, law.options);
      Values apart = to_reference(c.args), shared = apart;
      for (const Case::Slot& slot : c.tensors()) {
        const Tensor& t = entry(apart, slot);
        if (t.numel() == 0) continue;
        const Tensor one = make_view_unchecked(t, t.sizes(), Dims(t.rank(), 0), t.impl()->offset);
        entry(shared, slot) = one;
        entry(apart, slot) = clone(one);
      }
      Tensors of_apart, of_shared;
      const auto run = [&](const Values& args, Tensors& out) {
        try {
          out = reference_forward(*op, args);
        } catch (const Error&) { return false; }
        return true;
      };
      const bool is_accepted = run(apart, of_apart);
      ASSERT_EQ(run(shared, of_shared), is_accepted) << op->name << " " << i;
      if (!is_accepted || op->has(kRandom) || op->has(kUnspecified)) continue;
      ++compared;
      EXPECT_EQ(differs(of_shared, of_apart), "") << op->name << " " << i;
    }
  }
  EXPECT_GT(compared, 500);
}
}  // namespace
