// Element by element to bool: comparisons and logic.
#include "lamella/ops/define.h"

namespace lamella::ops {

namespace {
constexpr std::string_view kPiecewise = "piecewise constant: bool result";

void infer_order(const Frame& f, Inferred& out) {
  infer_compare(f, out);
  LAMELLA_CHECK(!is_complex(out.compute), DType,
                "{}: a: {}, b: {} compare as {}, which has no order; expected real numbers", op_name(f),
                f.tensor(0), f.tensor(1), out.compute);
}

struct Comparison {
  std::string_view schema;
  ShapeClass shape;
  InferFn infer;
  std::string_view kernel;
  uint32_t properties;
  Promises promises = {};
  SampleFn samples;
  std::string_view doc;
};

void define(const Comparison& c) {
  OpTable::add({.schema = c.schema,
                .shape = c.shape,
                .infer = c.infer,
                .kernel = kernel(c.kernel, kRealTypes | kBoolType),
                .jvp = not_differentiable(kPiecewise),
                .vjp = not_differentiable(kPiecewise),
                .properties = c.properties,
                .promises = c.promises,
                .samples = c.samples,
                .doc = c.doc});
}

Values any_two(Draw& d) { return binary(d, kAllTypes); }
Values real_two(Draw& d) { return binary(d, kRealTypes | kBoolType); }
Values any_one(Draw& d) { return unary(d, kAllTypes); }
}  // namespace

namespace {
void define_orders() {
  define({.schema = "eq(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "eq",
          .properties = kDiscontinuous | kNoInPlace,
          .promises = {.symmetric = true},
          .samples = any_two,
          .doc = "a == b after promotion, as bool; false where either is NaN."});
  define({.schema = "ne(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "ne",
          .properties = kDiscontinuous | kNoInPlace,
          .promises = {.symmetric = true},
          .samples = any_two,
          .doc = "a != b after promotion, as bool; true where either is NaN."});
  define({.schema = "lt(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_order,
          .kernel = "lt",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = real_two,
          .doc = "a < b after promotion, as bool. Error dtype for complex numbers."});
  define({.schema = "le(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_order,
          .kernel = "le",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = real_two,
          .doc = "a <= b after promotion, as bool. Error dtype for complex numbers."});
  define({.schema = "gt(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_order,
          .kernel = "gt",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = real_two,
          .doc = "a > b after promotion, as bool. Error dtype for complex numbers."});
  define({.schema = "ge(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_order,
          .kernel = "ge",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = real_two,
          .doc = "a >= b after promotion, as bool. Error dtype for complex numbers."});
}
}  // namespace

void define_compare() {
  define_orders();
  define({.schema = "logical_and(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "logical_and",
          .properties = kDiscontinuous | kNoInPlace,
          .promises = {.symmetric = true},
          .samples = any_two,
          .doc = "Both not zero, as bool; NaN is not zero."});
  define({.schema = "logical_or(Tensor a, Tensor b) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "logical_or",
          .properties = kDiscontinuous | kNoInPlace,
          .promises = {.symmetric = true},
          .samples = any_two,
          .doc = "Either not zero, as bool; NaN is not zero."});
  define({.schema = "logical_not(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "logical_not",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = any_one,
          .doc = "x == 0, as bool."});
  define({.schema = "isnan(Tensor x) -> Tensor",
          .shape = ShapeClass::Broadcast,
          .infer = infer_compare,
          .kernel = "isnan",
          .properties = kDiscontinuous | kNoInPlace,
          .samples = any_one,
          .doc = "Whether x is NaN, as bool; a complex number is when either part is. False for integers and "
                 "bool."});
}

}  // namespace lamella::ops
