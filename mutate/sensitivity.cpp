// Planting errors of known size into one operator, and measuring errors that are there.
#include "lamella/mutate/sensitivity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <quadmath.h>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

/// What is added, and where. Only one lives at a time on a thread.
struct Injection {
  enum Place : uint8_t { Value, Tangent, Cotangent } place = Value;
  size_t index = 0;  ///< which inexact result, or which input that carries the derivative
  Tensor error;      ///< f64, of its sizes
  const Op* right = nullptr;
  const Op* adds_tangent = nullptr;
  const Op* adds_cotangent = nullptr;
  bool happened = false;  ///< an absent tangent or cotangent reaches no rule that could be wrong
};
thread_local Injection injection;

/// x + e; where that is x again, the next number beside it: an operator that must be exact has no smaller
/// error.
template <class R> R put_off(R x, double e) {
  using Wide = std::conditional_t<is_half_type<R>, float, f128>;
  const R sum = R(Wide(x) + Wide(e));
  if (Wide(sum) != Wide(x)) return sum;
  const double size = std::abs(double(x));
  return R(Wide(x) + Wide(2 * size * unit_roundoff(dtype_of<R>) + smallest_number(dtype_of<R>)));
}

/// t + error, by elements; the imaginary part stays.
Tensor off(const Tensor& t) {
  if (!t.defined() || !std::ranges::equal(t.sizes(), injection.error.sizes())) return t;
  injection.happened = true;
  const Tensor out = plain_copy(t);
  const double* e = injection.error.data<double>();
  visit_dtype(t.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    T* const p = static_cast<T*>(out.raw_data());
    for (int64_t i = 0; i < out.numel(); ++i) {
      if (e[i] == 0) continue;
      if constexpr (is_complex_type<T>) {
        using R = typename T::value_type;
        p[i] = T(put_off<R>(p[i].real(), e[i]), p[i].imag());
      } else if constexpr (is_floating_type<T>) p[i] = put_off<T>(p[i], e[i]);
    }
  });
  return out;
}

Tensor off_direction(const RuleArgs& a) { return off(a.directions[0]); }

/// clone, whose jvp (or vjp) is off.
const Op* wrong_clone(bool forward) {
  auto* row = new Op(*OpTable::current().find("clone"));
  row->base = row;
  (forward ? row->jvp : row->vjp) = {BoundFormula{0, {}, off_direction, nullptr}};
  row->straight = 0;
  return row;
}

bool carries(const Tensor& t) { return t.defined() && t.keys() >> kFirstLevelKey; }
Tensor through(const Op* op, const Tensor& t) { return call_boxed(*op, {t})[0]; }

/// The right operator with the error before it or behind it; on the Reference column, the right operator.
void wrong_cell(Frame& frame, int) {
  Values args = own(frame);
  bool on_cpu = true;
  size_t carried = 0;
  const auto visit = [&](Tensor& t) {
    if (!t.defined()) return;
    on_cpu = on_cpu && t.device() == Device::CPU;
    if (injection.place == Injection::Cotangent && carries(t) && carried++ == injection.index)
      t = through(injection.adds_cotangent, t);
  };
  for (Value& v : args) {
    if (Tensor* t = std::get_if<Tensor>(&v)) visit(*t);
    if (Tensors* list = std::get_if<Tensors>(&v)) std::ranges::for_each(*list, visit);
  }
  Tensors ys = call_boxed(*injection.right, args);
  size_t at = 0;
  for (Tensor& y : ys) {
    if (!on_cpu || !is_inexact(y.dtype()) || at++ != injection.index) continue;
    if (injection.place == Injection::Value) y = off(y);
    if (injection.place == Injection::Tangent) y = through(injection.adds_tangent, y);
  }
  if (frame.list) *frame.list = std::move(ys);
  else std::ranges::move(ys, frame.results);
}

/// The table with such a row for `op`.
const OpTable* wrong_table(const Op& op) {
  auto* row = new Op(op);
  row->base = row;
  row->composite = [](Frame& frame) { wrong_cell(frame, 0); };
  row->straight = 0;
  for (Cell& cell : row->cells) cell = wrong_cell;
  return OpTable::current().with(*row);
}

/// An entry to spoil, and by how much.
struct Target {
  size_t comparison;
  int64_t entry;
  double bound, size;
};

double number(const Tensor& t, int64_t i) {
  const Reals parts = flatten({t});
  const size_t width = is_complex(t.dtype()) ? 2 : 1;
  return double(hypotq(parts[size_t(i) * width], width == 2 ? parts[size_t(i) * width + 1] : 0));
}

