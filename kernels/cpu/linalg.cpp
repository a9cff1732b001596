// cholesky and solve_triangular: plain kernels on gapless copies, in f32 (f16 and bf16 too), f64, c64, c128.
#include <memory>
#include <utility>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

template <class T> T conj_of(T x) {
  if constexpr (is_complex_type<T>) return std::conj(x);
  else return x;
}
template <class T> auto real_of(T x) {
  if constexpr (is_complex_type<T>) return x.real();
  else return x;
}
// std::complex products check for infinities, at three times the cost.
template <class T> T times(T a, T b) {
  if constexpr (is_complex_type<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else return a * b;
}

template <class T> T sum_of_eight(const T (&acc)[8]) {
  return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

/// As many products as there are p, added as dot adds them: without a loop they stay in registers.
template <class T, size_t... p> T dot_of(const T* a, const T* b, std::index_sequence<p...>) {
  T acc[8] = {};
  ((acc[p] += times(a[p], conj_of(b[p]))), ...);
  return sum_of_eight(acc);
}
template <class T> T short_dot(const T* a, const T* b, int64_t n) {
  switch (n) {
    case 0: return T(0);
    case 1: return dot_of(a, b, std::make_index_sequence<1>{});
    case 2: return dot_of(a, b, std::make_index_sequence<2>{});
    case 3: return dot_of(a, b, std::make_index_sequence<3>{});
    case 4: return dot_of(a, b, std::make_index_sequence<4>{});
    case 5: return dot_of(a, b, std::make_index_sequence<5>{});
    case 6: return dot_of(a, b, std::make_index_sequence<6>{});
    default: return dot_of(a, b, std::make_index_sequence<7>{});
  }
}

// Sum of a[p] conj(b[p]); eight sums at once, for the processor's sake.
template <class T> T dot(const T* a, const T* b, int64_t n) {
  static_assert(kUsualThresholds.dot_width == 8);
  if (n < kUsualThresholds.dot_width) return short_dot(a, b, n);
  T acc[8] = {};
  int64_t p = 0;
  for (; p + 8 <= n; p += 8) {
    for (int j = 0; j < 8; ++j) acc[j] += times(a[p + j], conj_of(b[p + j]));
  }
  for (; p < n; ++p) acc[p % 8] += times(a[p], conj_of(b[p]));
  return sum_of_eight(acc);
}

// l holds the lower triangle of A by rows and becomes L, column by column: the elements of a column do not
// wait for each other, those of a row do. Returns the order of the first leading minor that is not positive,
// or 0.
template <class T> int64_t factor(T* l, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T* const row = l + i * n;
    const auto pivot = real_of(row[i]) - real_of(dot(row, row, i));
    if (!(pivot > 0)) return i + 1;
    row[i] = T(std::sqrt(pivot));
    const auto root = real_of(row[i]);
    for (int64_t j = i + 1; j < n; ++j) {
      T* const below = l + j * n;
      below[i] = (below[i] - dot(below, row, i)) / root;
      row[j] = T(0);
    }
  }
  return 0;
}

// The last two dims of a view, in bytes, and the plan over the others.
struct Matrices {
  int64_t row, col;
  explicit Matrices(const View& v) : row(line_step(v, v.rank - 2)), col(line_step(v, v.rank - 1)) {}
};

template <class F> void visit_inexact(const char* kernel, DType dtype, F&& f) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::F32: return f(type_tag<float>{});
    case DType::F64: return f(type_tag<double>{});
    case DType::C64: return f(type_tag<c64>{});
    case DType::C128: return f(type_tag<c128>{});
    default: fail_dtype(kernel, dtype);
  }
}

// Where the matrix of a batch with this row-major index begins, in bytes.
int64_t offset_of(const View& v, int64_t number) {
  int64_t offset = 0;
  for (int d = v.rank - 3; d >= 0; number /= v.sizes[d--]) offset += number % v.sizes[d] * v.strides[d];
  return offset * itemsize(v.dtype);
}

