// Oracle: triangles of matrices, the Cholesky factor and triangular systems, over the last two dims.
#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

/// Dense row-major scratch matrix.
template <class T> class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns) : columns_(columns), values_(size_t(rows * columns), T(0)) {}
  T& operator()(int64_t i, int64_t j) { return values_[size_t(i * columns_ + j)]; }

 private:
  int64_t columns_;
  std::vector<T> values_;
};

/// Where element (i, j) lies within a matrix of v.
int64_t element_offset(const View& v, int64_t i, int64_t j) {
  return i * v.strides[v.rank - 2] + j * v.strides[v.rank - 1];
}

View batch_of(const View& v) { return leading(v, v.rank - 2); }

template <class Keep> void keep_triangle(const KernelCall& call, Keep keep) {
  const View &out = call.outs[0], &in = call.ins[0];
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    const int64_t below_to_above = at[out.rank - 1] - at[out.rank - 2];
    if (keep(below_to_above)) copy_element(out, at.offset(out), in, at.offset(in));
    else zero_element(out, at.offset(out));
  }
}

/// The lower triangle at `offset` of x, or the conjugate transpose of the upper one, one precision up.
template <class W> Matrix<wider_t<W>> lower_triangle(const View& x, int64_t offset, bool upper) {
  const int64_t n = x.sizes[x.rank - 1];
  Matrix<wider_t<W>> a(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const int64_t from = upper ? element_offset(x, j, i) : element_offset(x, i, j);
      const auto value = cast<wider_t<W>>(load<W>(x, offset + from, x.dtype));
      a(i, j) = upper ? conjugate(value) : value;
    }
  }
  return a;
}

/// Overwrites the lower triangle of `a` with L, where a = L L^H; returns the first leading minor that is
/// not positive, or 0.
template <class T> int64_t factor(Matrix<T>& a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    auto pivot = real_part(a(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= real_part(times(a(j, k), conjugate(a(j, k))));
    if (!(pivot > 0)) return j + 1;
    const auto diagonal = math::sqrt(pivot);
    a(j, j) = T(diagonal);
    for (int64_t i = j + 1; i < n; ++i) {
      T value = a(i, j);
      for (int64_t k = 0; k < j; ++k) value = minus(value, times(a(i, k), conjugate(a(j, k))));
      a(i, j) = value / diagonal;
    }
  }
  return 0;
}

/// Writes L, or L^H for upper, with zeros in the other triangle.
template <class W, class T>
void store_factor(const View& out, int64_t offset, Matrix<T>& factor, bool upper) {
  const int64_t n = out.sizes[out.rank - 1];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const T value = upper ? conjugate(factor(j, i)) : factor(i, j);
      const bool inside = upper ? j >= i : j <= i;
      store(out, offset + element_offset(out, i, j), inside ? cast<W>(value) : W(0));
    }
  }
}

/// X of A X = B for one matrix, by substitution, one precision up.
template <class W> void solve(const View& out, int64_t x_at, const View& a, int64_t a_at, const View& b,
                              int64_t b_at, bool upper, bool unitriangular) {
  using Wide = wider_t<W>;
  const int64_t n = out.sizes[out.rank - 2], m = out.sizes[out.rank - 1];
  const auto element = [&](const View& v, int64_t offset) {
    return cast<Wide>(load<W>(v, offset, out.dtype));
  };
  Matrix<Wide> x(n, m);
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = upper ? n - 1 - step : step;
      const int64_t first = upper ? i + 1 : 0, last = upper ? n : i;
      Wide value = element(b, b_at + element_offset(b, i, j));
      for (int64_t k = first; k < last; ++k) {
        value = minus(value, times(element(a, a_at + element_offset(a, i, k)), x(k, j)));
      }
      x(i, j) = unitriangular ? value : divide(value, element(a, a_at + element_offset(a, i, i)));
    }
    for (int64_t i = 0; i < n; ++i) store(out, x_at + element_offset(out, i, j), cast<W>(x(i, j)));
  }
}

void tril(const KernelCall& call) {
  keep_triangle(call, [&](int64_t diagonal) { return diagonal <= call.ints[0]; });
}

void triu(const KernelCall& call) {
  keep_triangle(call, [&](int64_t diagonal) { return diagonal >= call.ints[0]; });
}

void cholesky(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0];
  const bool upper = call.ints[0] != 0;
  visit_supported("cholesky", x.dtype, [&]<Inexact W>(type_tag<W>) {
    std::vector<Matrix<wider_t<W>>> factors;
    for (Odometer at(sizes_of(batch_of(x))); at.more(); at.next()) {
      auto a = lower_triangle<W>(x, at.offset(batch_of(x)), upper);
      const int64_t minor = factor(a, x.sizes[x.rank - 1]);
      LAMELLA_CHECK(minor == 0, Value,
                    "matrix {} of {} has no positive leading minor {}; expected positive definite x",
                    factors.size(), Argument{"x"}, minor);
      factors.push_back(std::move(a));
    }
    size_t matrix = 0;
    for (Odometer at(sizes_of(batch_of(out))); at.more(); at.next()) {
      store_factor<W>(out, at.offset(batch_of(out)), factors[matrix++], upper);
    }
  });
}

void solve_triangular(const KernelCall& call) {
  const View &out = call.outs[0], &a = call.ins[0], &b = call.ins[1];
  const bool upper = call.ints[0] != 0, unitriangular = call.ints[1] != 0;
  visit_supported("solve_triangular", out.dtype, [&]<Inexact W>(type_tag<W>) {
    for (Odometer at(sizes_of(batch_of(out))); at.more(); at.next()) {
      solve<W>(out, at.offset(batch_of(out)), a, at.offset(batch_of(a)), b, at.offset(batch_of(b)), upper,
               unitriangular);
    }
  });
}

}  // namespace

Texts linalg_texts() {
  static constexpr Text kTexts[] = {
      {"tril", tril},
      {"triu", triu},
      {"cholesky", cholesky},
      {"solve_triangular", solve_triangular},
  };
  return kTexts;
}

}  // namespace lamella::kernels::reference
