// Parts of a tensor by strides over its elements in row-major order: how base autograd states which part of a
// family a member shows, whatever views led to it. Plumbing, like what they are transposes of.
#include "lamella/ops/geometry.h"

namespace lamella::ops {

namespace {

/// The part that (size, stride, offset) name of a contiguous tensor like x. Error storage beyond its end.
Geometry part_of(const Frame& f, const Tensor& x, Ints size, Ints stride, int64_t offset) {
  LAMELLA_CHECK(size.size() == stride.size(), Shape,
                "{}: got {} sizes and {} strides, expected as many of each", op_name(f), size.size(),
                stride.size());
  __int128 last = offset;
  for (size_t d = 0; d < size.size(); ++d) {
    LAMELLA_CHECK(size[d] >= 0 && stride[d] >= 0, Shape, "{}: size = {}, stride = {}; expected no negative",
                  op_name(f), Dims(size), Dims(stride));
    last += __int128(std::max<int64_t>(size[d] - 1, 0)) * stride[d];
  }
  const bool fits = checked_numel(size, op_name(f).c_str()) == 0 || last < x.numel();
  LAMELLA_CHECK(offset >= 0 && fits, Storage,
                "{}: size = {}, stride = {}, offset = {} for x: {}; expected to stay within its {} elements",
                op_name(f), Dims(size), Dims(stride), offset, x, x.numel());
  return {Dims(size), Dims(stride), offset};
}

void infer_part(const Frame& f, Inferred& out) {
  const Geometry part = part_of(f, f.tensor(0), f.ints(1), f.ints(2), f.arg<int64_t>(3));
  out.compute = f.tensor(0).dtype();
  out.outs.push_back({part.sizes, out.compute});
}

void launch_part(const Launch& l) {
  const Frame& f = l.frame;
  const Tensor whole = contiguous(f.tensor(0));
  const Geometry part = part_of(f, whole, f.ints(1), f.ints(2), f.arg<int64_t>(3));
  copy_view(l, l.outs[0].view_of(), view_at(whole, part));
}

void infer_replaced(const Frame& f, Inferred& out) {
  const Tensor &x = f.tensor(0), &src = f.tensor(1);
  (void)part_of(f, x, src.sizes(), f.ints(2), f.arg<int64_t>(3));
  LAMELLA_CHECK(src.dtype() == x.dtype(), DType, "{}: src is {}, expected the dtype of x: {}", op_name(f),
                src, x);
  infer_same(f, out);
}

void launch_replaced(const Launch& l) {
  const Frame& f = l.frame;
  const Tensor &out = l.outs[0], &src = f.tensor(1);
  copy_view(l, out.view_of(), f.tensor(0).view_of());
  const Geometry part = part_of(f, out, src.sizes(), f.ints(2), f.arg<int64_t>(3));
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
  OpTable::add({.schema = "strided_copy(Tensor x, int[] size, int[] stride, int offset) -> Tensor",
                .shape = ShapeClass::Other,
                .infer = infer_part,
                .kernel = kernel(kernels::copy),
                .launch = launch_part,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("x.sizes", "stride", "offset"),
                            [](Tensor dy, Ints x, Ints stride, Int offset) {
                              return strided_scatter(new_zeros(dy, x), without_repeats(dy, stride), stride,
                                                     offset);
                            })},
                .properties = kLinear | kTestOnly | kNoInPlace | kNoOut,
                .samples = part_samples,
                .doc = "The elements of x, in row-major order, at offset + i * stride for each index i of "
                       "size. Errors: shape, storage beyond x's elements."});
  OpTable::add(
      {.schema = "strided_scatter(Tensor x, Tensor src, int[] stride, int offset) -> Tensor",
       .shape = ShapeClass::Other,
       .infer = infer_replaced,
       .kernel = kernel(kernels::copy),
       .launch = launch_replaced,
       .jvp = {wrt("x", saves("src.sizes", "stride", "offset"),
                   [](Tensor t, Ints src, Ints stride, Int offset) {
                     return strided_scatter(t, new_zeros(t, src), stride, offset);
                   }),
               wrt("src", saves("x.sizes", "stride", "offset"),
                   [](Tensor t, Ints x, Ints stride, Int offset) {
                     return strided_scatter(new_zeros(t, x), t, stride, offset);
                   })},
       .vjp = {wrt("x", saves("src.sizes", "stride", "offset"),
                   [](Tensor dy, Ints src, Ints stride, Int offset) {
                     return strided_scatter(dy, new_zeros(dy, src), stride, offset);
                   }),
               wrt("src", saves("src.sizes", "stride", "offset"),
                   [](Tensor dy, Ints src, Ints stride, Int offset) {
                     return strided_copy(dy, src, stride, offset);
                   })},
       .properties = kTestOnly | kNoInPlace | kNoOut,
       .samples = replaced_samples,
       .doc = "x with src in the place of the elements that strided_copy reads; no two of them may be one. "
              "Errors as strided_copy's, dtype when src's is not x's."});
}

}  // namespace lamella::ops
