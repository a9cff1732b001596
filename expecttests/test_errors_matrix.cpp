// Error texts of products of matrices and of linear algebra.
#include "refusal.h"

namespace {
using namespace lamella;
using namespace lamella::expect;

TEST(MatrixErrors, Ranks) {
  EXPECT_INLINE(refused("mm", {of({3}), of({3, 3})}), R"(
      [shape] mm: a is f64[3] and b is f64[3,3]; expected ranks 2 and 2)");
  EXPECT_INLINE(refused("bmm", {of({2, 3}), of({3, 3})}), R"(
      [shape] bmm: a is f64[2,3] and b is f64[3,3]; expected ranks 3 and 3)");
  EXPECT_INLINE(refused("mv", {of({2, 3}), of({3, 1})}), R"(
      [shape] mv: a is f64[2,3] and v is f64[3,1]; expected ranks 2 and 1)");
  EXPECT_INLINE(refused("matmul", {of({}), of({3})}), R"(
      [shape] matmul: a is f64[] and b is f64[3]; expected at least one dim each)");
  EXPECT_INLINE(refused("tril", {of({3})}), R"([shape] tril: x is f64[3], expected at least two dims)");
  EXPECT_INLINE(refused("triu", {of({})}), R"([shape] triu: x is f64[], expected at least two dims)");
}

TEST(MatrixErrors, Vectors) {
  EXPECT_INLINE(refused("outer", {of({2, 2}), of({3})}), R"(
      [shape] outer: a is f64[2,2] and b is f64[3]; expected one dim each)");
  EXPECT_INLINE(refused("dot", {of({3}), of({3, 1})}), R"(
      [shape] dot: a is f64[3] and b is f64[3,1]; expected ranks 1 and 1)");
  EXPECT_INLINE(refused("dot", {of({3}), of({2})}), R"(
      [shape] dot: a is f64[3] and b is f64[2]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("dot", {of({3}), of({3}, DType::F32)}), R"(
      [dtype] dot: a is f64[3] and b is f32[3]; expected equal dtypes)");
}

TEST(MatrixErrors, InnerSizes) {
  EXPECT_INLINE(refused("mm", {of({2, 3}), of({2, 3})}), R"(
      [shape] mm: a is f64[2,3] and b is f64[2,3]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("bmm", {of({4, 2, 3}), of({4, 2, 3})}), R"(
      [shape] bmm: a is f64[4,2,3] and b is f64[4,2,3]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("mv", {of({2, 3}), of({2})}), R"(
      [shape] mv: a is f64[2,3] and v is f64[2]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("matmul", {of({2, 3}), of({2})}), R"(
      [shape] matmul: a is f64[2,3] and b is f64[2]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("matmul", {of({3}), of({2})}), R"(
      [shape] matmul: a is f64[3] and b is f64[2]: inner sizes 3 and 2 differ; expected equal ones)");
  EXPECT_INLINE(refused("matmul", {of({5, 2, 3}), of({5, 2, 3})}), R"(
      [shape] matmul: a is f64[5,2,3] and b is f64[5,2,3]: inner sizes 3 and 2 differ; expected equal \
      ones)");
}

TEST(MatrixErrors, Batches) {
  EXPECT_INLINE(refused("bmm", {of({4, 2, 3}), of({5, 3, 2})}), R"(
      [shape] bmm: a is f64[4,2,3] and b is f64[5,3,2]: batch sizes differ; expected equal ones)");
  EXPECT_INLINE(refused("matmul", {of({4, 2, 3}), of({5, 3, 2})}), R"(
      [broadcast] matmul: a is f64[4,2,3] and b is f64[5,3,2]: batch sizes 4 and 5 do not broadcast; \
      expected equal sizes or 1)");
}

TEST(MatrixErrors, DTypes) {
  EXPECT_INLINE(refused("mm", {of({2, 2}), of({2, 2}, DType::F32)}), R"(
      [dtype] mm: a is f64[2,2] and b is f32[2,2]; expected equal dtypes)");
  EXPECT_INLINE(refused("mm", {of({2, 2}, DType::Bool), of({2, 2}, DType::Bool)}), R"(
      [dtype] mm: a is bool[2,2], expected a number's dtype)");
  EXPECT_INLINE(refused("bmm", {of({1, 2, 2}), of({1, 2, 2}, DType::F32)}), R"(
      [dtype] bmm: a is f64[1,2,2] and b is f32[1,2,2]; expected equal dtypes)");
  EXPECT_INLINE(refused("mv", {of({2, 2}, DType::C128), of({2})}), R"(
      [dtype] mv: a is c128[2,2] and v is f64[2]; expected equal dtypes)");
  EXPECT_INLINE(refused("matmul", {of({2, 2}), of({2, 2}, DType::F32)}), R"(
      [dtype] matmul: a is f64[2,2] and b is f32[2,2]; expected equal dtypes)");
  EXPECT_INLINE(refused("matmul", {of({2}), of({2}, DType::F32)}), R"(
      [dtype] matmul: a is f64[2] and b is f32[2]; expected equal dtypes)");
}

TEST(MatrixErrors, Cholesky) {
  EXPECT_INLINE(refused("linalg_cholesky", {of({3})}), R"(
      [shape] linalg_cholesky: x is f64[3], expected square matrices [.., n, n])");
  EXPECT_INLINE(refused("linalg_cholesky", {of({2, 3})}), R"(
      [shape] linalg_cholesky: x is f64[2,3], expected square matrices [.., n, n])");
  EXPECT_INLINE(refused("linalg_cholesky", {of({2, 2}, DType::I64)}), R"(
      [dtype] linalg_cholesky: x is i64[2,2], expected f32, f64, c64 or c128)");
  EXPECT_INLINE(refused("linalg_cholesky", {of({2, 2}, DType::F16)}), R"(
      [dtype] linalg_cholesky: x is f16[2,2], expected f32, f64, c64 or c128)");
  EXPECT_INLINE(refused("linalg_cholesky", {neg(eye(2, 2, DType::F64))}), R"(
      [value] linalg_cholesky: matrix 0 of x has no positive leading minor 1; expected positive \
      definite x)");
  EXPECT_INLINE(refused("linalg_cholesky", {of({3, 2, 2})}), R"(
      [value] linalg_cholesky: matrix 0 of x has no positive leading minor 2; expected positive \
      definite x)");
  EXPECT_INLINE(refused("cholesky", {of({2, 3})}), R"(
      [shape] cholesky: x is f64[2,3], expected square matrices [.., n, n])");
  EXPECT_INLINE(refused("cholesky", {neg(eye(2, 2, DType::F64))}), R"(
      [value] cholesky: matrix 0 of x has no positive leading minor 1; expected positive definite x)");
}

TEST(MatrixErrors, SolveTriangular) {
  EXPECT_INLINE(refused("linalg_solve_triangular", {of({2, 3}), of({2, 2})}, {{"upper", true}}), R"(
      [shape] linalg_solve_triangular: A is f64[2,3], expected square matrices [.., n, n])");
  EXPECT_INLINE(refused("linalg_solve_triangular", {of({2, 2}), of({3, 2})}, {{"upper", true}}), R"(
      [shape] linalg_solve_triangular: A is f64[2,2] and B is f64[3,2]; expected B with 2 rows)");
  EXPECT_INLINE(
      refused("linalg_solve_triangular", {of({2, 2}), of({2, 3})}, {{"upper", false}, {"left", false}}), R"(
      [shape] linalg_solve_triangular: A is f64[2,2] and B is f64[2,3]; expected B with 2 columns)");
  EXPECT_INLINE(refused("linalg_solve_triangular", {of({2, 2}), of({2})}, {{"upper", true}}), R"(
      [shape] linalg_solve_triangular: A is f64[2,2] and B is f64[2]; expected B with 2 rows)");
  EXPECT_INLINE(refused("linalg_solve_triangular", {of({2, 2}), of({2, 2}, DType::F32)}, {{"upper", true}}),
                R"([dtype] linalg_solve_triangular: A is f64[2,2] and B is f32[2,2]; expected equal dtypes)");
  EXPECT_INLINE(
      refused("linalg_solve_triangular", {of({2, 2}, DType::I64), of({2, 2}, DType::I64)}, {{"upper", true}}),
      R"([dtype] linalg_solve_triangular: A is i64[2,2], expected f32, f64, c64 or c128)");
  EXPECT_INLINE(refused("linalg_solve_triangular", {of({3, 2, 2}), of({2, 2, 2})}, {{"upper", true}}), R"(
      [broadcast] linalg_solve_triangular: A is f64[3,2,2] and B is f64[2,2,2]: batch sizes 3 and 2 do \
      not broadcast; expected equal sizes or 1)");
}
}  // namespace
