// Error texts of what no argument may be: options out of their lists, dtypes and devices that are none, empty
// functions.
#include <limits>

#include "lamella/core/adopt.h"
#include "lamella/dispatch/determinism.h"
#include "lamella/dispatch/trace.h"
#include "lamella/transforms/carried.h"
#include "lamella/transforms/linearize.h"
#include "lamella/transforms/saved_hooks.h"
#include "lamella/verify/gradcheck/gradcheck.h"

#include "refusal.h"

namespace lamella {
namespace test_errors_given {  // files of this room are compiled several at a time
namespace {
using namespace lamella::expect;

TEST(GivenErrors, OptionsOutOfTheirLists) {
  const Tensor x = x23();
  const auto mapped = [&](const VmapOptions& options) {
    return refused([&] { vmap([](const Tensors& v) { return v; }, options)({x}); }, {x});
  };
  EXPECT_INLINE(mapped({.size = -5}), R"(
      [value] vmap: size = -5; expected size >= 0, or -1 for the lanes of a mapped argument)");
  EXPECT_INLINE(mapped({.in_dims = {kNone}, .size = -2}), R"(
      [value] vmap: size = -2; expected size >= 0, or -1 for the lanes of a mapped argument)");
  EXPECT_INLINE(mapped({.first_lane = std::numeric_limits<int64_t>::max()}), R"(
      [value] vmap: first_lane = 9223372036854775807 of 2 lanes; expected lanes that an int64 numbers)");
  EXPECT_INLINE(mapped({.randomness = Randomness(77)}), R"(
      [randomness] vmap: randomness = Randomness(77); expected Error, Same or Different)");
  EXPECT_INLINE(mapped({.randomness = Randomness(3), .chunk = 1}), R"(
      [randomness] vmap: randomness = Randomness(3); expected Error, Same or Different)");
  const Function f = [](const Tensors& v) { return v; };
  EXPECT_INLINE(refused([&] { jacfwd(f, {.randomness = Randomness(77)})({x}); }, {x}), R"(
      [randomness] vmap: randomness = Randomness(77); expected Error, Same or Different)");
  EXPECT_INLINE(refused([&] { const Deterministic on(Determinism(9)); }), R"(
      [value] Deterministic: asked = Determinism(9); expected Any, Warned or Required)");
  EXPECT_INLINE(refused([&] { const DefaultDevice there(Device(77)); }), R"(
      [device] DefaultDevice: device = Device(77); expected cpu, reference, cuda, meta, user0 or user1)");
}

TEST(GivenErrors, DTypesOfOperatorsThatAreNone) {
  const Tensor x = x23();
  constexpr DType kNo = DType(99);
  EXPECT_INLINE(refused("zeros", {Dims{2}, kNo}), R"(
      [dtype] zeros: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 \
      or c128)");
  EXPECT_INLINE(refused("empty", {Dims{0}, DType(17)}), R"(
      [dtype] empty: dtype = DType(17); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 \
      or c128)");
  EXPECT_INLINE(refused("to", {x, kNo}), R"(
      [dtype] to: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
  EXPECT_INLINE(refused("sum", {x, Value{}, false, kNo}), R"(
      [dtype] sum: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
  EXPECT_INLINE(refused("cumsum", {x, int64_t{0}, kNo}), R"(
      [dtype] cumsum: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 \
      or c128)");
  EXPECT_INLINE(refused("softmax", {x, int64_t{0}, kNo}), R"(
      [dtype] softmax: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 \
      or c128)");
  EXPECT_INLINE(refused([&] { x.to(kNo); }, {x}), R"(
      [dtype] to: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
  EXPECT_INLINE(refused([&] { rand({2}, {.dtype = kNo}); }), R"(
      [dtype] rand: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
}

TEST(GivenErrors, DTypesOfMemoryThatAreNone) {
  const Tensor x = x23();
  constexpr DType kNo = DType(99);
  EXPECT_INLINE(refused([&] { make_tensor(IntArg{0}, kNo); }), R"(
      [dtype] make_tensor: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, \
      c64 or c128)");
  EXPECT_INLINE(refused([&] { make_tensor(IntArg{2}, kNo, Device::Reference); }), R"(
      [dtype] make_tensor: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, \
      c64 or c128)");
  EXPECT_INLINE(refused([&] {
                  tensor_of({2}, {1, 2}, kNo);
                }),
                R"(
      [dtype] tensor_of: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, \
      c64 or c128)");
  EXPECT_INLINE(refused([&] { scalar_tensor(1, kNo); }), R"(
      [dtype] scalar_tensor: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, \
      f64, c64 or c128)");
  EXPECT_INLINE(refused([&] { make_view(x, IntArg{2}, IntArg{1}, 0, kNo); }, {x}), R"(
      [dtype] view: dtype = no dtype for f64[2,3]; expected its own, or that of its real part)");
  double memory[2] = {};
  EXPECT_INLINE(refused([&] {
                  adopt_memory({memory, 16}, kNo, IntArg{2}, IntArg{1});
                }),
                R"(
      [dtype] adopt_memory: dtype = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, \
      f64, c64 or c128)");
  EXPECT_INLINE(refused([&] { promote(DType::F32, kNo); }), R"(
      [dtype] promote: b = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
  EXPECT_INLINE(refused([&] { promote(kNo, kNo); }), R"(
      [dtype] promote: a = DType(99); expected bool, u8 to u64, i8 to i64, f16, bf16, f32, f64, c64 or \
      c128)");
  EXPECT_EQ(name(kNo), "no dtype");
}

TEST(GivenErrors, DevicesThatAreNone) {
  const Tensor x = x23();
  constexpr Device kNo = Device(77);
  EXPECT_INLINE(refused("to_device", {x, kNo}), R"(
      [device] to_device: device = Device(77); expected cpu, reference, cuda, meta, user0 or user1)");
  EXPECT_INLINE(refused([&] { zeros({2}, DType::F32, kNo); }), R"(
      [device] zeros: device = Device(77); expected cpu, reference, cuda, meta, user0 or user1)");
  EXPECT_INLINE(refused([&] { make_tensor(IntArg{2}, DType::F32, kNo); }), R"(
      [device] make_tensor: device = Device(77); expected cpu, reference, cuda, meta, user0 or user1)");
  EXPECT_EQ(name(kNo), "no device");
}

TEST(GivenErrors, EmptyFunctionsOfLevels) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { vmap(Function()); }), R"(
      [usage] vmap: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vmap(Function(), VmapOptions{.chunk = 2}); }), R"(
      [usage] vmap: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vmap(UnaryFunction()); }), R"(
      [usage] vmap: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vjp(Function(), {x}); }), R"(
      [usage] vjp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vjp_has_aux(AuxFunction(), {x}); }), R"(
      [usage] vjp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jvp(Function(), {x}, {x}); }), R"(
      [usage] jvp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jvp_has_aux(AuxFunction(), {x}, {x}); }), R"(
      [usage] jvp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { grad(ScalarFunction()); }), R"(
      [usage] grad: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { grad(UnaryFunction()); }), R"(
      [usage] grad: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { value_and_grad(ScalarFunction()); }), R"(
      [usage] value_and_grad: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { grad_has_aux(AuxFunction()); }), R"(
      [usage] grad_has_aux: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { value_and_grad_has_aux(AuxFunction()); }), R"(
      [usage] value_and_grad_has_aux: f is an empty function; expected one that can be called)");
  static constexpr CarriedRules kRules{"mine", [](const Tensor& t) { return t; }};
  EXPECT_INLINE(refused([&] { run_carried(kRules, Function(), {x}); }), R"(
      [usage] mine: f is an empty function; expected one that can be called)");
  static constexpr CarriedRules kNone{"mine", nullptr};
  EXPECT_INLINE(refused([&] { run_carried(kNone, [](const Tensors& v) { return v; }, {x}); }), R"(
      [usage] mine: rules.of_constant is an empty function; expected one that can be called)");
}

