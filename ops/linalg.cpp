// Triangles, the Cholesky factor and triangular systems, over the last two dims.
#include "lamella/ops/functions/linalg.h"

#include <algorithm>

#include "lamella/ops/batch.h"
#include "lamella/ops/define.h"
#include "lamella/ops/definitions.h"
#include "lamella/ops/functions/complex.h"
#include "lamella/ops/functions/contract.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/structured.h"

namespace lamella::ops {

namespace {
Tensor adjoint(const Tensor& x) { return conj(transpose(x, -2, -1)); }

void infer_triangle(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  LAMELLA_CHECK(x.rank() >= 2, Shape, "{}: x is {}, expected at least two dims", op_name(f), x);
  infer_same(f, out);
  out.ints = {f.arg<int64_t>(1)};
}

void check_square(const Frame& f, int i) {
  const Tensor& x = f.tensor(i);
  LAMELLA_CHECK(x.rank() >= 2 && x.size(-1) == x.size(-2), Shape,
                "{}: {} is {}, expected square matrices [.., n, n]", op_name(f), arg_name(f, i), x);
}

void check_factorable(const Frame& f, int i) {
  const Tensor& x = f.tensor(i);
  LAMELLA_CHECK(is_inexact(x.dtype()) && itemsize(x.dtype()) > 2, DType,
                "{}: {} is {}, expected f32, f64, c64 or c128", op_name(f), arg_name(f, i), x);
}

void infer_cholesky(const Frame& f, Inferred& out) {
  check_square(f, 0);
  check_factorable(f, 0);
  infer_same(f, out);
  out.ints = {f.arg<bool>(1)};
}

/// The triangle below the diagonal twice, and the diagonal.
Tensor doubled_triangle(const Tensor& x) { return tril(x) + tril(x, -1); }

/// X.tril() and half of the diagonal: the part of a Hermitian matrix X that belongs to a lower factor. That
/// factor's diagonal is real, so that of the diagonal of any other X the real part counts.
Tensor lower_half(const Tensor& x) { return 0.25 * doubled_triangle(x + adjoint(x)); }

/// The transpose of `lower_half`, exactly: the cotangent of a lower factor, evenly on both triangles. It is
/// Hermitian to the last bit: a cotangent that no real diagonal feels leaves no roundoff behind.
Tensor both_triangles(const Tensor& x) {
  const Tensor lower = doubled_triangle(x);
  return 0.25 * (lower + adjoint(lower));
}

/// L lower_half(L^-1 dA L^-H); see Murray, "Differentiation of the Cholesky decomposition" (2016).
Tensor cholesky_jvp(Tensor t, Tensor y, bool upper) {
  const Tensor lower = upper ? adjoint(y) : y;
  const Tensor left = linalg_solve_triangular(lower, t, false);
  const Tensor inner = linalg_solve_triangular(adjoint(lower), left, true, false);
  const Tensor out = matmul(lower, lower_half(inner));
  return upper ? adjoint(out) : out;
}

/// L^-H both_triangles(L^H dL) L^-1.
Tensor cholesky_vjp(Tensor dy, Tensor y, bool upper) {
  const Tensor lower = upper ? adjoint(y) : y;
  const Tensor cotangent = upper ? adjoint(dy) : dy;
  const Tensor inner = both_triangles(matmul(adjoint(lower), cotangent));
  const Tensor left = linalg_solve_triangular(adjoint(lower), inner, true);
  return linalg_solve_triangular(lower, left, false, false);
}

void infer_solve(const Frame& f, Inferred& out) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  const bool left = f.arg<bool>(3);
  check_square(f, 0);
  check_factorable(f, 0);
  LAMELLA_CHECK(a.dtype() == b.dtype(), DType, "{}: A is {} and B is {}; expected equal dtypes", op_name(f),
                a, b);
  LAMELLA_CHECK(b.rank() >= 2 && b.size(left ? -2 : -1) == a.size(-1), Shape,
                "{}: A is {} and B is {}; expected B with {} {}", op_name(f), a, b, a.size(-1),
                left ? "rows" : "columns");
  Dims sizes(b.sizes());
  while (sizes.size() < a.rank()) sizes.insert(0, 1);
  for (int d = 3; d <= a.rank(); ++d) {
    int64_t& size = sizes[sizes.size() - d];
    LAMELLA_CHECK(
        size == a.size(-d) || size == 1 || a.size(-d) == 1, Broadcast,
        "{}: A is {} and B is {}: batch sizes {} and {} do not broadcast; expected equal sizes or 1",
        op_name(f), a, b, a.size(-d), size);
    if (size == 1) size = a.size(-d);
  }
  out.compute = a.dtype();
  out.outs.push_back({sizes, a.dtype()});
  out.ints = {f.arg<bool>(2) == left, f.arg<bool>(4)};  // X A = B is A^T X^T = B^T
}

/// A view with its batch dims broadcast, and transposed if asked.
struct MatrixView {
  Dims sizes, strides;
  View view;
  MatrixView(const Frame& f, const Tensor& t, Ints batch, bool transposed) : sizes(batch) {
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    view = broadcast_view(f, t, sizes, strides);
    const int r = sizes.size();
    if (transposed) {
      std::swap(sizes[r - 1], sizes[r - 2]);
      std::swap(strides[r - 1], strides[r - 2]);
    }
    view.sizes = sizes.data();
    view.strides = strides.data();
  }
  MatrixView(const MatrixView&) = delete;
  MatrixView& operator=(const MatrixView&) = delete;
};

void launch_solve(const Launch& l) {
  const Ints batch = l.outs[0].sizes().first(size_t(l.outs[0].rank() - 2));
  const bool transposed = !l.frame.arg<bool>(3);
  const MatrixView out(l.frame, l.outs[0], batch, transposed),
      a(l.frame, l.frame.tensor(0), batch, transposed), b(l.frame, l.frame.tensor(1), batch, transposed);
  const View ins[] = {a.view, b.view};
  run(l, {&out.view, 1}, ins, l.inferred.ints);
}

/// The lanes are one more batch dim, in front of as many as the operand with more of them has.
void batch_solve(BatchCall& b) {
  const int rank = std::max(b.logical_rank(0), b.logical_rank(1));
  const Frame& f = b.frame;
  b.results[0] = linalg_solve_triangular(b.front_padded(0, rank), b.front_padded(1, rank), f.arg<bool>(2),
                                         f.arg<bool>(3), f.arg<bool>(4));
}

/// The triangle of A that a solve reads.
Tensor triangle(const Tensor& x, bool upper, bool unitriangular) {
  return upper ? triu(x, unitriangular ? 1 : 0) : tril(x, unitriangular ? -1 : 0);
}

Tensor solve_jvp_a(Tensor t, Tensor a, Tensor x, bool upper, bool left, bool unitriangular) {
  const Tensor da = triangle(t, upper, unitriangular);
  return -linalg_solve_triangular(a, left ? matmul(da, x) : matmul(x, da), upper, left, unitriangular);
}

Tensor solve_vjp_b(Tensor dy, Tensor a, bool upper, bool left, bool unitriangular) {
  return linalg_solve_triangular(adjoint(a), dy, !upper, left, unitriangular);
}

Tensor solve_vjp_a(Tensor dy, Tensor a, Tensor x, bool upper, bool left, bool unitriangular) {
  const Tensor db = solve_vjp_b(dy, a, upper, left, unitriangular);
  const Tensor da = left ? matmul(db, adjoint(x)) : matmul(adjoint(x), db);
  return sum_to_size(triangle(-da, upper, unitriangular), a.sizes());
}

constexpr DTypeMask kFactorable = kFloat32And64 | kComplex;

Values triangle_samples(Draw& d) {
  const DType t = d.dtype(kAllTypes);
  const Tensor x = d.tensor(d.shape(2, 3), t);
  return {x, d.anywhere(d.range(0, 4) - 2, std::max(x.size(-1), x.size(-2)))};
}

Values cholesky_samples(Draw& d) {
  const DType t = d.dtype(kFactorable);
  const int64_t n = std::min<int64_t>(d.size_below(4), 9);
  Dims batch = d.one_in(2) ? Dims{d.size()} : Dims{};
  if (!batch.empty() && batch[0] * n * n > d.options().max_numel) batch[0] = 1;
  const Tensor x = d.positive_definite(batch, n, t);
  return {x, d.flag()};
}

Values solve_samples(Draw& d) {
  const DType t = d.dtype(kFactorable);
  const int64_t n = d.size() % 4, m = d.size() % 4;
  const int64_t lanes = d.range(0, 2);
  const uint32_t kind = d.below(4);  // bit 0: A has batch dims, bit 1: B has some
  const bool upper = d.flag(), left = !d.flag(), unit = d.flag();
  const uint32_t two = d.below(8);  // they have two each, and one of each two that are both there may be 1
  Dims of_a{lanes}, of_b{lanes};
  if (two < 3) of_a.push_back(two == 1 ? 1 : 2), of_b.push_back(two == 2 ? 1 : 2);
  const Tensor a = d.triangular(kind & 1 ? of_a : Dims{}, n, t);
  Dims b = kind & 2 ? of_b : Dims{};
  b.push_back(left ? n : m);
  b.push_back(left ? m : n);
  return {a, d.tensor(b, t), upper, left, unit};
}

struct Triangle {
  std::string_view schema;
  InferFn infer;  ///< said in each row, for its docs
  std::string_view kernel;
  std::vector<Formula> vjp;
  std::string_view doc;
};

void define_triangle(const Triangle& t) {
  OpTable::add({.schema = t.schema,
                .shape = ShapeClass::Linalg,
                .infer = t.infer,
                .kernel = kernel(t.kernel),
                .jvp = linear_in({"x"}),
                .vjp = t.vjp,
                .properties = kLinear,
                .promises = {.once = true},
                .samples = triangle_samples,
                .doc = t.doc});
}

void define_triangles() {
  define_triangle(
      {.schema = "tril(Tensor x, int diagonal=0) -> Tensor",
       .infer = infer_triangle,
       .kernel = "tril",
       .vjp = {wrt("x", saves("diagonal"), [](Tensor dy, int64_t diagonal) { return tril(dy, diagonal); })},
       .doc = "Elements [.., i, j] of x with j - i <= diagonal, zero elsewhere. Error shape below two dims. "
              "Exact."});
  define_triangle(
      {.schema = "triu(Tensor x, int diagonal=0) -> Tensor",
       .infer = infer_triangle,
       .kernel = "triu",
       .vjp = {wrt("x", saves("diagonal"), [](Tensor dy, int64_t diagonal) { return triu(dy, diagonal); })},
       .doc = "Elements [.., i, j] of x with j - i >= diagonal, zero elsewhere. Error shape below two dims. "
              "Exact."});
}

void define_cholesky() {
  OpTable::add({.schema = "linalg_cholesky(Tensor x, *, bool upper=False) -> Tensor",
                .shape = ShapeClass::Linalg,
                .infer = infer_cholesky,
                .kernel = kernel("cholesky"),
                .jvp = {wrt("x", saves("result", "upper"),
                            [](Tensor t, Tensor y, bool upper) { return cholesky_jvp(t, y, upper); })},
                .vjp = {wrt("x", saves("result", "upper"),
                            [](Tensor dy, Tensor y, bool upper) { return cholesky_vjp(dy, y, upper); })},
                .properties = kNoInPlace | kValueErrors | kSymmetricInput,
                .samples = cholesky_samples,
                .doc = "Lower (or upper) triangular L with L L^H = x (or L^H L = x) for Hermitian positive "
                       "definite x [.., n, n]; reads one triangle. Derivatives are over Hermitian matrices: "
                       "the cotangent is spread evenly over both triangles. Errors: shape, dtype, value when "
                       "a matrix is not positive definite. Backward error at most n * 2^-p * |x|."});
  OpTable::add({.schema = "cholesky(Tensor x, bool upper=False) -> Tensor",
                .shape = ShapeClass::Linalg,
                .infer = definition::shape_of_cholesky,
                .kernel = {.reference = kernels::named("cholesky").reference},
                .composite =
                    [](Frame& f) {
                      under_own_name(f, "linalg_cholesky",
                                     [&] { f.results[0] = linalg_cholesky(f.tensor(0), f.arg<bool>(1)); });
                    },
                .jvp = by_composition(),
                .vjp = by_composition(),
                .properties = kNoInPlace | kValueErrors | kSymmetricInput,
                .samples = cholesky_samples,
                .doc = "linalg_cholesky under its older name."});
}
}  // namespace

