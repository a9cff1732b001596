// The law of tapes inside other levels: what levels further out write after a tape has saved it is seen.
#include <algorithm>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

constexpr std::string_view kStacks[] = {"jvp", "vmap", "vmap of vmap", "vmap of jvp"};

Function under_jvp(const Function& f) {
  return [f](const Tensors& xs) {
    Tensors ts;
    for (const Tensor& x : xs) ts.push_back(ones_like(x));
    return jvp(f, xs, ts).values;
  };
}

/// f of one tensor inside of levels; in lanes that are alike.
Tensors inside(uint32_t stack, const Function& f, const Tensor& x) {
  const Tensor two = lamella::stack(Tensors{x, x}, 0);
  if (stack == 0) return under_jvp(f)({x});
  if (stack == 1) return vmap(f)({two});
  if (stack == 2) return vmap(vmap(f))({lamella::stack(Tensors{two, two}, 0)});
  return vmap(under_jvp(f))({two});
}

bool asks_for(const Op& op, int traced, int other) {
  const BoundFormula* const formula = op.vjp_of(traced);
  return formula && std::ranges::any_of(formula->saves, [&](const BoundSave& s) {
           return s.kind == BoundSave::Argument && s.index == other;
         });
}

Verdict tapes_see_writes(Case& c) {
  Subject s;
  if (!prepare(c, s) || s.xs.size() < 2) return Verdict::discard();
  const uint32_t n = uint32_t(s.xs.size()), traced = c.draw.below(n);
  const uint32_t other = (traced + 1 + c.draw.below(n - 1)) % n, stack = c.draw.below(4);
  const bool fresh = c.draw.flag(), outer_value = fresh || c.draw.flag();
  const int of_traced = s.slots[traced].param, of_other = s.slots[other].param;
  if (of_traced == of_other || s.xs[other].numel() == 0) return Verdict::discard();
  const Tensors us = directions(c, s.ys);
  Status status;
  const Function body = [&](const Tensors& outer) {
    const Tensor z = fresh ? zeros(s.xs[other].sizes(), s.xs[other].dtype()) : outer[0] * 1;
    if (fresh) copy_(z, s.xs[other]);
    const Function f = [&](const Tensors& y) {
      Tensors xs = s.xs;
      xs[traced] = y[0], xs[other] = z;
      return s.f(xs);
    };
    const VjpResult r = vjp(f, {s.xs[traced]});
    Tensors out = r.pullback(us);
    outer_value ? copy_(z, outer[0] * 2) : fill_(z, 3);
    status = status_of([&] { out.push_back(r.pullback(us)[0]); });
    return out;
  };
  Tensors got;
  const Status all = status_of([&] { got = inside(stack, body, s.xs[other]); });
  const std::string where =
      format("under {}, argument {} ({}) written after the tape of argument {} was made: ", kStacks[stack],
             of_other, fresh ? "fresh memory" : "a value of the levels", of_traced);
  const std::string program = vjp_program(c, s, us, us);
  if (all.raised) {
    if (all.code == ErrorCode::Level) return Verdict::discard();  // a view of fresh memory may be refused
    return Verdict::fail(where + str(all), program, 2);
  }
  if (asks_for(c.op, of_traced, of_other)) {
    if (status.raised && status.code == ErrorCode::Value) return Verdict::pass(2);
    return Verdict::fail(where + "its formula asks for it; expected error value, got " + str(status), program,
                         2);
  }
  if (status.raised) return Verdict::fail(where + str(status), program, 2);
  const Finding d = differs(got[1], got[0]);
  return d.empty() ? Verdict::pass(2) : Verdict::fail(where + d, program, 2);
}

bool with_two_arguments(const Op& op) {
  return has_vjp(op) && !op.composite && !op.is_view() && op.tensor_params.size() > 1 &&
         inexact_arguments(op) > 1 && !op.has(kRandom) && op.schema.result_kind != ResultKind::TensorList;
}

}  // namespace

void add_tape_laws(std::vector<Law>& laws) {
  laws.push_back({97,
                  "tapes_see_writes",
                  "compose",
                  "What levels further out write, to memory or to a value, after a tape has saved it, raises "
                  "the version error where the formula asks for it, and changes nothing where it does not.",
                  {.dtypes = mask(DType::F64), .tame = true, .max_numel = 6},
                  false,
                  with_two_arguments,
                  tapes_see_writes});
}

}  // namespace lamella::verify
