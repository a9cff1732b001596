// Error texts of rows whose rules give what their arguments are not: other sizes, another dtype, too few.
#include <cstring>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/draw/draw.h"

#include "refusal.h"

namespace lamella {
namespace test_errors_rules {  // files of this room are compiled several at a time
namespace {
using namespace lamella::expect;

void add_row(std::string_view schema, Rules jvp, Rules vjp) {
  OpTable::add({.schema = schema,
                .shape = ShapeClass::Other,
                .infer =
                    [](const Frame& f, Inferred& out) {
                      const Tensor& x = tensors_at(f, 0)[0];
                      for (int k = 0; k < f.op->schema.n_results; ++k)
                        out.outs.push_back({x.sizes(), x.dtype()});
                      out.compute = x.dtype();
                    },
                .kernel = {.cpu = [](const KernelCall&) {}, .reference = [](const KernelCall&) {}},
                .launch =
                    [](const Launch& l) {
                      for (const Tensor& t : l.outs)
                        std::memset(t.raw_data(), 0, size_t(t.numel() * itemsize(t.dtype())));
                    },
                .jvp = std::move(jvp),
                .vjp = std::move(vjp),
                .properties = kTestOnly | kNoInPlace | kNoOut,
                .samples = [](Draw&) -> Values { return {}; },
                .doc = "A test's."});
}
Rules no_rule() { return not_differentiable("a test's own operator"); }

/// Operators that are there for a scope.
struct WrongRows {
  const OpTable* const before = &OpTable::current();
  WrongRows() {
    add_row("gives_sum(Tensor x) -> Tensor",
            Rules(wrt("x",
                      [](Tensor t) {
                        return stack(Tensors{t, t}, 0);
                      })),
            Rules(wrt("x", [](Tensor dy) { return sum(dy); })));
    add_row("gives_f32(Tensor x) -> Tensor", no_rule(),
            Rules(wrt("x", [](Tensor dy) { return to(dy, DType::F32); })));
    add_row("gives_few(Tensor[] xs) -> Tensor", no_rule(),
            Rules(wrt("xs", [](TensorSpan dy) { return Tensors{dy[0]}; })));
    add_row("gives_wide(Tensor[] xs) -> Tensor", no_rule(), Rules(wrt("xs", [](TensorSpan dy) {
              return Tensors{dy[0], unsqueeze(dy[0], 0)};
            })));
    add_row("gives_one(Tensor x) -> (Tensor, Tensor)",
            Rules(wrt("x", [](TensorSpan t) { return Tensors{t[0]}; })), no_rule());
  }
  ~WrongRows() { OpTable::take_back(before); }
};

Function called(std::string_view name) {
  return [name](const Tensors& v) { return call(name, {v[0]}); };
}
Function of_list(std::string_view name) {
  return [name](const Tensors& v) { return call(name, {v}); };
}
std::string pulled(const Function& f, const Tensors& xs) {
  return refused([&] { vjp(f, xs).pullback({xs[0]}); }, xs);
}

TEST(RuleErrors, OfPullbacks) {
  const WrongRows rows;
  const Tensor x = x23();
  EXPECT_INLINE(pulled(called("gives_sum"), {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[2,3])");
  EXPECT_INLINE(pulled(called("gives_f32"), {x}), R"(
      [dtype] gives_f32: its vjp rule for x gave f32[2,3], expected f64[2,3])");
  EXPECT_INLINE(pulled(of_list("gives_few"), {x, x}), R"(
      [shape] gives_few: its vjp rule for xs[1] gave 1 cotangents, expected 2 at least)");
  EXPECT_INLINE(pulled(of_list("gives_wide"), {x, x}), R"(
      [shape] gives_wide: its vjp rule for xs[1] gave f64[1,2,3], expected f64[2,3])");
  const VjpResult kept = vjp(called("gives_sum"), {x});
  EXPECT_INLINE(refused([&] { kept.pullback({x}); }, {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[2,3])");
}

TEST(RuleErrors, OfGradients) {
  const WrongRows rows;
  const Tensor x = x23();
  const auto loss = [](const Tensor& t) { return sum(call("gives_sum", {t})[0]); };
  EXPECT_INLINE(refused([&] { grad(loss)(x); }, {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[2,3])");
  EXPECT_INLINE(refused([&] { vmap(grad(loss))(x); }, {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[3]
        under: vmap#1 (size 2))");
}

/// What the leaf and the graph keep stays: nothing was added up.
TEST(RuleErrors, OfBaseAutograd) {
  const WrongRows rows;
  const Tensor x = requires_grad(x23());
  const Tensor y = call("gives_sum", {x})[0];
  EXPECT_INLINE(refused([&] { backward(sum(y)); }, {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[2,3])");
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_INLINE(refused([&] { autograd::grad({sum(y)}, {x}); }, {x}), R"(
      [shape] gives_sum: its vjp rule for x gave f64[], expected f64[2,3])");
  const Tensor z = call("gives_few", {Tensors{x, x}})[0];
  EXPECT_INLINE(refused([&] { backward(sum(z)); }, {x}), R"(
      [shape] gives_few: its vjp rule for xs[1] gave 1 cotangents, expected 2 at least)");
}

TEST(RuleErrors, OfPushforwards) {
  const WrongRows rows;
  const Tensor x = x23();
  EXPECT_INLINE(refused([&] { jvp(called("gives_sum"), {x}, {x}); }, {x}), R"(
      [shape] gives_sum: its jvp rule for x gave f64[2,2,3], expected f64[2,3], or what broadcasts to it
        under: jvp#1)");
  EXPECT_INLINE(refused([&] { jvp(called("gives_one"), {x}, {x}); }, {x}), R"(
      [shape] gives_one: its jvp rule for x gave 1 tangents, expected 2, one for each result
        under: jvp#1)");
}

}  // namespace
}  // namespace test_errors_rules
}  // namespace lamella
