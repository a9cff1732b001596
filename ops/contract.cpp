// Matrix products.
#include "lamella/ops/functions/contract.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/view.h"

namespace lamella::ops {

namespace {
void check_dtypes(const Frame& f) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  LAMELLA_CHECK(a.dtype() == b.dtype(), DType, "{}: {} is {} and {} is {}; expected equal dtypes", op_name(f),
                arg_name(f, 0), a, arg_name(f, 1), b);
  LAMELLA_CHECK(!is_bool(a.dtype()), DType, "{}: {} is {}, expected a number's dtype", op_name(f),
                arg_name(f, 0), a);
}

/// Ranks as asked and the last dim of a equal to the contracted dim of b.
void check_shapes(const Frame& f, int rank_a, int rank_b) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  LAMELLA_CHECK(a.rank() == rank_a && b.rank() == rank_b, Shape,
                "{}: {} is {} and {} is {}; expected ranks {} and {}", op_name(f), arg_name(f, 0), a,
                arg_name(f, 1), b, rank_a, rank_b);
  const int64_t inner = b.size(rank_b == 1 ? 0 : -2);
  LAMELLA_CHECK(a.size(-1) == inner, Shape,
                "{}: {} is {} and {} is {}: inner sizes {} and {} differ; expected equal ones", op_name(f),
                arg_name(f, 0), a, arg_name(f, 1), b, a.size(-1), inner);
}

void finish(const Frame& f, Inferred& out, const Dims& sizes) {
  check_dtypes(f);
  out.compute = f.tensor(0).dtype();
  out.outs.push_back({sizes, out.compute});
}

void infer_mm(const Frame& f, Inferred& out) {
  check_shapes(f, 2, 2);
  finish(f, out, {f.tensor(0).size(0), f.tensor(1).size(1)});
}

void infer_mv(const Frame& f, Inferred& out) {
  check_shapes(f, 2, 1);
  finish(f, out, {f.tensor(0).size(0)});
}

void infer_bmm(const Frame& f, Inferred& out) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  check_shapes(f, 3, 3);
  LAMELLA_CHECK(a.size(0) == b.size(0), Shape,
                "{}: a is {} and b is {}: batch sizes differ; expected equal ones", op_name(f), a, b);
  finish(f, out, {a.size(0), a.size(1), b.size(2)});
}

/// A matrix, a batch of them, or a vector (one column), as the kernel's [batch, rows, columns].
struct Lifted {
  int64_t sizes[3] = {1, 1, 1};
  int64_t strides[3] = {0, 0, 0};
  View view;
  explicit Lifted(const Tensor& t) : view(t.view_of()) {
    const int first = t.rank() == 3 ? 0 : 1;
    for (int d = 0; d < t.rank(); ++d) {
      sizes[first + d] = view.sizes[d];
      strides[first + d] = view.strides[d];
    }
    view.rank = 3;
    view.sizes = sizes;
    view.strides = strides;
  }
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;
};

void launch_matmul(const Launch& l) {
  const Lifted a(l.frame.tensor(0)), b(l.frame.tensor(1)), out(l.outs[0]);
  const View ins[] = {a.view, b.view};
  run(l, {&out.view, 1}, ins);
}

/// One level down, with the mapped dim of what is mapped in front.
Tensor lanes_of(const BatchCall& b, int i) {
  return b.is_mapped(i) ? to_front(b.frame.tensor(i), b.dims[i]) : b.frame.tensor(i);
}

/// The lanes are one more batch dim, which matmul broadcasts: an operand without lanes is not copied.
void batch_matrices(BatchCall& b) { b.results[0] = matmul(lanes_of(b, 0), lanes_of(b, 1)); }

/// Where the matrix is that of all lanes, these are rows of one product.
void batch_mv(BatchCall& b) {
  if (!b.is_mapped(0)) {
    b.results[0] = matmul(lanes_of(b, 1), transpose(b.frame.tensor(0), 0, 1));
    return;
  }
  const Tensor a = lanes_of(b, 0), v = lanes_of(b, 1);
  if (!b.is_mapped(1)) b.results[0] = matmul(a, v);
  else b.results[0] = reshape(matmul(a, unsqueeze(v, -1)), Dims{b.size, a.size(-2)});
}

