// Parts of a tensor by strides over its elements in row-major order: how base autograd states which part of a
// family a member shows, whatever views led to it. Plumbing, like what they are transposes of.
#include "lamella/ops/functions/strided.h"

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {

/// The part that (size, stride, offset) name of a contiguous tensor like x, or, for a `dtype` other than x's,
/// of the real numbers that x consists of. Error storage beyond its end.
Geometry part_of(const Frame& f, const Tensor& x, DType dtype, Ints size, Ints stride, int64_t offset) {
  const bool real = is_complex(x.dtype()) && dtype == to_real(x.dtype());
  LAMELLA_CHECK(real || dtype == x.dtype(), DType,
                "{}: dtype = {} for a part of x: {}; expected its dtype or a real one", op_name(f), dtype, x);
  LAMELLA_CHECK(size.size() == stride.size(), Shape,
                "{}: size has {} entries and stride {}, expected as many of each", op_name(f), size.size(),
                stride.size());
  for (size_t d = 0; d < size.size(); ++d)
    LAMELLA_CHECK(size[d] >= 0 && stride[d] >= 0, Shape, "{}: size = {}, stride = {}; expected no negative",
                  op_name(f), Dims(size), Dims(stride));
  // Sizes whose product is at most 2^58: then the sum below overflows for no strides.
  const bool empty = checked_numel(size, op_name(f).c_str()) == 0;
  __int128 last = offset;
  for (size_t d = 0; d < size.size(); ++d) last += __int128(std::max<int64_t>(size[d] - 1, 0)) * stride[d];
  const bool fits = empty || last < (real ? 2 : 1) * x.numel();
  LAMELLA_CHECK(offset >= 0 && fits, Storage,
                "{}: size = {}, stride = {}, offset = {} for x: {}; expected to stay within its {} elements",
                op_name(f), Dims(size), Dims(stride), offset, x, x.numel());
  return {Dims(size), Dims(stride), offset, dtype};
}

Geometry part_to_copy(const Frame& f, const Tensor& x) {
  return part_of(f, x, f.arg_or(4, x.dtype()), f.ints(1), f.ints(2), f.arg<int64_t>(3));
}
Geometry part_to_replace(const Frame& f, const Tensor& x) {
  const Tensor& src = f.tensor(1);
  return part_of(f, x, src.dtype(), src.sizes(), f.ints(2), f.arg<int64_t>(3));
}

void infer_strided_part(const Frame& f, Inferred& out) {
  const Geometry part = part_to_copy(f, f.tensor(0));
  out.compute = *part.dtype;
  out.outs.push_back({part.sizes, out.compute});
}

void launch_part(const Launch& l) {
  const Frame& f = l.frame;
  const Tensor whole = contiguous(f.tensor(0));
  const Geometry part = part_to_copy(f, whole);
  copy_view(l, l.outs[0].view_of(), view_at(whole, part));
}

void infer_replaced(const Frame& f, Inferred& out) {
  (void)part_to_replace(f, f.tensor(0));
  infer_same(f, out);
}

void launch_replaced(const Launch& l) {
  const Frame& f = l.frame;
  const Tensor &out = l.outs[0], &src = f.tensor(1);
  copy_view(l, out.view_of(), f.tensor(0).view_of());
  const Geometry part = part_to_replace(f, out);
  copy_view(l, view_at(out, part), src.view_of());
}

/// Adds up what several elements of a part took from one: views repeat elements by strides 0 alone.
Tensor without_repeats(Tensor dy, Ints stride) {
  for (size_t d = 0; d < stride.size(); ++d)
    if (stride[d] == 0 && dy.size(int(d)) != 1) dy = sum(dy, IntArg{int64_t(d)}, true);
  return dy;
}

Values part_samples(Draw& d) {
  const Tensor x = d.tensor(Dims{4, 3}, DType::F64);
  return {x, Dims{2, 2}, Dims{3, 1}, d.range(0, 6)};
}
Values replaced_samples(Draw& d) {
  const Tensor x = d.tensor(Dims{4, 3}, DType::F64);
  return {x, d.tensor(Dims{2, 2}, DType::F64), Dims{3, 1}, d.range(0, 6)};
}

using Int = int64_t;
}  // namespace

void define_strided() {
  OpTable::add(
      {.schema =
           "strided_copy(Tensor x, int[] size, int[] stride, int offset, *, DType? dtype=None) -> Tensor",
       .shape = ShapeClass::Other,
       .infer = infer_strided_part,
       .kernel = kernel("copy"),
       .launch = launch_part,
       .jvp = linear_in({"x"}),
       .vjp = {wrt("x", saves("x.sizes", "x.dtype", "stride", "offset"),
                   [](Tensor dy, Ints x, DType dtype, Ints stride, Int offset) {
                     return strided_scatter(new_zeros(dy, x, dtype), without_repeats(dy, stride), stride,
                                            offset);
                   })},
       .properties = kLinear | kTestOnly | kNoInPlace | kNoOut,
       .samples = part_samples,
       .doc =
           "The elements of x, in row-major order, at offset + i * stride for each index i of size; with a "
           "real dtype for a complex x, of the numbers re, im, re, im, ... that x consists of. Errors: "
           "shape, "
           "dtype, storage beyond x's elements."});
  OpTable::add(
      {.schema = "strided_scatter(Tensor x, Tensor src, int[] stride, int offset) -> Tensor",
       .shape = ShapeClass::Other,
       .infer = infer_replaced,
       .kernel = kernel("copy"),
       .launch = launch_replaced,
       .jvp = {wrt("x", saves("src.sizes", "src.dtype", "stride", "offset"),
                   [](Tensor t, Ints src, DType dtype, Ints stride, Int offset) {
                     return strided_scatter(t, new_zeros(t, src, dtype), stride, offset);
                   }),
               wrt("src", saves("x.sizes", "x.dtype", "stride", "offset"),
                   [](Tensor t, Ints x, DType dtype, Ints stride, Int offset) {
                     return strided_scatter(new_zeros(t, x, dtype), t, stride, offset);
                   })},
       .vjp = {wrt("x", saves("src.sizes", "src.dtype", "stride", "offset"),
                   [](Tensor dy, Ints src, DType dtype, Ints stride, Int offset) {
                     return strided_scatter(dy, new_zeros(dy, src, dtype), stride, offset);
                   }),
               wrt("src", saves("src.sizes", "src.dtype", "stride", "offset"),
                   [](Tensor dy, Ints src, DType dtype, Ints stride, Int offset) {
                     return strided_copy(dy, src, stride, offset, dtype);
                   })},
       .properties = kTestOnly | kNoInPlace | kNoOut,
       .samples = replaced_samples,
       .doc = "x with src in the place of the elements that strided_copy reads; no two of them may be one. "
              "Errors as strided_copy's, dtype when src's is neither x's nor that of its real part."});
}

}  // namespace lamella::ops
