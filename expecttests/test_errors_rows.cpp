// Error texts of operators whose shape functions are wrong, of numbers that dtypes do not hold, and what
// errors know of themselves.
#include "lamella/dispatch/table.h"
#include "lamella/draw/draw.h"
#include "lamella/ops/infer.h"

#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

OpDef definition(std::string_view schema, ShapeClass shape, InferFn infer) {
  const auto nothing = [](const KernelCall&) {};
  return {.schema = schema,
          .shape = shape,
          .infer = infer,
          .kernel = {.cpu = nothing, .reference = nothing},
          .jvp = not_differentiable("a test's own operator"),
          .vjp = not_differentiable("a test's own operator"),
          .properties = kNoInPlace | kNoOut | kTestOnly,
          .samples = [](Draw&) -> Values { return {}; },
          .doc = "A test's."};
}

/// What a call of an operator refuses that is there for this call only.
std::string refused_by(const OpDef& def, const Values& args) {
  const OpTable& before = OpTable::current();
  OpTable::add(def);
  const std::string_view schema = def.schema.value;
  const std::string op(schema.substr(0, schema.find('(')));
  std::string text = refused([&] { call(op, args); });
  OpTable::take_back(&before);
  return text;
}

TEST(RowErrors, ShapeFunctions) {
  EXPECT_INLINE(
      refused_by(definition("wrong(Tensor a, Tensor b) -> Tensor", ShapeClass::Broadcast, ops::infer_same),
                 {of({6}), of({2})}),
      R"(
      [schema] wrong: its shape function gives [6], to which f64[2] does not broadcast; expected sizes that \
      all operands do)");
  const InferFn one = [](const Frame& f, Inferred& out) { ops::infer_same(f, out); };
  EXPECT_INLINE(
      refused_by(definition("wrong(Tensor x) -> (Tensor, Tensor)", ShapeClass::Other, one), {of({6})}), R"(
      [schema] wrong: its shape function gives 1 results, expected 2 as wrong(Tensor x) -> (Tensor, Tensor) \
      says)");
  const InferFn kept = [](const Frame& f, Inferred& out) {
    ops::infer_same(f, out);
    out.ints = {0};
  };
  EXPECT_INLINE(refused_by(definition("wrong(Tensor x) -> Tensor", ShapeClass::Reduce, kept), {of({6, 2})}),
                R"(
      [schema] wrong: its shape function gives f64[6,2] for f64[6,2] without the dims [0]; expected what is \
      left)");
  EXPECT_INLINE(
      refused_by(definition("wrong(Tensor[] xs) -> Tensor", ShapeClass::Other, ops::infer_broadcast),
                 {Tensors{x23()}}),
      R"(
      [schema] wrong: its shape function broadcasts tensors, but it is wrong(Tensor[] xs) -> Tensor; \
      expected no list)");
  EXPECT_INLINE(
      refused_by(definition("wrong(int n) -> Tensor", ShapeClass::Other, ops::infer_same), {int64_t{2}}), R"(
      [schema] wrong: its results are like its first tensor, but it is wrong(int n) -> Tensor; expected a \
      tensor, and no list)");
}

TEST(RowErrors, NumbersThatDtypesDoNotHold) {
  const Tensor bytes = of({2}, DType::U8), halves = of({2}, DType::F16);
  EXPECT_INLINE(refused("fill", {bytes, Scalar(300)}), R"(
      [overflow] fill: value = 300 does not fit x: u8[2]; expected a number that its dtype holds)");
  EXPECT_INLINE(refused("fill", {halves, Scalar(70000)}), R"(
      [overflow] fill: value = 70000 does not fit x: f16[2]; expected a number that its dtype holds)");
  EXPECT_INLINE(refused_plainly("full", {Dims{2}, Scalar(300), DType::U8}), R"(
      [overflow] full: fill_value = 300 does not fit u8; expected a number that it holds)");
  EXPECT_INLINE(refused("full_like", {of({2}, DType::I64), Scalar(NAN)}), R"(
      [overflow] full_like: value = nan does not fit i64; expected a number that it holds)");
  EXPECT_INLINE(refused([] { tensor_of({1}, {300}, DType::U8); }), R"(
      [overflow] tensor_of: value = 300 does not fit u8; expected a number that it holds)");
  EXPECT_INLINE(refused([] { scalar_tensor(-129, DType::I8); }), R"(
      [overflow] scalar_tensor: value = -129 does not fit i8; expected a number that it holds)");
}

