// Between complex numbers and their parts. Derivatives: vjp = J^H dy for Re<a, b> = Re(conj(a) b); jvp is
// real-linear.
#include "lamella/ops/functions/complex.h"

#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/factory.h"

namespace lamella::ops {

namespace {
void infer_part(const Frame& f, Inferred& out) {
  infer_same(f, out);
  LAMELLA_CHECK(is_complex(out.compute), DType, "{}: x is {}, expected a complex tensor", op_name(f),
                f.tensor(0));
  out.outs[0].dtype = to_real(out.compute);
}

/// A complex number is its real part, then its imaginary part: every other element, twice as many in all.
template <int Part> Geometry part_of(const Frame& f, const Geometry& x) {
  const DType d = f.tensor(0).dtype();
  LAMELLA_CHECK(is_complex(d), DType, "{}: x is {}, expected a complex tensor", op_name(f), f.tensor(0));
  Geometry out{x.sizes, x.strides, 2 * x.offset + Part, to_real(d)};
  for (int64_t& s : out.strides)
    s = s > INT64_MAX / 2 ? s : 2 * s;  // that of a dim of size 1 may be anything
  return out;
}

void infer_complex(const Frame& f, Inferred& out) {
  const Tensor &re = f.tensor(0), &im = f.tensor(1);
  const Tensor* both[] = {&re, &im};
  const bool number = re.impl()->number || im.impl()->number;
  out.compute = result_type(both);
  const DType d = out.compute;
  LAMELLA_CHECK(d == DType::F32 || d == DType::F64 || d == DType::F128, DType,
                "{}: real: {}, imag: {}; expected both f32 or both f64", op_name(f), re, im);
  LAMELLA_CHECK(number || re.dtype() == im.dtype(), DType, "{}: real: {}, imag: {}; expected the same dtype",
                op_name(f), re, im);
  out.outs.push_back({broadcast(f, both), to_complex(d)});
}

void conj_of(Frame& f) {
  const Tensor& x = f.tensor(0);
  if (!is_complex(x.dtype())) {
    f.results[0] = x;
    return;
  }
  f.results[0] = conj_physical(x);
  if (x.impl()->number) f.results[0].impl()->number = true;  // else dy * conj(2i) has the number's dtype
}
void real_of(Frame& f) {
  const Tensor& x = f.tensor(0);
  f.results[0] = is_complex(x.dtype()) ? real_part(x) : x;
}

void define_parts() {
  OpTable::add({.schema = "conj_physical(Tensor x) -> Tensor",
                .shape = ShapeClass::Broadcast,
                .infer = infer_same,
                .kernel = kernel("conj"),
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", [](Tensor dy) { return conj(dy); })},
                .properties = kLinear,
                .promises = {.once = true},
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "The complex conjugate as a new tensor; a copy of a real x."});
  OpTable::add({.schema = "real_part(Tensor x) -> Tensor(a)",
                .shape = ShapeClass::View,
                .infer = infer_part,
                .view = part_of<0>,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", [](Tensor dy) { return complex(dy, zeros_like(dy)); })},
                .properties = kLinear,
                .samples = [](Draw& d) { return unary(d, kComplex); },
                .doc = "The real part of a complex tensor, a view of it. Error dtype for a real x."});
  OpTable::add({.schema = "imag(Tensor x) -> Tensor(a)",
                .shape = ShapeClass::View,
                .infer = infer_part,
                .view = part_of<1>,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", [](Tensor dy) { return complex(zeros_like(dy), dy); })},
                .properties = kLinear,
                .samples = [](Draw& d) { return unary(d, kComplex); },
                .doc = "The imaginary part of a complex tensor, a view of it. Error dtype for a real x."});
}
}  // namespace

void define_complex() {
  define_parts();
  OpTable::add({.schema = "conj(Tensor x) -> Tensor(a)",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_same,
                .kernel = {.reference = kernels::reference::in_row_major_order},
                .launch = definition::run_conjugate,
                .composite = conj_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "The complex conjugate; a real x itself."});
  OpTable::add({.schema = "real(Tensor x) -> Tensor(a)",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_real,
                .kernel = {.reference = kernels::reference::in_row_major_order},
                .launch = definition::run_copy,
                .composite = real_of,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .samples = [](Draw& d) { return unary(d, kAllTypes); },
                .doc = "The real part of a complex tensor, a view of it; a real x itself."});
  OpTable::add(
      {.schema = "complex(Tensor real, Tensor imag) -> Tensor",
       .shape = ShapeClass::Broadcast,
       .infer = infer_complex,
       .kernel = kernel("make_complex"),
       .jvp = {wrt("real", [](Tensor t) { return complex(t, zeros_like(t)); }),
               wrt("imag", [](Tensor t) { return complex(zeros_like(t), t); })},
       .vjp = {wrt("real", [](Tensor dy) { return real(dy); }),
               wrt("imag", [](Tensor dy) { return imag(dy); })},
       .properties = kLinear | kNoInPlace | kExactOut,
       .promises = {.once = true},
       .samples =
           [](Draw& d) {
             const DType t = d.dtype(kFloat32And64);
             return two_tensors(d, t, t);
           },
       .doc = "real + i imag, broadcast: c64 from f32, c128 from f64. Error dtype for others or a mixture."});
}

}  // namespace lamella::ops
