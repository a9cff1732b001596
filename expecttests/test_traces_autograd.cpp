// Dispatch traces of base autograd: writes through views, hooks, gradients on the way, what is saved, trees.
#include <gtest/gtest.h>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"

#include "expect.h"

namespace test_traces_autograd {  // files of this room are compiled several at a time
namespace {
using namespace lamella;

TEST(TraceAutograd, WriteThroughAView) {
  const Tensor w = requires_grad(ones({2}));
  EXPECT_INLINE(trace([&] {
                  const Tensor y = w * 2;
                  mul_(select(y, 0, 0), 3);
                  backward(sum(y));
                }),
                R"(
      mul  a: f32[2] {autograd cpu}  b: i64[] {cpu}   exclude {}  include {}   -> autograd
        mul  a: f32[2] {autograd cpu}  b: i64[] {cpu}   exclude {autograd}  include {}   -> cpu
      select  x: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        select  x: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      mul_  a: f32[] {autograd cpu}  b: i64[] {cpu}   exclude {}  include {}   -> autograd
        mul  a: f32[] {autograd cpu}  b: i64[] {cpu}   exclude {}  include {}   -> autograd
          mul  a: f32[] {autograd cpu}  b: i64[] {cpu}   exclude {autograd}  include {}   -> cpu
        copy_  self: f32[] {autograd cpu}  src: f32[] {autograd cpu}   exclude {autograd}  include {}   \
      -> cpu
      sum  x: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        sum  x: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      new_zeros  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      strided_scatter  x: f32[2] {cpu}  src: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      strided_copy  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
        contiguous  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
          clone  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: i64[] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[] {cpu}  b: i64[] {cpu}   exclude {autograd}  include {}   -> cpu
      new_zeros  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      select_scatter  x: f32[2] {cpu}  src: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: i64[] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: i64[] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, WriteThroughTheRealPart) {
  const Tensor w = requires_grad(ones({2}));
  EXPECT_INLINE(trace([&] {
                  const Tensor z = complex(w, w);
                  mul_(real(z), w);
                  backward(sum(imag(z)));
                }),
                R"(
      complex  real: f32[2] {autograd cpu}  imag: f32[2] {autograd cpu}   exclude {}  include {}   -> \
      autograd
        complex  real: f32[2] {autograd cpu}  imag: f32[2] {autograd cpu}   exclude {autograd}  include \
      {}   -> cpu
      real  x: c64[2] {autograd cpu}   exclude {}  include {}   -> composite
        real_part  x: c64[2] {autograd cpu}   exclude {}  include {}   -> autograd
          real_part  x: c64[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      mul_  a: f32[2] {autograd cpu}  b: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        mul  a: f32[2] {autograd cpu}  b: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
          mul  a: f32[2] {autograd cpu}  b: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> \
      cpu
          clone  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
        copy_  self: f32[2] {autograd cpu}  src: f32[2] {autograd cpu}   exclude {autograd}  include {} \
        -> cpu
      imag  x: c64[2] {autograd cpu}   exclude {}  include {}   -> autograd
        imag  x: c64[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      sum  x: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        sum  x: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      zeros_like  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      complex  real: f32[2] {cpu}  imag: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      new_zeros  x: c64[2] {cpu}   exclude {autograd}  include {}   -> cpu
      strided_scatter  x: c64[2] {cpu}  src: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      strided_copy  x: c64[2] {cpu}   exclude {autograd}  include {}   -> cpu
        contiguous  x: c64[2] {cpu}   exclude {autograd}  include {}   -> composite
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      zeros_like  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      complex  real: f32[2] {cpu}  imag: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      add  a: c64[2] {cpu}  b: c64[2] {cpu}   exclude {autograd}  include {}   -> cpu
      real  x: c64[2] {cpu}   exclude {autograd}  include {}   -> composite
        real_part  x: c64[2] {cpu}   exclude {autograd}  include {}   -> cpu
      add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      imag  x: c64[2] {cpu}   exclude {autograd}  include {}   -> cpu
      add  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, HooksRunBetweenRules) {
  const Tensor w = requires_grad(ones({2})), y = sin(w), z = exp(y);
  add_hook(y, [](const Tensor& ct) { return neg(ct); });
  add_accumulated_hook(w, [](const Tensor& g) { abs(g); });
  add_node_hook(y,
                {{}, [](const Tensors& to_inputs, const Tensors&) { return Tensors{sign(to_inputs[0])}; }});
  retain_grad(y);
  const Tensor root = sum(z);
  EXPECT_INLINE(trace([&] { backward(root); }), R"(
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      neg  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      cos  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      sign  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      abs  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, HookThatGoesBackwards) {
  const Tensor w = requires_grad(ones({2})), v = requires_grad(ones({2}));
  const Tensor y = sin(w), inner = sum(cos(v)), root = sum(y);
  add_hook(y, [&](const Tensor&) {
    backward(inner);
    return Tensor();
  });
  EXPECT_INLINE(trace([&] { backward(root); }), R"(
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      sin  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      neg  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      cos  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, GradientOnTheWayStopsThere) {
  const Tensor w = requires_grad(ones({2})), y = sin(w), root = sum(exp(y));
  EXPECT_INLINE(trace([&] { autograd::grad({root}, {y}); }), R"(
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, GradientsWithAGraph) {
  const Tensor w = requires_grad(ones({2})), root = sum(w * w);
  EXPECT_INLINE(trace([&] { autograd::grad({root}, {w}, {}, {.create_graph = true}); }), R"(
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
      conj  x: f32[2] {autograd cpu}   exclude {}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        mul  a: f32[2] {cpu}  b: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {autograd cpu}   exclude {}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        mul  a: f32[2] {cpu}  b: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      add  a: f32[2] {autograd cpu}  b: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        add  a: f32[2] {autograd cpu}  b: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> \
      cpu
      )");
}

TEST(TraceAutograd, SavedTensorsThroughHooks) {
  const Tensor w = requires_grad(ones({2}));
  EXPECT_INLINE(trace([&] {
                  const SavedTensorHooks hooks([](const Tensor& t) -> Unpack {
                    const Tensor half = to(t, DType::F16);
                    return [half] { return to(half, DType::F32); };
                  });
                  backward(sum(sin(w)));
                }),
                R"(
      sin  x: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        sin  x: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
        to  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      sum  x: f32[2] {autograd cpu}   exclude {}  include {}   -> autograd
        sum  x: f32[2] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      ones_like  x: f32[] {autograd cpu}   exclude {autograd}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {autograd}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {autograd}  include {}   -> cpu
      to  x: f16[2] {cpu}   exclude {autograd}  include {}   -> cpu
      cos  x: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {autograd}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {autograd}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, LevelsRecordInsideEnableGrad) {
  const UnaryFunction f = [](const Tensor& t) {
    const NoGrad off;
    const EnableGrad on;
    return sum(sin(t));
  };
  const Tensor x = ones({2});
  EXPECT_INLINE(trace([&] { grad(f)(x); }), R"(
      sin  x: f32[2] {grad#1 cpu}   exclude {no_grad#2}  include {no_grad#2}   -> grad#1
        sin  x: f32[2] {cpu}   exclude {no_grad#2 grad#1}  include {no_grad#2}   -> cpu
      sum  x: f32[2] {grad#1 cpu}   exclude {no_grad#2}  include {no_grad#2}   -> grad#1
        sum  x: f32[2] {cpu}   exclude {no_grad#2 grad#1}  include {no_grad#2}   -> cpu
      ones_like  x: f32[] {cpu}   exclude {}  include {}   -> cpu
      unsqueeze  x: f32[] {cpu}   exclude {}  include {}   -> cpu
      expand  x: f32[1] {cpu}   exclude {}  include {}   -> cpu
      cos  x: f32[2] {cpu}   exclude {}  include {}   -> cpu
      conj  x: f32[2] {cpu}   exclude {}  include {}   -> composite
      mul  a: f32[2] {cpu}  b: f32[2] {cpu}   exclude {}  include {}   -> cpu
      )");
}

TEST(TraceAutograd, TreesAreTheirLeaves) {
  using Pair = std::pair<Tensor, Tensor>;
  const auto f = [](const Pair& p) { return sum(p.first * p.second); };
  const Pair at{ones({3, 2}), ones({3, 2})};
  EXPECT_INLINE(trace([&] { vmap(grad(f))(at); }), R"(
      mul  a: f32[2] {grad#2 vmap#1 cpu}  b: f32[2] {grad#2 vmap#1 cpu}   exclude {}  include {}   -> \
      grad#2
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
      conj  x: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> composite
      mul  a: f32[2] {vmap#1 cpu}  b: f32[2] {vmap#1 cpu}   exclude {}  include {}   -> vmap#1
        mul  a: f32[3,2] {cpu}  b: f32[3,2] {cpu}   exclude {vmap#1}  include {}   -> cpu
      )");
}

}  // namespace
}  // namespace test_traces_autograd