/// Conjugate transpose of the last two dims.
Tensor adjoint(const Tensor& x) { return conj(transpose(x, -2, -1)); }

Dims batch_sizes(const Tensor& t) { return Dims(t.sizes().first(size_t(std::max(t.rank() - 2, 0)))); }

int64_t product(Ints sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Dims joined(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Dims broadcast_batch(const Frame& f, const Tensor& a, const Tensor& b) {
  const Dims x = batch_sizes(a), y = batch_sizes(b);
  Dims out(std::max(x.size(), y.size()), 1);
  for (int d = 1; d <= out.size(); ++d) {
    const int64_t s = d <= x.size() ? x[x.size() - d] : 1, t = d <= y.size() ? y[y.size() - d] : 1;
    LAMELLA_CHECK(
        s == t || s == 1 || t == 1, Broadcast,
        "{}: a is {} and b is {}: batch sizes {} and {} do not broadcast; expected equal sizes or 1",
        op_name(f), f.tensor(0), f.tensor(1), s, t);
    out[out.size() - d] = s == 1 ? t : s;
  }
  return out;
}

/// Both operands have at least two dims.
Tensor product_of_matrices(const Frame& f, const Tensor& a, const Tensor& b) {
  if (a.rank() == 2 && b.rank() == 2) return mm(a, b);
  const int64_t n = a.size(-2), k = a.size(-1), m = b.size(-1);
  if (b.rank() == 2) {  // the batch of a is only more rows
    const Dims batch = batch_sizes(a);
    return reshape(mm(reshape(a, Dims{product(batch) * n, k}), b), joined(batch, n, m));
  }
  const Dims batch = broadcast_batch(f, a, b);
  const int64_t lanes = product(batch);
  const Tensor x = reshape(expand(a, joined(batch, n, k)), Dims{lanes, n, k});
  const Tensor y = reshape(expand(b, joined(batch, k, m)), Dims{lanes, k, m});
  return reshape(bmm(x, y), joined(batch, n, m));
}

void matmul_composite(Frame& f) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  check_dtypes(f);
  LAMELLA_CHECK(a.rank() > 0 && b.rank() > 0, Shape,
                "{}: a is {} and b is {}; expected at least one dim each", op_name(f), a, b);
  const int64_t inner = b.size(b.rank() == 1 ? 0 : -2);
  LAMELLA_CHECK(a.size(-1) == inner, Shape,
                "{}: a is {} and b is {}: inner sizes {} and {} differ; expected equal ones", op_name(f), a,
                b, a.size(-1), inner);
  if (a.rank() == 2 && b.rank() <= 2) {
    f.results[0] = b.rank() == 1 ? mv(a, b) : mm(a, b);
    return;
  }
  const Tensor row = a.rank() == 1 ? unsqueeze(a, 0) : a, column = b.rank() == 1 ? unsqueeze(b, 1) : b;
  Tensor y = product_of_matrices(f, row, column);
  Dims sizes = batch_sizes(y);
  if (a.rank() > 1) sizes.push_back(y.size(-2));
  if (b.rank() > 1) sizes.push_back(y.size(-1));
  f.results[0] = sizes.size() == y.rank() ? y : reshape(y, sizes);
}

void check_vectors(const Frame& f) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  LAMELLA_CHECK(a.rank() == 1 && b.rank() == 1, Shape, "{}: a is {} and b is {}; expected one dim each",
                op_name(f), a, b);
}

void infer_outer(const Frame& f, Inferred& out) {
  check_vectors(f);
  const Tensor* const both[] = {&f.tensor(0), &f.tensor(1)};
  out.compute = result_type(both);
  out.outs.push_back({{f.tensor(0).size(0), f.tensor(1).size(0)}, out.compute});
}

/// The elements of vector `a` down the rows of a matrix of `sizes`, each repeated along its row.
View column_view(const Frame& f, const Tensor& a, Ints sizes, Dims& strides) {
  View v = broadcast_view(f, a, sizes.first(1), strides);
  strides.push_back(0);
  v.rank = 2;
  v.sizes = sizes.data();
  v.strides = strides.data();
  return v;
}