// What is written where a later matrix is refused is thrown away (see KernelCall).
template <class T> void cholesky_of(const View& out, const View& in, bool upper) {
  const int64_t n = out.sizes[out.rank - 1], area = n * n, item = sizeof(T);
  const Mover get = make_mover(in.dtype, dtype_of<T>), put = make_mover(dtype_of<T>, out.dtype);
  const Matrices from(in), to(out);
  const bool in_place = !upper && out.dtype == dtype_of<T> && to.col == item && to.row == n * item;
  // The upper triangle, read as a conjugate transpose, is a lower one: A = U^H U with U = L^H.
  const auto factor_one = [&](T* l, int64_t number, const char* x) {
    move_block(get, reinterpret_cast<char*>(l), item, n * item, x, upper ? from.row : from.col,
               upper ? from.col : from.row, n, n);
    if (upper) {
      for (int64_t i = 0; i < area; ++i) l[i] = conj_of(l[i]);
    }
    const int64_t minor = factor(l, n);
    LAMELLA_CHECK(minor == 0, Value,
                  "matrix {} of {} has no positive leading minor {}; expected positive definite x", number,
                  Argument{"x"}, minor);
    if (upper) {
      for (int64_t i = 0; i < area; ++i) l[i] = conj_of(l[i]);
    }
  };
  for_each_range(out.numel() / area, cost::of(area, cost::of(n, kCosts.solved)), [&](int64_t a, int64_t b) {
    const auto room = in_place ? nullptr : std::make_unique_for_overwrite<T[]>(size_t(area));
    for (int64_t number = a; number < b; ++number) {
      char* const y = out.as<char>() + offset_of(out, number);
      T* const l = in_place ? reinterpret_cast<T*>(y) : room.get();
      factor_one(l, number, in.as<char>() + offset_of(in, number));
      if (in_place) continue;
      move_block(put, y, upper ? to.row : to.col, upper ? to.col : to.row, reinterpret_cast<const char*>(l),
                 item, n * item, n, n);
    }
  });
}

// Row by row, from the end that has one unknown; `x` holds B and becomes X.
template <class T> void substitute(const T* a, T* x, int64_t n, int64_t m, bool upper, bool unit) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    T* row = x + i * m;
    for (int64_t p = upper ? i + 1 : 0; p < (upper ? n : i); ++p) {
      const T factor = a[i * n + p];
      const T* known = x + p * m;
      for (int64_t j = 0; j < m; ++j) row[j] -= times(factor, known[j]);
    }
    if (unit) continue;
    const T pivot = a[i * n + i];
    for (int64_t j = 0; j < m; ++j) row[j] = row[j] / pivot;
  }
}

template <class T> void solve_of(const View& out, const View& a, const View& b, bool upper, bool unit) {
  const int64_t n = out.sizes[out.rank - 2], m = out.sizes[out.rank - 1], item = sizeof(T);
  const Mover get = make_mover(out.dtype, dtype_of<T>), put = make_mover(dtype_of<T>, out.dtype);
  const Matrices a_steps(a), b_steps(b), to(out);
  const int batch_dims = out.rank - 2;
  const IterPlan all =
      plan_where(std::initializer_list<View>{out, a, b}, [=](int d) { return d >= batch_dims; });
  struct Room {
    std::vector<T> left, right;
  };
  const auto make = [n, m] { return Room{std::vector<T>(size_t(n * n)), std::vector<T>(size_t(n * m))}; };
  const int64_t each = cost::of(n * m, cost::of(n, kCosts.solved));
  for_each_part_in(all, each, of_lines(), make, [&](const IterPlan& plan, Room& room) {
    char* const l = reinterpret_cast<char*>(room.left.data());
    char* const r = reinterpret_cast<char*>(room.right.data());
    for_each_outer(plan, 0, [&](char* const* at) {
      move_block(get, l, item, n * item, at[1], a_steps.col, a_steps.row, n, n);
      move_block(get, r, item, m * item, at[2], b_steps.col, b_steps.row, m, n);
      substitute(room.left.data(), room.right.data(), n, m, upper, unit);
      move_block(put, at[0], to.col, to.row, r, item, m * item, m, n);
    });
  });
}

}  // namespace

namespace cpu {
namespace {

void cholesky(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  visit_inexact("cholesky", out.dtype, [&](auto tag) {
    if (in.dtype != out.dtype) fail_dtype("cholesky", in.dtype);
    if (out.numel() != 0) cholesky_of<typename decltype(tag)::type>(out, in, call.ints[0] != 0);
  });
}

void solve_triangular(const KernelCall& call) {
  const View &out = call.outs[0], &a = call.ins[0], &b = call.ins[1];
  visit_inexact("solve_triangular", out.dtype, [&](auto tag) {
    if (a.dtype != out.dtype || b.dtype != out.dtype) fail_dtype("solve_triangular", a.dtype);
    if (out.numel() == 0) return;
    solve_of<typename decltype(tag)::type>(out, a, b, call.ints[0] != 0, call.ints[1] != 0);
  });
}
}  // namespace

Texts linalg_kernels() {
  static constexpr Text kTexts[] = {{"cholesky", cholesky}, {"solve_triangular", solve_triangular}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