void define_linalg() {
  define_triangles();
  define_cholesky();
  OpTable::add({.schema = "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool "
                          "unitriangular=False) -> Tensor",
                .shape = ShapeClass::Linalg,
                .infer = infer_solve,
                .kernel = kernel("solve_triangular"),
                .launch = launch_solve,
                .jvp = {wrt("A", saves("A", "result", "upper", "left", "unitriangular"),
                            [](Tensor t, Tensor a, Tensor x, bool upper, bool left, bool unit) {
                              return solve_jvp_a(t, a, x, upper, left, unit);
                            }),
                        wrt("B", saves("A", "upper", "left", "unitriangular"),
                            [](Tensor t, Tensor a, bool upper, bool left, bool unit) {
                              return linalg_solve_triangular(a, t, upper, left, unit);
                            })},
                .vjp = {wrt("A", saves("A", "result", "upper", "left", "unitriangular"),
                            [](Tensor dy, Tensor a, Tensor x, bool upper, bool left, bool unit) {
                              return solve_vjp_a(dy, a, x, upper, left, unit);
                            }),
                        wrt("B", saves("A", "B.sizes", "upper", "left", "unitriangular"),
                            [](Tensor dy, Tensor a, Ints sizes, bool upper, bool left, bool unit) {
                              return sum_to_size(solve_vjp_b(dy, a, upper, left, unit), sizes);
                            })},
                .batch = batch_solve,
                .properties = kNoInPlace,
                .overflows_in = {Inside::Powers, "the elimination"},
                .samples = solve_samples,
                .doc = "X with A X = B (X A = B unless left) for triangular A [.., n, n], of which only the "
                       "named triangle is read, without the diagonal when unitriangular; batch dims "
                       "broadcast. A zero on the diagonal gives inf or NaN. Errors: shape, dtype, broadcast. "
                       "Backward error at most n * 2^-p * |A|."});
}

}  // namespace lamella::ops