TEST(GivenErrors, EmptyFunctionsOfJacobians) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { jacrev(Function()); }), R"(
      [usage] jacrev: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacfwd(Function()); }), R"(
      [usage] jacfwd: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { hessian(Function()); }), R"(
      [usage] hessian: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacrev_has_aux(AuxFunction()); }), R"(
      [usage] jacrev: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacfwd_has_aux(AuxFunction()); }), R"(
      [usage] jacfwd: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { hessian_has_aux(AuxFunction()); }), R"(
      [usage] hessian: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacrev(UnaryFunction()); }), R"(
      [usage] jacrev: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacfwd(UnaryFunction()); }), R"(
      [usage] jacfwd: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { hessian(UnaryFunction()); }), R"(
      [usage] hessian: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { linearize(Function(), {x}); }), R"(
      [usage] linearize: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { linear_transpose(Function(), {x}); }), R"(
      [usage] linear_transpose: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { hvp(ScalarFunction(), {x}, {x}); }), R"(
      [usage] hvp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vhp(ScalarFunction(), {x}, {x}); }), R"(
      [usage] vhp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { verify::gradcheck(Function(), {x}); }), R"(
      [usage] gradcheck: f is an empty function; expected one that can be called)");
}

TEST(GivenErrors, EmptyFunctionsOfTrees) {
  using Pair = std::pair<Tensor, Tensor>;
  const std::function<Tensor(const Pair&)> none;
  const Pair p{x23(), x23()};
  EXPECT_INLINE(refused([&] { vmap(none); }), R"(
      [usage] vmap: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { grad(none); }), R"(
      [usage] grad: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { value_and_grad(none); }), R"(
      [usage] value_and_grad: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vjp(none, p); }), R"(
      [usage] vjp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jvp(none, p, p); }), R"(
      [usage] jvp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacrev(none); }), R"(
      [usage] jacrev: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jacfwd(none); }), R"(
      [usage] jacfwd: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { hessian(none); }), R"(
      [usage] hessian: f is an empty function; expected one that can be called)");
}

