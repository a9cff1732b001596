// Laws of derivatives as linear maps: they add, and transposing twice gives them back.
#include <quadmath.h>

#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Each sum rounded once; no operator is called.
Tensors sums(const Tensors& a, const Tensors& b) {
  Tensors out;
  for (size_t k = 0; k < a.size(); ++k) {
    const Tensor sum = to_reference(a[k]), other = to_reference(b[k]);
    f128* const to = static_cast<f128*>(sum.raw_data());
    const f128* const more = static_cast<const f128*>(other.raw_data());
    const int64_t parts = sum.numel() * (is_complex(a[k].dtype()) ? 2 : 1);
    for (int64_t i = 0; i < parts; ++i) to[i] += more[i];
    out.push_back(narrow(sum, a[k].dtype()));
  }
  return out;
}

Reals added(const Tensors& a, const Tensors& b) {
  Reals out = flatten(a);
  const Reals more = flatten(b);
  for (size_t i = 0; i < out.size(); ++i) out[i] += more[i];
  return out;
}
Bounds added(const Bounds& a, const Bounds& b) {
  Bounds out = a;
  for (size_t i = 0; i < out.size(); ++i) out[i] += b[i];
  return out;
}

Verdict derivatives_add(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  for (const bool forward : {true, false}) {
    if (forward ? !has_jvp(c.op) : !has_vjp(c.op)) continue;
    const auto image = [&](const Tensors& d) {
      return forward ? jvp(s.f, s.xs, d).tangents : vjp(s.f, s.xs).pullback(d);
    };
    const Tensors& like = forward ? s.xs : s.ys;
    const Tensors a = directions(c, like), b = directions(c, like), both = sums(a, b);
    const Tensors of_a = image(a), of_b = image(b), got = image(both);
    if (!finite(of_a) || !finite(of_b)) return Verdict::discard();
    if (!finite(got) && !(far_from_overflow(both) && far_from_overflow(s.xs))) return Verdict::discard();
    const Reals want = added(of_a, of_b);
    if (flatten(got) == want) continue;
    Oracle oracle(c, s.slots);
    const Reals p = flatten(a), q = flatten(b);
    const Bounds bounds = forward ? added(oracle.pushforward_bounds(p), oracle.pushforward_bounds(q))
                                  : added(oracle.pullback_bounds(p), oracle.pullback_bounds(q));
    const Finding d =
        beyond_rounding(c.op, s, got, want, bounds, total(p) + total(q), {flatten(of_a), flatten(of_b)});
    if (d.empty()) continue;
    size_t at = 0;
    Tensors w;
    for (const Tensor& g : got) w.push_back(narrow(unflatten(want, at, g), g.dtype()));
    const std::string text = forward ? jvp_text(c, s) + ".tangents"
                                     : vjp_text(c, s) + ".pullback(" + cpp_names("u", both.size()) + ")";
    return Verdict::fail((forward ? "of a sum of tangents: " : "of a sum of cotangents: ") + d,
                         cpp_got_want(c, cpp_tensors(forward ? "t" : "u", both) + cpp_tensors("w", w), text,
                                      cpp_names("w", w.size())),
                         1);
  }
  return Verdict::pass(1);
}

/// The transpose of the pullback at u: a vjp of it. It is linear, so u does not matter.
Verdict transposes_return(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  const Tensors ts = directions(c, s.xs), us = directions(c, s.ys);
  const Function pullback = [&](const Tensors& u) { return vjp(s.f, s.xs).pullback(u); };
  const Tensors got = vjp(pullback, us).pullback(ts);
  const bool itself = c.op.has(kLinear) && s.slots.size() == c.inexact().size();
  Tensors dense;  // a plain `view` needs strides that allow it
  for (const Tensor& t : ts) dense.push_back(plain_copy(t));
  const Tensors want = itself ? s.f(dense) : jvp(s.f, s.xs, ts).tangents;
  if (!finite(want)) return Verdict::discard();
  if (disagrees(got, want, Agreement::Bitwise).empty()) return Verdict::pass(2);
  Oracle oracle(c, s.slots);
  const Reals t = flatten(ts);
  Finding d = beyond_rounding(c.op, s, got, flatten(want), oracle.pushforward_bounds(t), total(t), {});
  for (size_t k = 0; k < got.size() && d.empty(); ++k)
    if (got[k].dtype() != want[k].dtype()) d = format("result {} is {}, expected {}", k, got[k], want[k]);
  if (d.empty()) return Verdict::pass(2);
  const std::string inputs = cpp_list(cpp_names(c, s.slots));
  return Verdict::fail(
      "the transpose of the transpose: " + d,
      cpp_declarations(c.args) + cpp_tensors("t", ts) + cpp_tensors("u", us) + cpp_tensors("w", want) +
          "  const Function f = " + cpp_function(c, s.slots, true) +
          ";\n  const Function transpose = [&](const Tensors& u) { return vjp(f, " + inputs +
          ").pullback(u); };\n  const Tensors got = vjp(transpose, " + cpp_names("u", us.size()) +
          ").pullback(" + cpp_names("t", ts.size()) + "), want = " + cpp_names("w", want.size()) +
          ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
          "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n",
      2);
}

bool either_way(const Op& op) { return (has_jvp(op) || has_vjp(op)) && stays_on_device(op); }
bool both_on_device(const Op& op) { return both_ways(op) && stays_on_device(op); }

}  // namespace

void add_transpose_laws(std::vector<Law>& laws) {
  const DrawOptions tame{.dtypes = kWideTypes, .tame = true, .max_numel = 8};
  laws.push_back({24, "derivatives_add", "derivative",
                  "The derivative along a sum of tangents or cotangents is the sum of the derivatives.", tame,
                  false, either_way, derivatives_add});
  laws.push_back(
      {35,
       "transposes_return",
       "derivative",
       "The transpose of a derivative's transpose is the derivative, of a linear operator itself.",
       {.dtypes = kWideTypes, .tame = true, .max_numel = 8, .mixed = false},  // no constant operands
       false,
       both_on_device,
       transposes_return});
}

}  // namespace lamella::verify
