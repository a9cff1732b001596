// Texts users see: dispatch traces, error sentences with their transform stack, schemas.
#include <gtest/gtest.h>

#include "lamella/dispatch/trace.h"
#include "lamella/lamella.h"
#include "lamella/verify/expression.h"

namespace {
using namespace lamella;

TEST(Trace, NestedVmapOfSquare) {
  const Tensor x = zeros({4, 2, 3});
  const auto square = vmap(vmap(UnaryFunction([](const Tensor& t) { return t * t; })));
  EXPECT_EQ("\n" + trace([&] { square(x); }),
            R"(
mul  a: f32[3] {vmap#2 vmap#1 cpu}  b: f32[3] {vmap#2 vmap#1 cpu}   exclude {}  include {}   -> vmap#2
  mul  a: f32[2,3] {vmap#1 cpu}  b: f32[2,3] {vmap#1 cpu}   exclude {vmap#2}  include {}   -> vmap#1
    mul  a: f32[4,2,3] {cpu}  b: f32[4,2,3] {cpu}   exclude {vmap#2 vmap#1}  include {}   -> cpu
)");
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

TEST(Errors, NameTheLogicalShapesAndTheStack) {
  const Tensor x = zeros({8, 2, 3});
  EXPECT_EQ(
      error_of([&] { vmap(UnaryFunction([](const Tensor& t) { return cumsum(t, 3); }))(x); }),
      "cumsum: dim = 3 is out of range for x: f32[2,3]; expected -2 <= dim < 2\n  under: vmap#1 (size 8)");
}

TEST(Expression, RefusesWhatItCannotRead) {
  const verify::Bindings x{{"x", ones({3})}};
  EXPECT_NE(error_of([&] { verify::evaluate("sum(x", x); }).find("position 5"), std::string::npos);
  EXPECT_NE(error_of([&] { verify::evaluate("sum(y)", x); }).find("no variable \"y\""), std::string::npos);
  EXPECT_NE(error_of([&] { verify::evaluate(std::string(10000, '('), x); }).find("nested"),
            std::string::npos);
  EXPECT_EQ(verify::evaluate("grad(sum(x * x))", x).to_vector(), (std::vector<double>{2, 2, 2}));
}

TEST(Schema, PrintsWhatItParsed) {
  for (const Op* op : OpTable::current().rows()) {
    const std::string text = str(op->schema);
    EXPECT_EQ(str(parse_schema(text)), text);
  }
}
}  // namespace
