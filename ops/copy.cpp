// Copies, conversions and overwriting.
#include "lamella/ops/functions/copy.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {
/// Result and self agree; src comes to them.
void infer_copy(const Frame& f, Inferred& out) {
  const Tensor &self = f.tensor(0), &src = f.tensor(1);
  const Tensor* both[] = {&self, &src};
  LAMELLA_CHECK(broadcast(f, both).equal(self.sizes()), Broadcast,
                "{}: src is {}, expected sizes that broadcast to self: {}", op_name(f), src, self);
  out.compute = self.dtype();
  out.outs.push_back({self.sizes(), self.dtype()});
}

void launch_copy(const Launch& l) {
  Dims strides;
  copy_view(l, l.outs[0].view_of(), broadcast_view(l.frame, l.frame.tensor(1), l.outs[0].sizes(), strides));
}

/// src never widens self, so an unmapped self is expanded.
void batch_copy(BatchCall& b) { b.results[0] = copy(b.front(0), b.front_padded(1, b.logical_rank(0))); }

void batch_with_values(BatchCall& b) {
  b.results[0] = with_values(b.front(0), b.front_padded(1, b.logical_rank(0)));
}

void infer_fill(const Frame& f, Inferred& out) {
  infer_same(f, out);
  const Scalar& value = f.arg<Scalar>(1);
  LAMELLA_CHECK(!is_complex(value.kind()) || is_complex(out.compute), DType,
                "{}: value = {} is complex, expected a real number for x: {}", op_name(f), value.str(),
                f.tensor(0));
  LAMELLA_CHECK(value.fits(out.compute), Overflow,
                "{}: value = {} does not fit x: {}; expected a number that its dtype holds", op_name(f),
                value.str(), f.tensor(0));
}

void launch_fill(const Launch& l) {
  const View out = l.outs[0].view_of();
  run(l, {&out, 1}, {}, {}, {&l.frame.arg<Scalar>(1), 1});
}

void infer_to(const Frame& f, Inferred& out) {
  out.compute = f.arg<DType>(1);
  out.outs.push_back({f.tensor(0).sizes(), out.compute});
}

void make_contiguous(Frame& f) {
  const Tensor& x = f.tensor(0);
  f.results[0] = x.is_contiguous() ? x : clone(x);
}

Values copy_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  DType from = d.partner(t, kAllTypes);
  if (!can_store(from, t) || (is_integer(from) && is_integer(t))) from = t;  // values must fit
  const Dims s = d.shape();
  const Tensor self = d.tensor(s, t);
  return {self, d.tensor(d.broadcastable(s, from), from)};
}

Values fill_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  return {d.tensor(d.shape(), t), is_bool(t) ? Scalar(d.flag()) : d.scalar(t).stored(t)};
}

/// A dtype that holds x's values, any where numbers of the whole range are asked for.
Values to_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  if (d.options().ends && d.flag()) {
    const DType any = DType(d.below(uint32_t(DType::F128), "dtype argument"));
    return {d.tensor(d.shape(), t), any};
  }
  constexpr DType kWider[] = {DType::F64, DType::F32, DType::C128, DType::F16, DType::BF16, DType::C64};
  DType to = d.flag() ? t : kWider[d.below(is_complex(t) ? 3 : 6)];
  if (is_complex(t) && !is_complex(to)) to = DType::C128;
  const Tensor x = d.tensor(d.shape(), t);
  return {x, d.nameable(mask(t) | mask(to)) & mask(to) ? to : t};
}

constexpr std::string_view kCut = "it cuts derivatives off";

void define_cuts() {
  OpTable::add({.schema = "detach(Tensor x) -> Tensor(a)",
                .shape = ShapeClass::View,
                .view = [](const Frame&, const Geometry& x) { return x; },
                .jvp = not_differentiable(kCut),
                .vjp = not_differentiable(kCut),
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "x without derivatives: the same elements in the same memory, as a constant for base "
                       "autograd and for every level of grad and jvp; vmap maps it as x. A write to it "
                       "changes x's values and not x's derivatives."});
  OpTable::add({.schema = "with_values(Tensor self, Tensor src) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_copy,
                .kernel = kernel("copy"),
                .launch = launch_copy,
                .jvp = {wrt("self", [](Tensor t) { return t; })},
                .vjp = {wrt("self", [](Tensor dy) { return dy; })},
                .batch = batch_with_values,
                .properties = kTestOnly | kNoOut,
                .samples = copy_samples,
                .doc = "src's elements with self's derivatives: what a write that is not recorded leaves in "
                       "self. Error broadcast when src does not fit."});
}
}  // namespace

namespace {
void define_copies() {
  define_cuts();
  OpTable::add({.schema = "clone(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_same,
                .kernel = kernel("copy"),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", [](Tensor dy) { return dy; })},
                .properties = kLinear | kNoInPlace | kNoOut,
                .promises = {.once = true},
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "A contiguous copy that shares no memory with x."});
  OpTable::add(
      {.schema = "copy(Tensor self, Tensor src) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_copy,
       .kernel = kernel("copy"),
       .launch = launch_copy,
       .jvp = {wrt("src", saves("self.device"), on_device)},
       .vjp = {wrt("src", saves("src.device"), on_device)},
       .batch = batch_copy,
       .properties = kCrosses,
       .promises = {.once = true},
       .samples = copy_samples,
       .doc =
           "src's elements in self's shape and dtype, rounded once; src broadcasts to self, self's values do "
           "not matter. copy_ "
           "overwrites self. Error broadcast when src does not fit."});
  OpTable::add(
      {.schema = "fill(Tensor x, Scalar value) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_fill,
       .kernel = kernel("fill"),
       .launch = launch_fill,
       .jvp = {wrt("x", [](Tensor t) { return zeros_like(t); })},
       .vjp = {wrt("x", [](Tensor dy) { return zeros_like(dy); })},
       .promises = {.once = true},
       .samples = fill_samples,
       .doc =
           "value in x's shape and dtype, rounded once; the derivative is zero. fill_ overwrites x. Errors: "
           "dtype for a complex number in a real x, overflow for one that x's dtype does not hold."});
}
}  // namespace

void define_copy() {
  define_copies();
  OpTable::add({.schema = "to(Tensor x, DType dtype, *, Device? device=None) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_to,
                .kernel = kernel("copy"),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("x.device"), on_device)},
                .properties = kCrosses | kNoInPlace | kNoOut,
                .promises = {.once = true},
                .samples = to_samples,
                .doc =
                    "A copy of x in another dtype, rounded once, on x's device unless one is given; a real "
                    "dtype drops the imaginary part. No derivative through integers and bool."});
  OpTable::add(
      {.schema = "contiguous(Tensor x) -> Tensor(a)",
       .shape = ShapeClass::Composite,
       .infer = definition::shape_of_same,
       .kernel = {.reference = kernels::reference::in_row_major_order},
       .launch = definition::run_copy,
       .composite = make_contiguous,
       .jvp = by_composition(),
       .vjp = by_composition(),
       .samples = [](Draw& d) { return unary(d, kAllTypes); },
       .doc = "x itself when its elements lie in row-major order without gaps, else a copy that does."});
}

}  // namespace lamella::ops
