// The law of half dtypes: what is computed of them is computed in f32 and rounded once.
#include <cmath>
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/oracle.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// NOTE: [one rounding] A number that f32 computes with an error of E, rounded once to a half dtype, is off
/// by E and by half a unit in the last place of a number of at most |y| + E: u (|y| + E), or half the
/// smallest number. A second rounding, of what the result is made of, adds up to as much again for each
/// factor.
Bounds once_rounded(Oracle& oracle, const Tensors& exact, DType half) {
  const double u = unit_roundoff(half);
  const Bounds inside = oracle.tolerances(oracle.value_bounds(unit_roundoff(DType::F32)), DType::F32);
  Bounds out;
  for (const f128 y : flatten(exact)) {
    const double e = inside[out.size()];
    out.push_back(e + std::max(u * (std::fabs(double(y)) + e), smallest_number(half) / 2));
  }
  return out;
}

/// Whether a result is near the end of the dtype's range, or f32 may come by an infinity on the way.
bool may_overflow(Oracle& oracle, const Tensors& exact, DType half) {
  for (const f128 y : flatten(exact))
    if (!(fabsq(y) < f128(largest_number(half)) * (1 - 4 * f128(unit_roundoff(half))))) return true;
  for (const f128 v : oracle.reach())
    if (!(fabsq(v) <= half_range(DType::F32))) return true;
  return false;
}

/// Only halves, and no dtype asked for: what is read is exact, and only the result is rounded. Of alpha * b
/// add says that it rounds once more.
bool all_halves(const Case& c) {
  if (const int inside = c.op.overflows_in.argument; inside >= 0)
    if (!(std::get<Scalar>(c.args[size_t(inside)]) == Scalar(1))) return false;
  const int named = c.op.schema.find("dtype");
  if (named >= 0 && !is_none(c.args[size_t(named)])) return false;
  for (const Case::Slot& s : c.inexact())
    if (!is_half(c.at(s).dtype())) return false;
  return !c.inexact().empty();
}

Verdict halves_round_once(Case& c) {
  if (!all_halves(c)) return Verdict::discard();
  const Tensors got = call_boxed(c.op, c.args);
  Oracle oracle(c, c.inexact());
  const Tensors& want = oracle.values();
  if (got.size() != want.size())
    return Verdict::fail(
        {What::Results, format("got {} results, the reference {}", got.size(), want.size())});
  Tensors inexact;
  for (size_t k = 0; k < got.size(); ++k) {
    if (!is_inexact(got[k].dtype())) continue;
    if (!is_half(got[k].dtype())) return Verdict::discard();
    inexact.push_back(want[k]);
  }
  if (inexact.empty() || (!finite(got) && may_overflow(oracle, inexact, coarsest_dtype(got))))
    return Verdict::discard();
  const Bounds bounds = once_rounded(oracle, inexact, coarsest_dtype(got));
  size_t at = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    if (!is_inexact(got[k].dtype())) continue;
    const double lost = oracle.lost_to_underflow(DType::F32, {});
    const Finding d = outside(got[k], want[k], plus(unflatten(bounds, at, want[k], 1), lost));
    if (d.empty()) continue;
    return Verdict::fail("more than one rounding: " + d,
                         cpp_got_want(c, cpp_tensor("w", narrow(want[k], got[k].dtype())),
                                      "{" + cpp_call(c.op, c.args) + "[" + std::to_string(k) + "]}", "{w}"));
  }
  return Verdict::pass();
}

constexpr DrawOptions kHalves{.dtypes = kHalfTypes, .max_numel = 16, .mixed = false};

bool computes_halves(const Op& op) {
  if (!stays_on_device(op) || !takes_tensors(op) || op.has(kRandom) || op.has(kUnspecified) || is_view(op))
    return false;
  return some_case(op, kHalves, 16, [](Case& c) {
    bool some = false;
    return all_halves(c) && !status_of([&] {
                               for (const Tensor& y : call_boxed(c.op, c.args)) some |= is_half(y.dtype());
                             }).raised &&
           some;
  });
}

}  // namespace

void add_half_laws(std::vector<Law>& laws) {
  laws.push_back(
      {107, "halves_round_once", "value",
       "Of half numbers the exact result is missed by one rounding and what f32 may lose on the way.",
       kHalves, true, computes_halves, halves_round_once});
}

}  // namespace lamella::verify
