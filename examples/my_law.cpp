// A plug-in that adds a law: `lamella verify --load build/release/plugins/my_law.so` checks it for every
// operator it applies to.
#include "lamella/dispatch/plugin.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/law.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

/// A law says itself which operators it is about, from what they declare; never by their names.
bool applies(const Op& op) {
  return op.shape == ShapeClass::Broadcast && !op.composite && !op.has(kRandom) && takes_tensors(op);
}

/// The case holds valid arguments, drawn; what else a law needs it draws from `c.draw`.
Verdict flip_commutes(Case& c) {
  Values turned = c.args;
  for (const Case::Slot& s : c.tensors()) {
    const Tensor x = c.at(s);
    if (s.element != 0 || !std::holds_alternative<Tensor>(turned[size_t(s.param)])) return Verdict::discard();
    if (x.rank() == 0) continue;
    turned[size_t(s.param)] = x.size(-1) == 1 ? x : call("flip", {x, Dims{-1}})[0];
  }
  const Tensor plain = call_boxed(c.op, c.args)[0];
  if (plain.rank() == 0) return Verdict::discard();
  const Tensor got = call_boxed(c.op, turned)[0], want = call("flip", {plain, Dims{-1}})[0];
  const Finding difference = differs(got, want);
  if (difference.empty()) return Verdict::pass();
  return Verdict::fail(difference, cpp_declarations(turned) + "  std::cout << str(" + cpp_call(c.op, turned) +
                                       "[0]) << '\\n';\n");
}
}  // namespace

LAMELLA_PLUGIN() {
  add_law(
      {.number = 1000,
       .id = "flip_commutes",
       .group = "layout",
       .statement = "Flipping the last dim of every argument flips the result of an elementwise operator.",
       .options = {.max_numel = 24},
       .applies = applies,
       .check = flip_commutes});
}
