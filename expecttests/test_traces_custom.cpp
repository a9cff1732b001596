// Dispatch traces of operators that take functions: every level takes its part, then the function runs at
// all.
#include <gtest/gtest.h>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"

#include "expect.h"

namespace test_traces_custom {  // files of this room are compiled several at a time
namespace {
using namespace lamella;

TEST(TraceCustom, RuleUnderVmapOfGrad) {
  const Function f =
      custom_vjp([](const Tensors& xs) { return std::pair(Tensors{sin(xs[0])}, Tensors{xs[0]}); },
                 [](const Tensors& kept, const Tensors& u) { return Tensors{u[0] * cos(kept[0])}; });
  const UnaryFunction g = vmap(grad(UnaryFunction([&](const Tensor& x) { return f({x})[0]; })));
  const Tensor x = zeros({3});
  EXPECT_INLINE(trace([&] { g(x); }), R"(
custom_vjp  xs: [f32[] {grad#2 vmap#1 cpu}]   exclude {}  include {grad#2 vmap#1}   -> grad#2
  custom_vjp  xs: [f32[] {vmap#1 cpu}]   exclude {grad#2}  include {grad#2 vmap#1}   -> vmap#1
    custom_vjp  xs: [f32[3] {cpu}]   exclude {grad#2 vmap#1}  include {grad#2 vmap#1}   -> autograd
      custom_vjp  xs: [f32[3] {cpu}]   exclude {grad#2 vmap#1 autograd}  include {grad#2 vmap#1}   -> cpu
        sin  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
          sin  x: f32[3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
ones_like  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  ones_like  x: f32[3] {cpu}   exclude {vmap#1}  include {}   -> cpu
cos  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  cos  x: f32[3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
mul  a: f32[] {vmap#1 cpu}  b: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
)");
}

TEST(TraceCustom, TransposedRuleUnderGradOfVmap) {
  const Function f = custom_jvp(
      [](const Tensors& xs) { return Tensors{sin(xs[0])}; },
      [](const Tensors& xs, const Tensors&, const Tensors& t) { return Tensors{t[0] * cos(xs[0])}; });
  const UnaryFunction g = grad(UnaryFunction([&](const Tensor& x) { return sum(vmap(f)({x})[0]); }));
  const Tensor x = zeros({3});
  EXPECT_INLINE(trace([&] { g(x); }), R"(
custom_jvp  xs: [f32[] {vmap#2 grad#1 cpu}]   exclude {}  include {vmap#2 grad#1}   -> vmap#2
  custom_jvp  xs: [f32[3] {grad#1 cpu}]   exclude {vmap#2}  include {vmap#2 grad#1}   -> grad#1
    custom_jvp  xs: [f32[3] {cpu}]   exclude {vmap#2 grad#1}  include {vmap#2 grad#1}   -> autograd
      custom_jvp  xs: [f32[3] {cpu}]   exclude {vmap#2 grad#1 autograd}  include {vmap#2 grad#1}   -> cpu
        sin  x: f32[] {vmap#2 cpu}   exclude {}  include {}   -> vmap#2
          sin  x: f32[3] {cpu}   exclude {vmap#2}  include {}   -> cpu
    clone  x: f32[3] {cpu}   exclude {vmap#2 grad#1}  include {}   -> cpu
sum  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  sum  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
ones_like  x: f32[] {cpu}   exclude {}  include {}   -> cpu
unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
zeros_like  x: f32[] {vmap#2 cpu}   exclude {}  include {}   -> vmap#2
  zeros_like  x: f32[3] {cpu}   exclude {vmap#2}  include {}   -> cpu
cos  x: f32[] {vmap#2 cpu}   exclude {}  include {}   -> vmap#2
  cos  x: f32[3] {cpu}   exclude {grad#3 vmap#2}  include {}   -> cpu
mul  a: f32[] {grad#3 vmap#2 cpu}  b: f32[] {vmap#2 cpu}   exclude {}  include {}   -> grad#3
  mul  a: f32[] {vmap#2 cpu}  b: f32[] {vmap#2 cpu}   exclude {grad#3}  include {}   -> vmap#2
    mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {grad#3 vmap#2}  include {}   -> cpu
conj  x: f32[] {vmap#2 cpu}   exclude {}  include {}   -> composite
mul  a: f32[] {vmap#2 cpu}  b: f32[] {vmap#2 cpu}   exclude {}  include {}   -> vmap#2
  mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {vmap#2}  include {}   -> cpu
)");
}

TEST(TraceCustom, CheckpointRunsAgainInBackward) {
  const UnaryFunction g = grad(UnaryFunction([](const Tensor& x) {
    return checkpoint([](const Tensors& xs) { return Tensors{sum(exp(sin(xs[0])))}; })({x})[0];
  }));
  const Tensor x = zeros({3});
  EXPECT_INLINE(trace([&] { g(x); }), R"(
sin  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  sin  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
exp  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  exp  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
  clone  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
sum  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  sum  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
ones_like  x: f32[] {cpu}   exclude {}  include {}   -> cpu
unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
sin  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  sin  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
exp  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  exp  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
  clone  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
sum  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  sum  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
cos  x: f32[3] {cpu}   exclude {}  include {}   -> cpu
conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
)");
}

}  // namespace
}  // namespace test_traces_custom