void launch_outer(const Launch& l) {
  Dims strides[2];
  const View out = l.outs[0].view_of();
  const View ins[] = {column_view(l.frame, l.frame.tensor(0), l.outs[0].sizes(), strides[0]),
                      broadcast_view(l.frame, l.frame.tensor(1), l.outs[0].sizes(), strides[1])};
  run(l, {&out, 1}, ins);
}

void shape_of_dot(const Frame& f, Inferred& out) {
  definition::shape_of_matmul(f, out);
  if (!out.refused && (f.tensor(0).rank() != 1 || f.tensor(1).rank() != 1)) out.refused = ErrorCode::Shape;
}

constexpr DTypeMask kNumbers = kAllTypes & ~kBoolType;

/// A size for the free dim of b, such that b and the product stay within the limit.
int64_t free_size(Draw& d, int64_t rows, int64_t lanes_and_inner) {
  const int64_t m = d.size();
  return m * std::max(rows, lanes_and_inner) > d.most_elements(0) ? 1 : m;
}

Values mm_samples(Draw& d) {
  const DType t = d.dtype(kNumbers);
  const Dims a = d.shape(2, 2);
  const int64_t m = free_size(d, a[0], a[1]);
  return {d.tensor(a, t), d.tensor({a[1], m}, t)};
}

Values mv_samples(Draw& d) {
  const DType t = d.dtype(kNumbers);
  const Dims a = d.shape(2, 2);
  return {d.tensor(a, t), d.tensor({a[1]}, t)};
}

Values bmm_samples(Draw& d) {
  const DType t = d.dtype(kNumbers);
  const Dims a = d.shape(3, 3);
  const int64_t m = free_size(d, a[0] * a[1], a[0] * a[2]);
  return {d.tensor(a, t), d.tensor({a[0], a[2], m}, t)};
}

/// All pairs of ranks; batch dims broadcast either way.
Values matmul_samples(Draw& d) {
  const DType t = d.dtype(kNumbers);
  Dims a = d.shape(1, 3);
  const int64_t k = a.back();
  const uint32_t kind = d.below(3);
  if (kind == 0) return {d.tensor(a, t), d.tensor({k}, t)};
  const int64_t rows = product(Ints(a).first(size_t(a.size() - 1)));
  const int64_t lanes = a.size() == 3 && kind == 2 ? a[0] : 1;
  const int64_t m = free_size(d, rows, lanes * k);
  if (lanes == 1 || d.flag()) return {d.tensor(a, t), d.tensor({k, m}, t)};
  if (d.flag()) a[0] = 1;
  return {d.tensor(a, t), d.tensor({lanes, k, m}, t)};
}
Values vectors(Draw& d, DTypeMask types, bool alike) {
  const DType t = d.dtype(types), other = alike ? t : d.partner(t, types);
  const Dims s = d.shape(1, 1);
  return {d.tensor(s, t), d.tensor(alike ? s : Dims{free_size(d, s[0], 1)}, other)};
}