/// The parts of what f raises.
std::string parts(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return format("code {} | op {} | argument {} | text {} | levels {}", name(e.code()), e.op(), e.argument(),
                  e.text(), e.levels().empty() ? "" : e.levels().substr(1));
  }
  return "";
}

TEST(RowErrors, ErrorsKnowTheirParts) {
  EXPECT_INLINE(parts([] { cumsum(x23(), 3); }), R"(
      code dim_out_of_range | op cumsum | argument dim | text dim = 3 is out of range for x: f64[2,3]; \
      expected -2 <= dim < 2 | levels )");
  EXPECT_INLINE(parts([] { vmap([](const Tensors& a) { return Tensors{cumsum(a[0], 3)}; })({x23()}); }), R"(
      code dim_out_of_range | op cumsum | argument dim | text dim = 3 is out of range for x: f64[3]; \
      expected -1 <= dim < 1 | levels   under: vmap#1 (size 2))");
  EXPECT_INLINE(parts([] { x23() + of({5}); }), R"(
      code broadcast | op add | argument a | text sizes do not broadcast at dim -1: got a: f64[2,3], b: \
      f64[5]; expected equal sizes or 1 | levels )");
  EXPECT_INLINE(parts([] { zeros_like(Tensor()); }), R"(
      code undefined | op zeros_like | argument x | text argument "x" is an undefined tensor; expected a \
      defined one | levels )");
  EXPECT_INLINE(parts([] { div(ints({1}, {1}), ints({1}, {0}), "floor"); }), R"(
      code value | op div | argument b | text b holds 0 and the division is in i64; expected b != 0 | \
      levels )");
  const Error e(ErrorCode::Value, {"inner", "x", "x is odd", "\n  under: vmap#1"});
  EXPECT_INLINE(e.by("outer", "x").what(), "outer: x is odd\n  under: vmap#1");
  EXPECT_INLINE(e.within("outer").what(), "outer: inner: x is odd\n  under: vmap#1");
  EXPECT_INLINE(e.noted(" (so it is)").what(), "inner: x is odd\n  under: vmap#1 (so it is)");
}

TEST(RowErrors, Accessors) {
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { x.size(2); }), R"(
      [dim_out_of_range] size: dim = 2 is out of range for f64[2,3]; expected -2 <= dim < 2)");
  EXPECT_INLINE(refused([] { Tensor().stride(0); }), R"(
      [undefined] stride: the tensor is undefined; expected a defined one)");
}

/// How often the kernels are asked before an error under `n` nested vmaps is raised, each over two lanes.
int64_t tries(int n, const std::function<Tensor(const Tensor&)>& f) {
  struct Count final : Observer {
    int64_t n = 0;
    void on_call(const Frame&, KeySet, int chosen) override { n += chosen == int(Device::CPU); }
    void on_return(const Frame&) override {}
  } count;
  std::function<Tensor(int, const Tensor&)> nested = [&](int k, const Tensor& x) {
    if (k == 0) return f(x);
    return vmap([&](const Tensors& a) { return Tensors{nested(k - 1, a[0])}; })({x})[0];
  };
  Dims sizes(n, 1);
  for (int d = 0; d < std::min(n, 10); ++d) sizes[d] = 2;
  sizes.push_back(3);
  const Tensor x = ones(sizes, DType::I64);
  const ScopedObserver scope(&count);
  EXPECT_INLINE(parts([&] { nested(n, x); }).substr(0, 22), "code value | op div | ");
  return count.n;
}

TEST(RowErrors, AValueErrorUnderManyLevelsCostsATryOrTwoEach) {
  const auto by_zero = [](const Tensor& x) { return div(x, zeros_like(x), "floor"); };
  const int64_t ten = tries(10, by_zero), twenty = tries(20, by_zero), forty = tries(40, by_zero);
  EXPECT_LE(twenty, 3 * ten);
  EXPECT_LE(forty, 3 * twenty);
  EXPECT_LE(forty, 40 * 40);  // rules make some calls a level
}
}  // namespace
