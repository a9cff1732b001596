// Dispatch traces: which kernel every operator call chose, and why.
#include <gtest/gtest.h>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"
#include "lamella/verify/text/expression.h"

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
        unsqueeze  x: u64[] {cpu}   exclude {vmap#1}  include {}   -> cpu
        fold_in  key: u64[1] {cpu}  data: u64[2] {cpu}   exclude {vmap#1}  include {}   -> cpu
        rand  key: u64[2] {cpu}   exclude {vmap#1}  include {vmap#1}   -> cpu
      add  a: f32[3] {vmap#1 cpu}  b: f32[3] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        add  a: f32[2,3] {cpu}  b: f32[2,3] {cpu}   exclude {vmap#1}  include {}   -> cpu
      )");
}

TEST(Trace, JacobianOfAHolomorphicFunction) {
  const Tensor z = complex(ones({2}), ones({2}));
  const UnaryFunction square = [](const Tensor& t) { return t * t; };
  EXPECT_INLINE(trace([&] { jacrev(square, {.holomorphic = true})(z); }), R"(
mul  a: c64[2] {grad#1 cpu}  b: c64[2] {grad#1 cpu}   exclude {}  include {}   -> grad#1
  mul  a: c64[2] {cpu}  b: c64[2] {cpu}   exclude {grad#1}  include {}   -> cpu
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[2] {cpu}   exclude {}  include {}   -> cpu
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[2] {cpu}   exclude {}  include {}   -> cpu
eq  a: i64[2,1] {cpu}  b: i64[1,2] {cpu}   exclude {}  include {}   -> cpu
full_like  x: c64[2] {cpu}   exclude {}  include {}   -> cpu
zeros_like  x: c64[2] {cpu}   exclude {}  include {}   -> cpu
reshape  x: bool[2,2] {cpu}   exclude {}  include {}   -> composite
  view  x: bool[2,2] {cpu}   exclude {}  include {}   -> cpu
where  condition: bool[2,2] {cpu}  x: c64[2] {cpu}  y: c64[2] {cpu}   exclude {}  include {}   -> cpu
conj  x: c64[2] {cpu}   exclude {}  include {}   -> composite
  conj_physical  x: c64[2] {cpu}   exclude {}  include {}   -> cpu
mul  a: c64[2] {vmap#1 cpu}  b: c64[2] {cpu}   exclude {}  include {}   -> vmap#1
  mul  a: c64[2,2] {cpu}  b: c64[2] {cpu}   exclude {vmap#1}  include {}   -> cpu
conj  x: c64[2] {cpu}   exclude {}  include {}   -> composite
  conj_physical  x: c64[2] {cpu}   exclude {}  include {}   -> cpu
mul  a: c64[2] {vmap#1 cpu}  b: c64[2] {cpu}   exclude {}  include {}   -> vmap#1
  mul  a: c64[2,2] {cpu}  b: c64[2] {cpu}   exclude {vmap#1}  include {}   -> cpu
add  a: c64[2] {vmap#1 cpu}  b: c64[2] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  add  a: c64[2,2] {cpu}  b: c64[2,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
conj  x: c64[2,2] {cpu}   exclude {}  include {}   -> composite
  conj_physical  x: c64[2,2] {cpu}   exclude {}  include {}   -> cpu
reshape  x: c64[2,2] {cpu}   exclude {}  include {}   -> composite
  view  x: c64[2,2] {cpu}   exclude {}  include {}   -> cpu
)");
}

TEST(Trace, JacobianInGroupsOfRows) {
  const Tensor x = ones({2});
  const UnaryFunction f = [](const Tensor& t) { return sin(t); };
  EXPECT_INLINE(trace([&] { jacfwd(f, {.chunk = 1})(x); }), R"(
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[2] {cpu}   exclude {}  include {}   -> cpu
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[1] {cpu}   exclude {}  include {}   -> cpu
eq  a: i64[1,1] {cpu}  b: i64[1,2] {cpu}   exclude {}  include {}   -> cpu
full_like  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
zeros_like  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
reshape  x: bool[1,2] {cpu}   exclude {}  include {}   -> composite
  view  x: bool[1,2] {cpu}   exclude {}  include {}   -> cpu
where  condition: bool[1,2] {cpu}  x: f32[2] {cpu}  y: f32[2] {cpu}   exclude {}  include {}   -> cpu
sin  x: f32[2] {jvp#2 cpu}   exclude {}  include {}   -> jvp#2
  sin  x: f32[2] {cpu}   exclude {jvp#2}  include {}   -> cpu
  cos  x: f32[2] {cpu}   exclude {jvp#2}  include {}   -> cpu
  mul  a: f32[2] {vmap#1 cpu}  b: f32[2] {cpu}   exclude {jvp#2}  include {}   -> vmap#1
    mul  a: f32[1,2] {cpu}  b: f32[2] {cpu}   exclude {jvp#2 vmap#1}  include {}   -> cpu
permute  x: f32[1,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[2] {cpu}   exclude {}  include {}   -> cpu
arange   exclude {}  include {}   -> cpu
unsqueeze  x: i64[1] {cpu}   exclude {}  include {}   -> cpu
eq  a: i64[1,1] {cpu}  b: i64[1,2] {cpu}   exclude {}  include {}   -> cpu
full_like  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
zeros_like  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
reshape  x: bool[1,2] {cpu}   exclude {}  include {}   -> composite
  view  x: bool[1,2] {cpu}   exclude {}  include {}   -> cpu
where  condition: bool[1,2] {cpu}  x: f32[2] {cpu}  y: f32[2] {cpu}   exclude {}  include {}   -> cpu
sin  x: f32[2] {jvp#2 cpu}   exclude {}  include {}   -> jvp#2
  sin  x: f32[2] {cpu}   exclude {jvp#2}  include {}   -> cpu
  cos  x: f32[2] {cpu}   exclude {jvp#2}  include {}   -> cpu
  mul  a: f32[2] {vmap#1 cpu}  b: f32[2] {cpu}   exclude {jvp#2}  include {}   -> vmap#1
    mul  a: f32[1,2] {cpu}  b: f32[2] {cpu}   exclude {jvp#2 vmap#1}  include {}   -> cpu
permute  x: f32[1,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
cat  tensors: [f32[2,1] {cpu}, f32[2,1] {cpu}]   exclude {}  include {}   -> cpu
reshape  x: f32[2,2] {cpu}   exclude {}  include {}   -> composite
  view  x: f32[2,2] {cpu}   exclude {}  include {}   -> cpu
)");
}

TEST(Trace, VmapInChunks) {
  VmapOptions few;
  few.chunk = 2;
  const Function f = vmap(Function([](const Tensors& v) { return Tensors{sin(v[0])}; }), few);
  const Tensor x = ones({3, 2});
  EXPECT_INLINE(trace([&] { f({x}); }), R"(
slice  x: f32[3,2] {cpu}   exclude {}  include {}   -> cpu
sin  x: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  sin  x: f32[2,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
slice  x: f32[3,2] {cpu}   exclude {}  include {}   -> cpu
sin  x: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  sin  x: f32[1,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
cat  tensors: [f32[2,2] {cpu}, f32[1,2] {cpu}]   exclude {}  include {}   -> cpu
)");
}

TEST(Trace, StopGradient) {
  const UnaryFunction f = [](const Tensor& t) { return sum(stop_gradient(t) * t); };
  const Tensor x = ones({3, 2});
  EXPECT_INLINE(trace([&] { vmap(grad(f))(x); }), R"(
detach  x: f32[2] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> grad#2
  detach  x: f32[2] {vmap#1 cpu}   exclude {grad#2}  include {}   -> vmap#1
    detach  x: f32[3,2] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
mul  a: f32[2] {grad#2 vmap#1 cpu}  b: f32[2] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> grad#2
  mul  a: f32[2] {vmap#1 cpu}  b: f32[2] {vmap#1 cpu}   exclude {grad#2}  include {}   -> vmap#1
    mul  a: f32[3,2] {cpu}  b: f32[3,2] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
sum  x: f32[2] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> grad#2
  sum  x: f32[2] {vmap#1 cpu}   exclude {grad#2}  include {}   -> vmap#1
    sum  x: f32[3,2] {cpu}   exclude {grad#2 vmap#1}  include {}   -> cpu
ones_like  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  ones_like  x: f32[3] {cpu}   exclude {vmap#1}  include {}   -> cpu
unsqueeze  x: f32[] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  unsqueeze  x: f32[3] {cpu}   exclude {vmap#1}  include {}   -> cpu
expand  x: f32[1] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  expand  x: f32[3,1] {cpu}   exclude {vmap#1}  include {}   -> cpu
conj  x: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> composite
mul  a: f32[2] {vmap#1 cpu}  b: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
  mul  a: f32[3,2] {cpu}  b: f32[3,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
)");
}

TEST(Trace, NoGradUnderALevel) {
  const UnaryFunction f = [](const Tensor& t) {
    const Tensor y = t * t;
    const NoGrad no;
    add_(y, t);
    return sum(y);
  };
  const Tensor x = ones({2});
  EXPECT_INLINE(trace([&] { jvp([&](const Tensors& v) { return Tensors{f(v[0])}; }, {x}, {x}); }), R"(
      mul  a: f32[2] {jvp#1 cpu}  b: f32[2] {jvp#1 cpu}   exclude {}  include {}   -> jvp#1
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
        mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
        add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {jvp#1}  include {}   -> cpu
      add_  a: f32[2] {jvp#1 cpu}  b: f32[2] {jvp#1 cpu}   exclude {autograd}  include {no_grad#2}   -> \
      no_grad#2
        detach  x: f32[2] {jvp#1 cpu}   exclude {no_grad#2 autograd}  include {no_grad#2}   -> jvp#1
          detach  x: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  include {no_grad#2}   -> cpu
        detach  x: f32[2] {jvp#1 cpu}   exclude {no_grad#2 autograd}  include {no_grad#2}   -> jvp#1
          detach  x: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  include {no_grad#2}   -> cpu
        add  a: f32[2] {jvp#1 cpu}  b: f32[2] {jvp#1 cpu}   exclude {no_grad#2 autograd}  include \
      {no_grad#2}   -> jvp#1
          add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  include \
      {no_grad#2}   -> cpu
        with_values_  self: f32[2] {jvp#1 cpu}  src: f32[2] {cpu}   exclude {no_grad#2 autograd}  \
      include {no_grad#2}   -> jvp#1
          with_values  self: f32[2] {jvp#1 cpu}  src: f32[2] {cpu}   exclude {no_grad#2 autograd}  \
      include {no_grad#2}   -> jvp#1
            with_values  self: f32[2] {cpu}  src: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  \
      include {no_grad#2}   -> cpu
      sum  x: f32[2] {jvp#1 cpu}   exclude {autograd}  include {no_grad#2}   -> no_grad#2
        detach  x: f32[2] {jvp#1 cpu}   exclude {no_grad#2 autograd}  include {no_grad#2}   -> jvp#1
          detach  x: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  include {no_grad#2}   -> cpu
        sum  x: f32[2] {jvp#1 cpu}   exclude {no_grad#2 autograd}  include {no_grad#2}   -> jvp#1
          sum  x: f32[2] {cpu}   exclude {no_grad#2 jvp#1 autograd}  include {no_grad#2}   -> cpu
      zeros_like  x: f32[] {cpu}   exclude {jvp#1}  include {}   -> cpu
      )");
}

TEST(Trace, LinearizedFunction) {
  const Tensor x = ones({2});
  const Linearized linear = linearize([](const Tensors& v) { return Tensors{sin(v[0]) * v[0]}; }, {x});
  EXPECT_INLINE(trace([&] { linear.map({x}); }), R"(
conj  x: f32[2] {cpu}   exclude {}  include {}   -> composite
mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {}  include {}   -> cpu
conj  x: f32[2] {cpu}   exclude {}  include {}   -> composite
mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {}  include {}   -> cpu
conj  x: f32[2] {cpu}   exclude {}  include {}   -> composite
mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {}  include {}   -> cpu
add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {}  include {}   -> cpu
)");
}

TEST(Trace, HessianTimesAVector) {
  const Tensor x = ones({2});
  EXPECT_INLINE(trace([&] { hvp([](const Tensors& v) { return sum(v[0] * v[0]); }, {x}, {x}); }), R"(
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
}  // namespace
