// Error texts of boxed calls and of the schema parser.
#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(CallErrors, Arguments) {
  EXPECT_INLINE(refused("mul", {x23()}), R"(
      [schema] mul: argument "b" is missing; expected mul(Tensor a, Tensor b) -> Tensor)");
  EXPECT_INLINE(refused("exp", {x23(), x23()}), R"(
      [schema] exp: got 2 arguments, expected at most 1: exp(Tensor x) -> Tensor)");
  EXPECT_INLINE(refused("cumsum", {x23(), std::string("0")}), R"(
      [schema] cumsum: argument "dim" got "0", expected Dim dim)");
  EXPECT_INLINE(refused("cumsum", {x23(), 0.5}), R"(
      [schema] cumsum: argument "dim" got 0.5, expected Dim dim)");
  EXPECT_INLINE(refused("exp", {Value()}), R"([schema] exp: argument "x" got None, expected Tensor x)");
  EXPECT_INLINE(refused("exp", {Tensors{x23()}}), R"(
      [schema] exp: argument "x" got [f64[2,3]], expected Tensor x)");
  EXPECT_INLINE(refused("cat", {x23()}), R"(
      [schema] cat: argument "tensors" got f64[2,3], expected Tensor[] tensors)");
  EXPECT_INLINE(refused("sum", {x23(), std::string("all")}), R"(
      [schema] sum: argument "dim" got "all", expected Dim[]? dim=None)");
  EXPECT_INLINE(refused("sum", {x23(), Value(), 1}), R"(
      [schema] sum: argument "keepdim" got 1, expected bool keepdim=False)");
  EXPECT_INLINE(refused("add", {x23(), 1}), R"([schema] add: argument "b" got 1, expected Tensor b)");
  EXPECT_INLINE(refused("to", {x23(), std::string("f64")}), R"(
      [schema] to: argument "dtype" got "f64", expected DType dtype)");
  EXPECT_INLINE(refused("full", {Dims{2}, x23()}), R"(
      [schema] full: argument "fill_value" got f64[2,3], expected Scalar fill_value)");
  EXPECT_INLINE(refused("div", {x23(), x23(), 1}), R"(
      [schema] div: argument "rounding_mode" got 1, expected str? rounding_mode=None)");
  EXPECT_INLINE(refused("permute", {x23(), Dims(1000, 0)}), R"(
      [shape] permute: dims = \
      [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\
      ,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0] for x: f64[2,3]; expected 2 dims)");
}

TEST(CallErrors, Named) {
  EXPECT_INLINE(refused("sum", {x23()}, {{"axis", 0}}), R"(
      [schema] sum: got an argument "axis", expected sum(Tensor x, Dim[]? dim=None, bool keepdim=False, \
      *, DType? dtype=None) -> Tensor)");
  EXPECT_INLINE(refused("sum", {x23(), 0}, {{"dim", 0}}), R"(
      [schema] sum: argument "dim" is given twice, expected once)");
  EXPECT_INLINE(refused("cumsum", {x23()}), R"(
      [schema] cumsum: argument "dim" is missing; expected cumsum(Tensor x, Dim dim, *, DType? \
      dtype=None) -> Tensor)");
}

TEST(CallErrors, Operators) {
  EXPECT_INLINE(refused([] { call("frobnicate", {}); }), R"(
      [unknown_operator] call: there is no operator "frobnicate"; expected one that `lamella ops` lists)");
  EXPECT_INLINE(refused([] { *OpHandle("frobnicate"); }), R"(
      [unknown_operator] call: there is no operator "frobnicate"; expected one that `lamella ops` lists)");
}

TEST(SchemaErrors, Text) {
  EXPECT_INLINE(refused([] { parse_schema(""); }), R"(
      [schema] schema: got "" at position 0, expected a name)");
  EXPECT_INLINE(refused([] { parse_schema("f"); }), R"([schema] schema: got "" at position 1, expected "(")");
  EXPECT_INLINE(refused([] { parse_schema("f("); }), R"(
      [schema] schema: got "" at position 2, expected a name)");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x"); }), R"(
      [schema] schema: got "" at position 10, expected ",")");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x)"); }), R"(
      [schema] schema: got "" at position 11, expected "->")");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x) ->"); }), R"(
      [schema] schema: got "" at position 14, expected "Tensor")");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x) -> Tensor trailing"); }), R"(
      [schema] schema: got "trailing" at position 22, expected the end)");
  EXPECT_INLINE(refused([] { parse_schema("f(Tenso x) -> Tensor"); }), R"(
      [schema] schema: got " x) -> Tensor" at position 7, expected a type, not "Tenso")");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x, Tensor x) -> Tensor"); }), R"(
      [schema] schema: got ") -> Tensor" at position 20, expected a new name, not "x" again)");
  EXPECT_INLINE(refused([] { parse_schema("f(int n=x) -> Tensor"); }), R"(
      [schema] schema: got ") -> Tensor" at position 9, expected a default that the parameter can hold)");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor x=3) -> Tensor"); }), R"(
      [schema] schema: got ") -> Tensor" at position 12, expected a default that the parameter can hold)");
  EXPECT_INLINE(refused([] { parse_schema("f(int n=None) -> Tensor"); }), R"(
      [schema] schema: got ") -> Tensor" at position 12, expected a default, not None, for a parameter \
      that is not optional)");
  EXPECT_INLINE(refused([] { parse_schema("f(str[] n) -> Tensor"); }), R"(
      [schema] schema: got " n) -> Tensor" at position 7, expected a type that has lists)");
  EXPECT_INLINE(refused([] { parse_schema("1f() -> Tensor"); }), R"(
      [schema] schema: got "() -> Tensor" at position 2, expected a name)");
  EXPECT_INLINE(refused([] { parse_schema(std::string_view("f(\0)", 4)); }), R"x(
      [schema] schema: got "?)" at position 2, expected a name)x");
  EXPECT_INLINE(refused([] { parse_schema("f(Tensor \xc3\xa9) -> Tensor"); }), R"(
      [schema] schema: got "??) -> Tensor" at position 9, expected a name)");
  EXPECT_INLINE(refused([] { parse_schema(std::string(10'000'000, 'a')); }), R"(
      [schema] schema: got 10000000 characters, expected at most 4096)");
}
}  // namespace
