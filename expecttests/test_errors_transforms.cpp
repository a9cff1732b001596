// Error texts of the transforms: lanes, levels, tangents, cotangents, escaped wrappers, tapes, expressions.
#include "lamella/verify/text/expression.h"

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

Tensors same(const Tensors& v) { return v; }
Tensors added(const Tensors& v) { return {v[0] + v[1]}; }
std::string mapped(const Function& f, const VmapOptions& options, const Tensors& xs) {
  return refused([&] { vmap(f, options)(xs); }, xs);
}

TEST(VmapErrors, Lanes) {
  const Tensor x = x23();
  EXPECT_INLINE(mapped(added, {{0, 1}}, {x, x}), R"(
      [mapped_size] vmap: argument 1 (f64[2,3]) has 3 lanes, argument 0 (f64[2,3]) has 2; expected \
      equal sizes)");
  EXPECT_INLINE(mapped(same, {{0}, {0}, Randomness::Error, 3}, {x}), R"(
      [mapped_size] vmap: argument 0 (f64[2,3]) has 2 lanes, size = 3; expected equal sizes)");
  EXPECT_INLINE(mapped(same, {{kNone}}, {x}), R"(
      [mapped_size] vmap: no argument is mapped and no size is given; expected one of them)");
  EXPECT_INLINE(mapped(same, {{0, 0}}, {x}), R"(
      [mapped_size] vmap: got 2 in_dims for 1 tensors, expected 1 or 1)");
  EXPECT_INLINE(mapped(same, {{0}, {0, 0}}, {x}), R"(
      [mapped_size] vmap: got 2 out_dims for 1 tensors, expected 1 or 1
        under: vmap#1 (size 2))");
  EXPECT_INLINE(mapped(same, {{2}}, {x}), R"(
      [dim_out_of_range] vmap: in_dims = 2 is out of range for f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(mapped(same, {{-3}}, {x}), R"(
      [dim_out_of_range] vmap: in_dims = -3 is out of range for f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(mapped(same, {{0}}, {of({})}), R"(
      [dim_out_of_range] vmap: in_dims = 0 is out of range for f64[]; expected 0 <= dim < 0)");
  EXPECT_INLINE(mapped(same, {{0}, {2}}, {x}), R"(
      [dim_out_of_range] vmap: out_dims = 2 is out of range for f64[3]; expected -2 <= dim < 2
        under: vmap#1 (size 2))");
  EXPECT_INLINE(mapped(same, {{0}, {kNone}}, {x}), R"(
      [dim_out_of_range] vmap: out_dims of result 0 is none; expected a dim, for it depends on the lane
        under: vmap#1 (size 2))");
  VmapOptions few{.chunk = -2};
  EXPECT_INLINE(mapped(same, few, {x}), R"(
      [value] vmap: chunk = -2; expected chunk > 0, or 0 for all lanes at once)");
  few = {.out_dims = {2}, .chunk = 1};
  EXPECT_INLINE(mapped(same, few, {x}), R"(
      [dim_out_of_range] vmap: out_dims = 2 is out of range for f64[3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(mapped(same, {{0}}, {Tensor()}), R"(
      [undefined] vmap: argument 0 is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(mapped([](const Tensors&) { return Tensors{Tensor()}; }, {{0}}, {x}), R"(
      [undefined] vmap: result 0 is an undefined tensor; expected a defined one
        under: vmap#1 (size 2))");
}

TEST(VmapErrors, NameTheLogicalShapesAndTheStack) {
  const Tensor x = zeros({8, 2, 3});
  const UnaryFunction wrong = [](const Tensor& t) { return cumsum(t, 3); };
  EXPECT_INLINE(refused([&] { vmap(wrong)(x); }, {x}), R"(
      [dim_out_of_range] cumsum: dim = 3 is out of range for x: f32[2,3]; expected -2 <= dim < 2
        under: vmap#1 (size 8))");
  EXPECT_INLINE(refused([&] { vmap(vmap(wrong), 0, 0)(x); }, {x}), R"(
      [dim_out_of_range] cumsum: dim = 3 is out of range for x: f32[3]; expected -1 <= dim < 1
        under: vmap#2 (size 2) of vmap#1 (size 8))");
  const UnaryFunction inner = [&](const Tensor& t) { return sum(wrong(t)); };
  EXPECT_INLINE(refused([&] { vmap(vmap(grad(inner)))(x); }, {x}), R"(
      [dim_out_of_range] cumsum: dim = 3 is out of range for x: f32[3]; expected -1 <= dim < 1
        under: grad#3 of vmap#2 (size 2) of vmap#1 (size 8))");
}

TEST(VmapErrors, RandomNumbersNeedAChoice) {
  EXPECT_INLINE(mapped([](const Tensors&) { return Tensors{rand({2})}; }, {}, {x23()}), R"(
      [randomness] rand: key is None under vmap; expected a mapped key, or randomness same or different
        under: vmap#1 (size 2))");
  EXPECT_INLINE(mapped([](const Tensors&) { return Tensors{randn({2})}; }, {}, {x23()}), R"(
      [randomness] randn: key is None under vmap; expected a mapped key, or randomness same or different
        under: vmap#1 (size 2))");
}

TEST(VmapErrors, ShapesThatDependOnValues) {
  EXPECT_INLINE(mapped([](const Tensors& v) { return Tensors{nonzero(v[0])}; }, {}, {of({0, 2})}), R"(
      [no_kernel] nonzero: its shape depends on values, and an empty batch has none; expected one lane \
      at least
        under: vmap#1 (size 0))");
  EXPECT_INLINE(
      mapped([](const Tensors& v) { return Tensors{nonzero(v[0])}; }, {}, {tensor_of({2, 2}, {1, 0, 1, 1})}),
      R"(
      [shape] nonzero: its result is i64[2,1] in lane 1, expected i64[1,1] as in lane 0
        under: vmap#1 (size 2))");
}

TEST(LevelErrors, WritesThatWouldEscape) {
  const Tensor x = x23(), outside = zeros({3}, DType::F64);
  const auto write = [&](const Tensors& v) { return Tensors{add_(outside, v[0])}; };
  EXPECT_INLINE(refused([&] { vmap(write, VmapOptions{})({x}); }, {x, outside}), R"(
      [level] add: a is f64[3], made outside vmap#1; expected a tensor that can hold a value of it: \
      return the value instead
        under: vmap#1 (size 2))");
  EXPECT_INLINE(refused([&] { vjp(write, {of({3})}); }, {outside}), R"(
      [level] add: a is f64[3], made outside grad#1; expected a tensor that can hold a value of it: \
      return the value instead
        under: grad#1)");
  EXPECT_INLINE(refused([&] { jvp(write, {of({3})}, {of({3})}); }, {outside}), R"(
      [level] add: a is f64[3], made outside jvp#1; expected a tensor that can hold a value of it: \
      return the value instead
        under: jvp#1)");
  EXPECT_INLINE(refused([&] { grad([](const Tensor& t) { return sum(mul_(t, t)); })(x); }, {x}), R"(
      [level] mul: a is f64[2,3], an argument of grad#1 whose memory belongs to the caller; expected a \
      clone of it
        under: grad#1)");
  const auto views = [](const Tensors& v) {  // the parts of complex numbers count apart
    const Tensor fresh = zeros({3}, DType::C128);
    return Tensors{add_(real(fresh), v[0])};
  };
  EXPECT_INLINE(refused([&] { vmap(views, VmapOptions{})({x}); }, {x}), R"(
      [level] add: a is f64[3], made inside vmap#1 without its values, and has views; expected a value \
      of it, such as x * 0
        under: vmap#1 (size 2))");
}

TEST(LevelErrors, WritesThatOverlap) {
  const auto halfway = [](const Tensors& v) {
    const Tensor y = v[0] * 1;
    return Tensors{add_(y, transpose(y, 0, 1))};
  };
  const Tensor square = of({2, 2});
  EXPECT_INLINE(refused([&] { vjp(halfway, {square}); }, {square}), R"(
      [overlap] add: a and b share part of their memory; expected all of it or none: clone one of them
        under: grad#1)");
  EXPECT_INLINE(refused([&] { jvp(halfway, {square}, {square}); }, {square}), R"(
      [overlap] add: a and b share part of their memory; expected all of it or none: clone one of them
        under: jvp#1)");
  const Tensor batch = of({3, 2, 2}), x = x23(), row = select(x, 0, 0);
  EXPECT_INLINE(refused([&] { vmap(halfway, VmapOptions{})({batch}); }, {batch}), R"(
      [overlap] add: a and b share part of their memory; expected all of it or none: clone one of them
        under: vmap#1 (size 3))");
  const auto race = [&](const Tensors& v) { return Tensors{copy_(v[0], row)}; };
  EXPECT_INLINE(refused([&] { vmap(race, VmapOptions{})({x}); }, {x}), R"(
      [overlap] copy: self and src share memory across lanes, which run at once; expected none: clone one \
      of them
        under: vmap#1 (size 2))");
}

TEST(VmapErrors, TheMappedDimCounts) {
  const auto more = [](const Tensors& v) { return Tensors{unsqueeze(v[0], 0)}; };
  const Tensor deep = zeros(Dims(64, 1), DType::F64);
  EXPECT_INLINE(refused([&] { vmap(more, VmapOptions{})({deep}); }, {deep}), R"(
      [shape] unsqueeze: its result has 64 dims in a lane; expected at most 63, for the mapped dim counts \
      too
        under: vmap#1 (size 1))");
}

TEST(LevelErrors, ValuesAreNotVisible) {
  const auto look = [](const Tensors& v) {
    sum(v[0]).item<double>();
    return v;
  };
  EXPECT_INLINE(mapped(look, {}, {x23()}), R"(
      [level] item: the value of f64[] is not visible here: a transform wraps it; expected a plain \
      tensor
        under: vmap#1 (size 2))");
  const auto list = [](const Tensors& v) {
    v[0].to_vector();
    return v;
  };
  EXPECT_INLINE(mapped(list, {}, {x23()}), R"(
      [level] to_vector: the values of f64[3] are not visible here; expected a plain tensor that has \
      some
        under: vmap#1 (size 2))");
  const auto view = [](const Tensors& v) { return Tensors{make_view(v[0], IntArg{1}, IntArg{1}, 0)}; };
  EXPECT_INLINE(mapped(view, {}, {x23()}), R"(
      [storage] view: f64[3] has no storage; expected a plain tensor
        under: vmap#1 (size 2))");
}

TEST(LevelErrors, WrappersThatEscaped) {
  Tensor kept;
  const Function keep = [&](const Tensors& v) {
    kept = v[0];
    return v;
  };
  vmap(keep, VmapOptions{})({x23()});
  EXPECT_INLINE(refused([&] { exp(kept); }), R"(
      [escaped_wrapper] exp: x is wrapped by level#1, a transform that has ended (or lives on another \
      thread); expected a value returned from the transformed function, not one stored outside)");
  vjp(keep, {x23()});
  EXPECT_INLINE(refused([&] { exp(kept); }), R"(
      [escaped_wrapper] exp: x is wrapped by level#1, a transform that has ended (or lives on another \
      thread); expected a value returned from the transformed function, not one stored outside)");
  jvp(keep, {x23()}, {x23()});
  EXPECT_INLINE(refused([&] { exp(kept); }), R"(
      [escaped_wrapper] exp: x is wrapped by level#1, a transform that has ended (or lives on another \
      thread); expected a value returned from the transformed function, not one stored outside)");
}

TEST(LevelErrors, TooManyLevels) {
  const std::function<Tensor(const Tensor&, int)> nest = [&](const Tensor& t, int left) -> Tensor {
    if (left == 0) return t;
    return vmap(UnaryFunction([&](const Tensor& u) { return nest(u, left - 1); }))(unsqueeze(t, 0));
  };
  const std::string text = refused([&] { nest(x23(), kMaxLevels + 1); }, {x23()});
  EXPECT_INLINE(text.substr(0, text.find(" of ")), R"(
      [level_limit] vmap: got 49 nested transforms, expected at most 48
        under: vmap#48 (size 1))");
}

TEST(JvpErrors, PrimalsAndTangents) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { jvp(same, {x}, {}); }, {x}), R"(
      [shape] jvp: got 1 primals and 0 tangents; expected as many of each)");
  EXPECT_INLINE(refused([&] { jvp(same, {x}, {of({3})}); }, {x}), R"(
      [shape] jvp: tangent 0 is f64[3], expected f64[2,3])");
  EXPECT_INLINE(refused(
                    [&] {
                      jvp(same, {x}, {of({2, 3}, DType::F32)});
                    },
                    {x}),
                R"(
      [dtype] jvp: tangent 0 is f32[2,3], expected f64[2,3])");
  EXPECT_INLINE(refused([&] { jvp(same, {ints({1}, {1})}, {ints({1}, {1})}); }), R"(
      [dtype] jvp: primal 0 is i64[1], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { jvp(same, {Tensor()}, {x}); }, {x}), R"(
      [undefined] jvp: primal 0 is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { jvp([](const Tensors&) { return Tensors{Tensor()}; }, {x}, {x}); }, {x}), R"(
      [undefined] jvp: the function returned an undefined tensor; expected defined ones
        under: jvp#1)");
}

TEST(GradErrors, Results) {
  const Tensor x = x23();
  const UnaryFunction whole = [](const Tensor& t) { return t; };
  EXPECT_INLINE(refused([&] { grad(whole)(x); }, {x}), R"(
      [shape] grad: the function returned [f64[2,3]], expected one element)");
  EXPECT_INLINE(refused([&] { grad(whole)(of({}, DType::C128)); }), R"(
      [dtype] grad: the function returned c128[], expected real floating point)");
  EXPECT_INLINE(refused([&] { grad([](const Tensor& t) { return sum(t); })(ints({1}, {1})); }), R"(
      [dtype] grad: input 0 is i64[1], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { grad(whole)(Tensor()); }), R"(
      [undefined] grad: input 0 is an undefined tensor; expected a defined one)");
  const Function second = grad(ScalarFunction([](const Tensors& v) { return sum(v[0]); }), {1});
  EXPECT_INLINE(refused([&] { second({x}); }, {x}), R"(
      [usage] grad: argnums names argument 1; expected -1 <= argnum < 1)");
  EXPECT_INLINE(refused([&] { vjp([](const Tensors&) { return Tensors{Tensor()}; }, {x}); }, {x}), R"(
      [undefined] vjp: the function returned an undefined tensor; expected defined ones
        under: grad#1)");
}

TEST(GradErrors, Argnums) {
  const Tensor x = x23();
  const ScalarFunction total = [](const Tensors& v) { return sum(v[0] * v[1]); };
  EXPECT_INLINE(refused(
                    [&] {
                      grad(total, {0, -2})({x, x});
                    },
                    {x}),
                R"(
      [usage] grad: argnums names argument 0 twice, as 0 and -2; expected different arguments)");
  EXPECT_INLINE(refused(
                    [&] {
                      value_and_grad(total, {-3})({x, x});
                    },
                    {x}),
                R"(
      [usage] grad: argnums names argument -3; expected -2 <= argnum < 2)");
  EXPECT_EQ(str(grad(total, {-1})({x, x * 2})[0]), str(x));
}

TEST(JacobianErrors, ArgumentsAndResults) {
  const Tensor x = x23(), z = of({2}, DType::C128);
  const UnaryFunction f = [](const Tensor& t) { return t * t; };
  const JacobianOptions holomorphic{.holomorphic = true};
  EXPECT_INLINE(refused([&] { jacrev(f)(z); }, {z}), R"(
      [dtype] jacrev: input 0 is c128[2]; expected real floating point, or holomorphic = true for a \
      function with a complex derivative)");
  EXPECT_INLINE(refused([&] { jacfwd(f)(z); }, {z}), R"(
      [dtype] jacfwd: input 0 is c128[2]; expected real floating point, or holomorphic = true for a \
      function with a complex derivative)");
  EXPECT_INLINE(refused([&] { hessian(f)(z); }, {z}), R"(
      [dtype] hessian: input 0 is c128[2]; expected real floating point, or holomorphic = true for a \
      function with a complex derivative)");
  EXPECT_INLINE(refused([&] { jacfwd(f, holomorphic)(x); }, {x}), R"(
      [dtype] jacfwd: input 0 is f64[2,3] and holomorphic = true; expected complex)");
  const UnaryFunction size = [](const Tensor& t) { return real(t * conj(t)); };
  EXPECT_INLINE(refused([&] { jacrev(size, holomorphic)(z); }, {z}), R"(
      [dtype] jacrev: result 0 is f64[2] and holomorphic = true; expected complex)");
  EXPECT_INLINE(refused([&] { jacfwd(size, holomorphic)(z); }, {z}), R"(
      [dtype] jacfwd: result 0 is f64[2] and holomorphic = true; expected complex
        under: vmap#1 (size 2))");
  const UnaryFunction place = [](const Tensor& t) { return argmax(t); };
  EXPECT_INLINE(refused([&] { jacrev(place)(x); }, {x}), R"(
      [dtype] jacrev: result 0 is i64[], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { jacrev(f)(ints({1}, {1})); }), R"(
      [dtype] jacrev: input 0 is i64[1], expected floating point or complex)");
}

TEST(JacobianErrors, Options) {
  const Tensor x = x23();
  const Function f = [](const Tensors& v) { return Tensors{v[0] * v[1]}; };
  EXPECT_INLINE(refused(
                    [&] {
                      jacrev(f, {.argnums = {1, -1}})({x, x});
                    },
                    {x}),
                R"(
      [usage] jacrev: argnums names argument 1 twice, as 1 and -1; expected different arguments)");
  EXPECT_INLINE(refused(
                    [&] {
                      hessian(f, {.argnums = {2}})({x, x});
                    },
                    {x}),
                R"(
      [usage] hessian: argnums names argument 2; expected -2 <= argnum < 2)");
  EXPECT_INLINE(refused(
                    [&] {
                      jacfwd(f, {.chunk = -1})({x, x});
                    },
                    {x}),
                R"(
      [value] jacfwd: chunk = -1; expected chunk > 0, or 0 for all rows at once)");
  const auto drawn = [](const Tensors& v) { return std::pair(v, Tensors{rand({1})}); };
  EXPECT_INLINE(refused([&] { jacfwd_has_aux(drawn, {.randomness = Randomness::Different})({x}); }, {x}), R"(
      [randomness] jacfwd: aux 0 is f32[1] and depends on the row; expected randomness same
        under: vmap#1 (size 6))");
}

TEST(GradErrors, Cotangents) {
  const VjpResult r = vjp(same, {x23()});
  EXPECT_INLINE(refused([&] { r.pullback({}); }), R"([shape] pullback: got 0 cotangents, expected 1)");
  EXPECT_INLINE(refused([&] { r.pullback({of({3})}); }), R"(
      [shape] pullback: cotangent 0 is f64[3], expected f64[2,3])");
  EXPECT_INLINE(refused([&] {
                  r.pullback({of({2, 3}, DType::F32)});
                }),
                R"(
      [dtype] pullback: cotangent 0 is f32[2,3], expected f64[2,3])");
}

TEST(BackwardErrors, Tapes) {
  const Tensor x = x23(), leaf = requires_grad(clone(x)), y = leaf * leaf;
  EXPECT_INLINE(refused([&] { requires_grad(ints({1}, {1})); }), R"(
      [dtype] requires_grad: x is i64[1], expected floating point or complex)");
  EXPECT_INLINE(refused([&] { backward(x); }, {x}), R"(
      [not_differentiable] backward: root is f64[2,3], which does not require grad; expected a result of \
      something that does)");
  EXPECT_INLINE(refused([&] { backward(y); }, {leaf}), R"(
      [shape] backward: root is f64[2,3], expected one element, or a cotangent)");
  EXPECT_INLINE(refused([&] { backward(y, of({3})); }, {leaf}), R"(
      [shape] backward: cotangent is f64[3], expected f64[2,3])");
  EXPECT_INLINE(refused([&] { grad_of(x); }, {x}), R"(
      [usage] grad_of: x is f64[2,3], which has no gradient of its own; expected a leaf that requires \
      grad, or a tensor given to retain_grad)");
  EXPECT_INLINE(refused([&] { clear_grad(y); }, {leaf}), R"(
      [usage] clear_grad: x is f64[2,3], which has no gradient of its own; expected a leaf that requires \
      grad, or a tensor given to retain_grad)");
  EXPECT_INLINE(refused([&] { mul_(leaf, x); }, {leaf}), R"(
      [value] mul: a is f64[2,3], a leaf that requires grad; expected a result: write to a clone of it, \
      or under NoGrad)");
  EXPECT_INLINE(refused([&] { vmap(UnaryFunction([](const Tensor& t) { return requires_grad(t); }))(x); }),
                R"(
      [level] requires_grad: x is f64[3], wrapped by a transform; expected a plain tensor
        under: vmap#1 (size 2))");
  EXPECT_INLINE(refused([&] { requires_grad(Tensor()); }), R"(
      [undefined] requires_grad: x is an undefined tensor; expected a defined one)");
  EXPECT_INLINE(refused([&] { detach(Tensor()); }), R"(
      [undefined] detach: argument "x" is an undefined tensor; expected a defined one)");
  const Tensor inner = leaf * 2, z = sum(inner * inner);
  mul_(inner, inner);
  EXPECT_INLINE(refused([&] { backward(z); }, {leaf}), R"(
      [value] backward: a value that mul saved was written in place later: version 1, expected 0; clone \
      it first)");
}

TEST(LinearMapErrors, Directions) {
  const Tensor x = x23();
  const Linearized linear = linearize(same, {x, x});
  EXPECT_INLINE(refused([&] { linear.map({x}); }, {x}), R"(
      [shape] linearize: got 1 tangents, expected 2)");
  EXPECT_INLINE(refused(
                    [&] {
                      linear.map({x, of({3})});
                    },
                    {x}),
                R"(
      [shape] linearize: tangent 1 is f64[3], expected f64[2,3])");
  const Function transposed = linear_transpose(same, {x});
  EXPECT_INLINE(refused([&] { transposed({ints({1}, {1})}); }, {x}), R"(
      [dtype] linear_transpose: cotangent 0 is i64[1], expected f64[2,3])");
  EXPECT_INLINE(refused([&] { linear_transpose(same, {ints({1}, {1})}); }), R"(
      [dtype] linear_transpose: input 0 is i64[1], expected floating point or complex)");
  const ScalarFunction whole = [](const Tensors& v) { return v[0]; };
  EXPECT_INLINE(refused([&] { hvp(whole, {x}, {x}); }, {x}), R"(
      [shape] grad: the function returned [f64[2,3]], expected one element
        under: jvp#1)");
  EXPECT_INLINE(refused([&] { vhp([](const Tensors& v) { return sum(v[0]); }, {x}, {}); }, {x}), R"(
      [shape] vhp: got 0 vectors, expected 1)");
}

TEST(LinearMapErrors, WritesWithoutRecording) {
  const Tensor x = x23();
  const UnaryFunction f = [](const Tensor& t) {
    const NoGrad no;
    return sum(mul_(t, t));
  };
  EXPECT_INLINE(refused([&] { grad(f)(x); }, {x}), R"(
      [level] mul: self is f64[2,3], an argument of grad#1 whose memory belongs to the caller; expected a \
      clone of it
        under: no_grad#2 of grad#1)");
}

TEST(ExpressionErrors, NameThePosition) {
  const verify::Bindings x{{"x", ones({3})}};
  const auto wrong = [&](const std::string& text) { return refused([&] { verify::evaluate(text, x); }); };
  EXPECT_INLINE(wrong("sum(x"), R"x([schema] expression: got "" at position 5, expected "," or ")")x");
  EXPECT_INLINE(wrong("sum(y)"), R"(
      [usage] expression: there is no variable "y"; declare it with --shapes y=2x3)");
  EXPECT_INLINE(wrong("sum(x) )"), R"x([schema] expression: got ")" at position 7, expected the end)x");
  EXPECT_INLINE(wrong("frobnicate(x)"), R"(
      [unknown_operator] expression: there is no operator "frobnicate")");
  EXPECT_INLINE(wrong("sum(x, dim=2)"), R"(
      [dim_out_of_range] sum: dim = 2 is out of range for x: f32[3]; expected -1 <= dim < 1)");
  EXPECT_INLINE(wrong("vmap()"), R"([usage] expression: vmap needs an expression)");
  EXPECT_INLINE(wrong("grad(1)"), R"([usage] expression: grad needs a variable to act on)");
  EXPECT_INLINE(wrong("grad(sum(x), wrt=y)"), R"([usage] expression: wrt=y is no variable of grad)");
  EXPECT_INLINE(wrong(std::string(10000, '(')), R"(
      [schema] expression: got "((((((((((((" at position 200, expected at most 200 nested expressions)");
  EXPECT_INLINE(refused([] { verify::parse_shapes({"x"}, DType::F32); }), R"(
      [usage] shapes: got "x", expected NAME=2x3)");
  EXPECT_INLINE(refused([] { verify::parse_shapes({"x=2x-1"}, DType::F32); }), R"(
      [usage] shapes: got "x=2x-1", expected sizes like 2x3)");
  EXPECT_INLINE(refused([] { verify::parse_shapes({"x=2y3"}, DType::F32); }), R"(
      [usage] shapes: got "x=2y3", expected sizes like 2x3)");
  EXPECT_INLINE(refused([] { verify::parse_shapes({"x=2x"}, DType::F32); }), R"(
      [usage] shapes: got "x=2x", expected sizes like 2x3)");
  EXPECT_EQ(verify::evaluate("grad(sum(x * x))", x).to_vector(), (std::vector<double>{2, 2, 2}));
}
}  // namespace
