// A law of derivatives of derivatives that needs no oracle: along its own direction, a derivative is linear.
#include <algorithm>

#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// The derivative of `f` at s.xs as a function of the direction alone.
Function along_direction(const Subject& s, bool forward) {
  return [s, forward](const Tensors& directions) {
    return forward ? jvp(s.f, s.xs, directions).tangents : vjp(s.f, s.xs).pullback(directions);
  };
}

std::string program(const Case& c, const Subject& s, const Tensors& at, const Tensors& along,
                    const Tensors& want, bool forward) {
  return cpp_declarations(c.args) + cpp_tensors("t", at) + cpp_tensors("v", along) + cpp_tensors("w", want) +
         "  const Function f = " + cpp_function(c, s.slots, true) +
         ";\n  const Tensors xs = " + cpp_list(cpp_names(c, s.slots)) +
         ";\n  const Function g = [&](const Tensors& ts) { return " +
         (forward ? "jvp(f, xs, ts).tangents" : "vjp(f, xs).pullback(ts)") +
         "; };\n  const Tensors got = jvp(g, " + cpp_names("t", at.size()) + ", " +
         cpp_names("v", along.size()) + ").tangents, want = " + cpp_names("w", want.size()) +
         ";\n  for (size_t k = 0; k < got.size(); ++k)\n"
         "    std::cout << \"got      \" << str(got[k]) << \"\\nexpected \" << str(want[k]) << '\\n';\n";
}

Verdict one_way(Case& c, const Subject& s, bool forward) {
  const Tensors& like = forward ? s.xs : s.ys;
  const Tensors at = directions(c, like), along = directions(c, like);
  const Function g = along_direction(s, forward);
  const Tensors want = g(along);
  if (!finite(want)) return Verdict::discard();
  const Tensors got = jvp(g, at, along).tangents;
  if (!finite(g(at))) return Verdict::discard();
  const Finding d = disagrees(got, want, Agreement::Rounding, {64, 1, s.u});
  if (d.empty()) return Verdict::pass(2);
  return Verdict::fail((forward ? "jvp of jvp in its tangents: " : "jvp of vjp in its cotangents: ") + d,
                       program(c, s, at, along, want, forward), 2);
}

Verdict derivatives_are_linear(Case& c) {
  Subject s;
  if (!prepare(c, s)) return Verdict::discard();
  Verdict v = Verdict::discard();
  if (has_jvp(c.op)) v = one_way(c, s, true);
  if (v.kind == Verdict::Fail || !has_vjp(c.op)) return v;
  const Verdict back = one_way(c, s, false);
  return back.kind == Verdict::Discard ? v : back;
}

bool either_way(const Op& op) { return has_jvp(op) || has_vjp(op); }

}  // namespace

void add_direction_laws(std::vector<Law>& laws) {
  laws.push_back({24,
                  "derivatives_are_linear",
                  "derivative",
                  "The derivative of a derivative along its own direction is that derivative again.",
                  {.dtypes = kWideTypes, .tame = true, .max_numel = 8, .one_large = true},
                  false,
                  either_way,
                  derivatives_are_linear});
}

}  // namespace lamella::verify