void define_products() {
  OpTable::add(
      {.schema = "mm(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Contract,
       .infer = infer_mm,
       .kernel = kernel("matmul"),
       .launch = launch_matmul,
       .jvp = linear_in({"a", "b"}),
       .vjp = {wrt("a", saves("b"), [](Tensor dy, Tensor b) { return mm(dy, adjoint(b)); }),
               wrt("b", saves("a"), [](Tensor dy, Tensor a) { return mm(adjoint(a), dy); })},
       .batch = batch_matrices,
       .properties = kNoInPlace,
       .overflows_in = {Inside::Products, "partial sums of products"},
       .numerics = {0.5, 1},
       .samples = mm_samples,
       .doc = "Product of two matrices [n,k] and [k,m]; half dtypes accumulate in f32, integers wrap. "
              "Errors: dtype when they differ or are bool, shape. Error at most k * 2^-p * |a| |b|, and of a "
              "k above 1600 as of 1600: partial sums are added in pairs."});
  OpTable::add({.schema = "bmm(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Contract,
                .infer = infer_bmm,
                .kernel = kernel("matmul"),
                .launch = launch_matmul,
                .jvp = linear_in({"a", "b"}),
                .vjp = {wrt("a", saves("b"), [](Tensor dy, Tensor b) { return bmm(dy, adjoint(b)); }),
                        wrt("b", saves("a"), [](Tensor dy, Tensor a) { return bmm(adjoint(a), dy); })},
                .batch = batch_matrices,
                .properties = kNoInPlace,
                .overflows_in = {Inside::Products, "partial sums of products"},
                .numerics = {0.5, 1},
                .samples = bmm_samples,
                .doc = "Products of two batches of matrices [B,n,k] and [B,k,m]; otherwise as mm."});
  OpTable::add({.schema = "mv(Tensor a, Tensor v) -> Tensor",
                .shape = ShapeClass::Contract,
                .infer = infer_mv,
                .kernel = kernel("matmul"),
                .launch = launch_matmul,
                .jvp = linear_in({"a", "v"}),
                .vjp = {wrt("a", saves("v"),
                            [](Tensor dy, Tensor v) { return unsqueeze(dy, 1) * unsqueeze(conj(v), 0); }),
                        wrt("v", saves("a"), [](Tensor dy, Tensor a) { return mv(adjoint(a), dy); })},
                .batch = batch_mv,
                .properties = kNoInPlace,
                .overflows_in = {Inside::Products, "partial sums of products"},
                .numerics = {0.5, 1},
                .samples = mv_samples,
                .doc = "Product of a matrix [n,k] and a vector [k]; otherwise as mm."});
}

void define_composite_products() {
  OpTable::add({.schema = "matmul(Tensor a, Tensor b) -> Tensor",
                .shape = ShapeClass::Composite,
                .infer = definition::shape_of_matmul,
                .kernel = {.reference = kernels::reference::product},
                .composite = matmul_composite,
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kNoInPlace,
                .overflows_in = {Inside::Products, "partial sums of products"},
                .numerics = {0.5, 1},
                .samples = matmul_samples,
                .doc = "Product over the last dim of a and the second to last of b; a vector counts as one "
                       "row or column, which the result drops; leading dims broadcast. Otherwise as mm."});
  OpTable::add(
      {.schema = "outer(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Composite,
       .infer = infer_outer,
       .kernel = definition::by_elements({StatedTypes::Result::Promoted},
                                         [](const auto* x, const auto*) { return x[0] * x[1]; }),
       .launch = launch_outer,
       .composite =
           [](Frame& f) { check_vectors(f), f.results[0] = unsqueeze(f.tensor(0), 1) * f.tensor(1); },
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kNoInPlace,
       .promises = {.once = true},
       .overflows_in = {Inside::Products, "products of the parts of complex numbers", true},
       .samples = [](Draw& d) { return vectors(d, kAllTypes, false); },
       .doc = "a[i] * b[j] of two vectors [n] and [m], promoted; bool is `and`. Error shape unless both have "
              "one dim. Real: correctly rounded."});
  OpTable::add(
      {.schema = "dot(Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Composite,
       .infer = shape_of_dot,
       .kernel = {.reference = kernels::reference::product, .stated = {StatedTypes::Result::First, false}},
       .composite =
           [](Frame& f) {
             check_dtypes(f), check_shapes(f, 1, 1), f.results[0] = matmul(f.tensor(0), f.tensor(1));
           },
       .jvp = by_composition(),
       .vjp = by_composition(),
       .properties = kNoInPlace,
       .overflows_in = {Inside::Products, "partial sums of products"},
       .numerics = {0.5, 1},
       .samples = [](Draw& d) { return vectors(d, kNumbers, true); },
       .doc =
           "The sum of a[i] * b[i] of two vectors of one size and dtype; complex numbers are not conjugated. "
           "Otherwise as mm."});
}
}  // namespace

void define_contract() {
  define_products();
  define_composite_products();
}

}  // namespace lamella::ops
