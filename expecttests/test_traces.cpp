// Dispatch traces: which kernel every operator call chose, and why.
#include <gtest/gtest.h>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"
#include "lamella/verify/expression.h"

#include "expect.h"

namespace {
using namespace lamella;

std::string trace_of(std::string_view expression, const std::vector<std::string>& shapes) {
  const verify::Bindings variables = verify::parse_shapes(shapes, DType::F32);
  return trace([&] { verify::evaluate(expression, variables); });
}

TEST(Trace, PlainCall) {
  EXPECT_INLINE(trace_of("sin(x) * 2", {"x=3"}), R"(
    sin  x: f32[3] {cpu}   exclude {}  include {}   -> cpu
    mul  a: f32[3] {cpu}  b: i64[] {cpu}   exclude {}  include {}   -> cpu
    )");
}

TEST(Trace, NestedVmapOfSquare) {
  const Tensor x = zeros({4, 2, 3});
  const auto square = vmap(vmap(UnaryFunction([](const Tensor& t) { return t * t; })));
  EXPECT_INLINE(trace([&] { square(x); }), R"(
mul  a: f32[3] {vmap#2 vmap#1 cpu}  b: f32[3] {vmap#2 vmap#1 cpu}   exclude {}  include {}   -> vmap#2
  mul  a: f32[2,3] {vmap#1 cpu}  b: f32[2,3] {vmap#1 cpu}   exclude {vmap#2}  include {}   -> vmap#1
    mul  a: f32[4,2,3] {cpu}  b: f32[4,2,3] {cpu}   exclude {vmap#2 vmap#1}  include {}   -> cpu
)");
}

TEST(Trace, GradientOfASum) {
  EXPECT_INLINE(trace_of("grad(sum(sin(x) * x))", {"x=3"}), R"(
    sin  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
      sin  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
    mul  a: f32[3] {grad#1 cpu}  b: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
      mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
    sum  x: f32[3] {grad#1 cpu}   exclude {}  include {}   -> grad#1
      sum  x: f32[3] {cpu}   exclude {grad#1}  include {}   -> cpu
    ones_like  x: f32[] {cpu}   exclude {}  include {}   -> cpu
    unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
    expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
    conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
    mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
    conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
    mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
    cos  x: f32[3] {cpu}   exclude {}  include {}   -> cpu
    conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
    mul  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
    add  a: f32[3] {cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> cpu
    )");
}

TEST(Trace, PerSampleGradient) {
  EXPECT_INLINE(trace_of("vmap(grad(sum(sin(x) * y)), in=(0, None))", {"x=8x3", "y=3"}), R"(
      sin  x: f32[3] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> grad#2
        sin  x: f32[3] {vmap#1 cpu}   exclude {grad#2}  include {}   -> vmap#1
          sin  x: f32[8,3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
      mul  a: f32[3] {grad#2 vmap#1 cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> grad#2
        mul  a: f32[3] {vmap#1 cpu}  b: f32[3] {cpu}   exclude {grad#2}  include {}   -> vmap#1
          mul  a: f32[8,3] {cpu}  b: f32[3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
      sum  x: f32[3] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> grad#2
        sum  x: f32[3] {vmap#1 cpu}   exclude {grad#2}  include {}   -> vmap#1
          sum  x: f32[8,3] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
      ones_like  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        ones_like  x: f32[8] {cpu}   exclude {vmap#1}  include {}   -> cpu
      unsqueeze  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        unsqueeze  x: f32[8] {cpu}   exclude {vmap#1}  include {}   -> cpu
      expand  x: f32[1] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        expand  x: f32[8,1] {cpu}   exclude {vmap#1}  include {}   -> cpu
      conj  x: f32[3] {cpu}   exclude {}  include {}   -> composite
      mul  a: f32[3] {vmap#1 cpu}  b: f32[3] {cpu}   exclude {}  include {}   -> vmap#1
        mul  a: f32[8,3] {cpu}  b: f32[3] {cpu}   exclude {vmap#1}  include {}   -> cpu
      cos  x: f32[3] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        cos  x: f32[8,3] {cpu}   exclude {vmap#1}  include {}   -> cpu
      conj  x: f32[3] {vmap#1 cpu}   exclude {}  include {}   -> composite
      mul  a: f32[3] {vmap#1 cpu}  b: f32[3] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        mul  a: f32[8,3] {cpu}  b: f32[8,3] {cpu}   exclude {vmap#1}  include {}   -> cpu
      )");
}

TEST(Trace, ForwardOverReverse) {
  EXPECT_INLINE(trace_of("jvp(grad(sum(x * x)))", {"x=2"}), R"(
    ones_like  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
    mul  a: f32[2] {grad#2 jvp#1 cpu}  b: f32[2] {grad#2 jvp#1 cpu}   exclude {}  include {}   -> grad#2
      mul  a: f32[2] {jvp#1 cpu}  b: f32[2] {jvp#1 cpu}   exclude {grad#2}  include {}   -> jvp#1
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
        add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
    sum  x: f32[2] {grad#2 jvp#1 cpu}   exclude {}  include {}   -> grad#2
      sum  x: f32[2] {jvp#1 cpu}   exclude {grad#2}  include {}   -> jvp#1
        sum  x: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
        sum  x: f32[2] {cpu}   exclude {grad#2 jvp#1}  include {}   -> cpu
    ones_like  x: f32[] {jvp#1 cpu}   exclude {}  include {}   -> jvp#1
      ones_like  x: f32[] {cpu}   exclude {jvp#1}  include {}   -> cpu
    unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
    expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
    conj  x: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> composite
    mul  a: f32[2] {cpu}  b: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> jvp#1
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
    conj  x: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> composite
    mul  a: f32[2] {cpu}  b: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> jvp#1
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
    add  a: f32[2] {jvp#1 cpu}  b: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> jvp#1
      add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
      add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
    )");
}

TEST(Trace, RandomNumbersAskEveryLevel) {
  const Tensor x = zeros({2, 3});
  const VmapOptions different{{0}, {0}, Randomness::Different};
  EXPECT_INLINE(trace([&] {
                  vmap(Function([](const Tensors& t) { return Tensors{t[0] + rand({3})}; }), different)({x});
                }),
                R"(
      rand   exclude {}  include {vmap#1}   -> vmap#1
        next_key   exclude {vmap#1}  include {vmap#1}   -> cpu
        arange   exclude {vmap#1}  include {}   -> cpu
        to  x: i64[2] {cpu}   exclude {vmap#1}  include {}   -> cpu
        unsqueeze  x: u64[] {cpu}   exclude {vmap#1}  include {}   -> cpu
        fold_in  key: u64[1] {cpu}  data: u64[2] {cpu}   exclude {vmap#1}  include {}   -> cpu
        rand  key: u64[2] {cpu}   exclude {vmap#1}  include {vmap#1}   -> cpu
      add  a: f32[3] {vmap#1 cpu}  b: f32[3] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        add  a: f32[2,3] {cpu}  b: f32[2,3] {cpu}   exclude {vmap#1}  include {}   -> cpu
      )");
}
}  // namespace