bool choose(const std::vector<Comparison>& made, uint64_t salt, Target& out) {
  std::vector<Target> all;
  for (size_t k = 0; k < made.size(); ++k)
    for (int64_t i = 0; i < made[k].bound.numel(); ++i) {
      const double bound = made[k].bound.data<double>()[i] + 4 * smallest_number(made[k].got.dtype());
      const double size = number(made[k].want, i), got = number(made[k].got, i);
      // An error that overflows the dtype would show as an infinity, which rounding may give as well.
      const double most = to_real(made[k].got.dtype()) == DType::F16 ? 1e4 : 1e37;
      if (bound > 0 && std::isfinite(got) && std::isfinite(size) && 16 * bound + size < most)
        all.push_back({k, i, bound, size});
    }
  if (all.empty()) return false;
  out = all[salt % all.size()];
  return true;
}

bool notices(const Law& law, const Op& op, const OpTable* table, const Choices& choices, const Comparison& c,
             int64_t entry, double error) {
  injection.error = make_tensor(c.got.sizes(), DType::F64);
  std::fill_n(injection.error.data<double>(), c.got.numel(), 0);
  injection.error.data<double>()[entry] = error;
  // See NOTE: [input spaces]: the gradient is symmetrised, so the error must be symmetric to have its size.
  if (op.has(kSymmetricInput) && injection.place == Injection::Cotangent && c.got.rank() >= 2) {
    const int64_t n = c.got.size(-1), row = entry / n % n, column = entry % n;
    injection.error.data<double>()[entry - row * n - column + column * n + row] = error;
  }
  const ScopedTable pinned(table);
  return run_check(law, table->row(op.id), choices).kind == Verdict::Fail;
}

using Clock = std::chrono::steady_clock;

/// Calls f(index, choices, comparisons) for cases that pass until it has said true `cases` times.
template <class F> void each_passing(const Op& op, const Law& law, const SensitivityOptions& o, F&& f) {
  const auto until = Clock::now() + std::chrono::duration<double>(o.seconds);
  int counted = 0;
  for (uint64_t i = 0; counted < o.cases && i < 20 * uint64_t(o.cases) && Clock::now() < until; ++i) {
    const Choices choices = choices_of(o.seed, law, op, i);
    std::vector<Comparison> made;
    {
      Recording recording;
      if (run_check(law, op, choices).kind != Verdict::Pass) continue;
      made = std::move(recording.made);
    }
    counted += f(i, choices, made);
  }
}

}  // namespace

const std::vector<std::string_view>& bounded_laws() {
  static const std::vector<std::string_view> ids = {"matches_reference", "jvp_equals_differences",
                                                    "vjp_equals_differences"};
  return ids;
}

Sensitivity sensitivity(const Op& op, const Law& law, const SensitivityOptions& options) {
  static const Op* const tangent = wrong_clone(true);
  static const Op* const cotangent = wrong_clone(false);
  const auto place = law.id == bounded_laws()[0]   ? Injection::Value
                     : law.id == bounded_laws()[1] ? Injection::Tangent
                                                   : Injection::Cotangent;
  const OpTable* table = wrong_table(op);
  const Tolerance& tol = tolerance(op.name);
  Sensitivity out{op.name, law.id};
  each_passing(
      op, law, options, [&](uint64_t i, const Choices& choices, const std::vector<Comparison>& made) {
        Target t;
        if (!choose(made, i * 0x9E3779B97F4A7C15u >> 33, t)) {
          ++out.unbounded;
          return false;
        }
        injection = {place, t.comparison, {}, &op, tangent, cotangent, false};
        const Comparison& c = made[t.comparison];
        const double sign = i % 2 ? 1 : -1;
        const double k = place == Injection::Value     ? tol.value
                         : place == Injection::Tangent ? tol.jvp
                                                       : tol.vjp;
        const bool seen = notices(law, op, table, choices, c, t.entry, sign * options.factor * t.bound);
        if (!injection.happened) {
          ++out.unbounded;
          return false;
        }
        const double relative = sign * options.factor * k * unit_roundoff(c.got.dtype()) * t.size;
        if (!seen) out.missed = i;
        out.caught += seen;
        if (relative != 0) {
          ++out.sized;
          out.relative += notices(law, op, table, choices, c, t.entry, relative);
        }
        ++out.cases;
        return true;
      });
  injection = {};
  return out;
}

ToleranceUse tolerance_use(const Op& op, const Law& law, const SensitivityOptions& options) {
  ToleranceUse out;
  each_passing(op, law, options, [&](uint64_t i, const Choices&, const std::vector<Comparison>& made) {
    for (const Comparison& c : made)
      if (c.largest > out.largest) out.largest = c.largest, out.at = i;
    ++out.passed;
    out.cases += !made.empty();
    return !made.empty();
  });
  return out;
}

}  // namespace lamella::verify
