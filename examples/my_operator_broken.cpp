// The broken twin of my_operator.cpp: its derivative forgets the half. `lamella verify --load` finds it.
#include "lamella/core/plan.h"
#include "lamella/core/visit.h"
#include "lamella/dispatch/plugin.h"
#include "lamella/draw/draw.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer.h"

namespace {
using namespace lamella;

void infer_half_square(const Frame& frame, Inferred& out) {
  ops::infer_same(frame, out);
  LAMELLA_CHECK(is_floating(out.compute), DType, "broken_half_square: x is {}, expected a floating dtype",
                frame.tensor(0));
}

/// One text for the CPU and for the oracle's f128 column; half dtypes compute in f32.
void half_square_kernel(const KernelCall& call) {
  const IterPlan plan = make_plan(call.outs, call.ins);
  visit_dtype(call.compute, [&]<class T>(type_tag<T>) {
    if constexpr (is_floating_type<T>)
      for_each_outer(plan, 0, [](char* const* at) {
        const T x = *reinterpret_cast<const T*>(at[1]);
        *reinterpret_cast<T*>(at[0]) = T(x / 2 * x);
      });
  });
}

/// Wrong on purpose, except at 0. Both directions agree with each other, so only differences of values can
/// tell.
Tensor half_square_slope(const Tensor& direction, const Tensor& x) { return direction * x * 2; }
}  // namespace

LAMELLA_PLUGIN() {
  OpTable::add({.schema = "broken_half_square(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,  // gives the batch rule
                .infer = infer_half_square,
                .kernel = {.cpu = half_square_kernel, .reference = half_square_kernel},
                .jvp = {wrt("x", saves("x"), [](Tensor t, Tensor x) { return half_square_slope(t, x); })},
                .vjp = {wrt("x", saves("x"), [](Tensor dy, Tensor x) { return half_square_slope(dy, x); })},
                .properties = kNoOut,  // the kernel writes its own dtype only
                .samples = [](Draw& d) -> Values { return {d.tensor(d.shape(), d.dtype(kFloating))}; },
                .doc = "x * x / 2 for floating x. Correctly rounded unless it underflows."});
}