TEST(GivenErrors, EmptyRulesAndHooks) {
  const Tensor x = x23(), leaf = requires_grad(x23());
  const AuxFunction same = [](const Tensors& v) { return std::pair(v, Tensors{}); };
  EXPECT_INLINE(refused([&] { checkpoint(Function()); }), R"(
      [usage] checkpoint: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { custom_vjp(AuxFunction(), {}); }), R"(
      [usage] custom_vjp: forward is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { vjp(custom_vjp(same, {}), {x}).pullback({x}); }, {x}), R"(
      [usage] custom_vjp: backward is an empty function; expected one that can be called
        under: grad#1)");
  EXPECT_INLINE(refused([&] { custom_jvp(Function(), {}); }), R"(
      [usage] custom_jvp: f is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { jvp(custom_jvp([](const Tensors& v) { return v; }, {}), {x}, {x}); }, {x}), R"(
      [usage] custom_jvp: rule is an empty function; expected one that can be called
        under: jvp#1)");
  EXPECT_INLINE(refused([&] { add_hook(leaf, {}); }, {leaf}), R"(
      [usage] add_hook: hook is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { add_accumulated_hook(leaf, {}); }, {leaf}), R"(
      [usage] add_accumulated_hook: hook is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { const SavedTensorHooks hooks({}); }), R"(
      [usage] SavedTensorHooks: pack is an empty function; expected one that can be called)");
  EXPECT_INLINE(refused([&] { trace({}); }), R"(
      [usage] trace: f is an empty function; expected one that can be called)");
}

}  // namespace
}  // namespace test_errors_given
}  // namespace lamella
