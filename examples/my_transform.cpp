// A carried transform of one's own, and laws about it: beside each value goes its shadow, what the same
// program computes in f64 or c128. `lamella verify --load build/release/plugins/my_transform.so` asks the
// laws of all operators.
#include "lamella/plugin.h"
#include "lamella/transforms/carried.h"
#include "lamella/verify/case/law.h"

namespace {
using namespace lamella;

Tensor widened(const Tensor& t) {
  if (!t.defined() || !is_inexact(t.dtype())) return t;
  const DType wide = is_complex(t.dtype()) ? DType::C128 : DType::F64;
  return t.dtype() == wide ? t : to(t, wide);
}

/// Every operator on the shadows, too. What it is told to narrow them to is not theirs.
void call_wide(const Frame&, Frame& shadows) {
  lamella::call(shadows);
  for_each_result(shadows, [](Tensor& t) { t = widened(t); });
}

constexpr CarriedRules kShadow{"shadow", widened, call_wide};

/// The public function: values and shadows of what f gives.
Carried shadowed(const Function& f, const Tensors& xs) { return run_carried(kShadow, f, xs); }

// Tests: laws of the transform, asked of every operator and drawn arguments.
using namespace lamella::verify;

bool applies(const Op& op) { return takes_tensors(op) && !op.has(kRandom) && inexact_arguments(op) > 0; }

/// Composites may round to their dtype inside, as layer_norm does: what they are made of is asked by itself.
bool applies_whole(const Op& op) { return applies(op) && !op.composite; }

Verdict values_are_unchanged(Case& c) {
  const Function f = c.function(c.inexact());
  const Tensors xs = c.values(c.inexact());
  return agree(c, shadowed(f, xs).values, f(xs));
}

Verdict shadows_are_wide_calls(Case& c) {
  const Function f = c.function(c.inexact());
  Tensors xs = c.values(c.inexact());
  const Tensors got = shadowed(f, xs).carried;
  for (Tensor& x : xs) x = widened(x);
  Tensors want = f(xs);
  for (Tensor& y : want) y = widened(y);
  return agree(c, got, want);
}

Verdict shadows_in_lanes(Case& c) {
  const Function f = c.function(c.inexact());
  const Function shadow = [&](const Tensors& xs) { return shadowed(f, xs).carried; };
  const Tensors xs = c.values(c.inexact());
  if (xs.empty()) return Verdict::discard();  // an empty list
  Tensors lanes, wide;
  for (const Tensor& x : xs) lanes.push_back(stack({x, x * 0.5}, 0));
  for (const Tensor& x : lanes) wide.push_back(widened(x));
  const InDims dims(xs.size(), 0);
  Tensors want = vmap(f, dims)(wide);
  for (Tensor& y : want) y = widened(y);
  return agree(c, vmap(shadow, dims)(lanes), want);
}
}  // namespace

LAMELLA_PLUGIN() {
  add_law({.number = 1021,
           .id = "shadow_keeps_values",
           .group = "shadow",
           .statement = "Under shadow an operator gives the bits that it gives without.",
           .applies = applies,
           .check = values_are_unchanged});
  add_law({.number = 1022,
           .id = "shadow_is_wide",
           .group = "shadow",
           .statement = "The shadow of a result is the operator's result for widened arguments.",
           .applies = applies_whole,
           .check = shadows_are_wide_calls});
  add_law({.number = 1023,
           .id = "shadow_in_lanes",
           .group = "shadow",
           .statement = "Under vmap a shadow is what vmap gives for widened lanes.",
           .applies = applies_whole,
           .check = shadows_in_lanes});
}
