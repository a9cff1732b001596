// Constraints of reductions, scans, products and factorisations.
#include <algorithm>

#include "lamella/verify/case/case.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/oracle/constraints_call.h"

namespace lamella::verify {

namespace {

constexpr int kAny = 64;

/// torch.amax: what is reduced has an element to choose. `one`: dim is a single dim.
Constraint something_to_choose(bool one) {
  return [=](Questioned& q) {
    const Tensor x = q.tensor("x");
    Dims dims;
    if (q.given("dim")) dims = one ? Dims{q.integer("dim")} : q.integers("dim");
    bool empty = dims.empty() && x.numel() == 0;
    for (const int64_t d : dims)
      if (const auto at = place(d, x.rank()); at && x.rank() > 0) empty |= x.size(*at) == 0;
    if (empty) q.object({ErrorCode::Shape}, {"x", "dim"});
  };
}

/// Whether `size` broadcasts to x.
void transposes_broadcasting(Questioned& q) {
  const Tensor x = q.tensor("x");
  const Dims size = q.integers("size");
  bool fits = size.size() <= x.rank();
  for (int d = 1; d <= size.size() && fits; ++d) {
    const int64_t s = size[size.size() - d];
    fits = s == x.size(-d) || s == 1;
  }
  if (!fits) q.object({ErrorCode::Shape}, {"size"});
}

/// torch.matmul: inner sizes agree; leading ones broadcast.
void products(Questioned& q) {
  const Tensor a = q.tensor("a"), b = q.tensor("b");
  if (a.rank() == 0 || b.rank() == 0) return q.object({ErrorCode::Shape}, {"a", "b"});
  if (a.size(-1) != b.size(b.rank() == 1 ? 0 : -2)) q.object({ErrorCode::Shape}, {"a", "b"});
  for (int d = 3; d <= std::min(a.rank(), b.rank()); ++d)
    if (a.size(-d) != b.size(-d) && a.size(-d) != 1 && b.size(-d) != 1)
      return q.object({ErrorCode::Broadcast}, {"a", "b"});
}

Constraint square(Name tensor) {
  return [=](Questioned& q) {
    const Tensor x = q.tensor(tensor);
    if (x.rank() < 2 || x.size(-1) != x.size(-2)) q.object({ErrorCode::Shape}, {tensor});
  };
}

/// One matrix, of which one triangle counts: the pivots of L D L^H one after another, in double precision.
/// Refused by a pivot that is clearly no positive number; where a rounding decides, nothing is promised.
/// Zeros that no rounding has touched are refused.
template <class T> void pivots(Questioned& q, const T* at, Ints strides, int64_t n, bool upper, double unit) {
  using Wide = c128;
  const auto entry = [&](int64_t i, int64_t j) {
    const T& v = at[upper ? j * strides[0] + i * strides[1] : i * strides[0] + j * strides[1]];
    if constexpr (is_complex_type<T>) {
      const Wide w(double(v.real()), double(v.imag()));
      return upper ? std::conj(w) : w;
    } else {
      return Wide(double(v));
    }
  };
  std::vector<std::vector<Wide>> l(static_cast<size_t>(n), std::vector<Wide>(static_cast<size_t>(n)));
  std::vector<double> d(static_cast<size_t>(n));
  for (size_t i = 0; i < size_t(n); ++i) {
    double pivot = entry(int64_t(i), int64_t(i)).real(), scale = std::abs(pivot);
    const bool untouched = i == 0;
    for (size_t k = 0; k < i; ++k) {
      Wide sum = entry(int64_t(i), int64_t(k));
      for (size_t m = 0; m < k; ++m) sum -= l[i][m] * d[m] * std::conj(l[k][m]);
      l[i][k] = sum / d[k];
      pivot -= std::norm(l[i][k]) * d[k];
      scale += std::norm(l[i][k]) * d[k];
    }
    d[i] = pivot;
    const double doubt = untouched ? 0 : 1000 * unit * scale;
    if (std::isnan(pivot) || pivot < -doubt || (untouched && pivot == 0))
      return q.object({ErrorCode::Value}, {"x"});
    if (!(pivot > doubt) || std::isinf(scale)) {
      bool exact = pivot == 0;  // small integers with pivots of 1 so far: every order of operations is exact
      for (size_t k = 0; k < i; ++k) exact &= d[k] == 1;
      if (exact) return q.object({ErrorCode::Value}, {"x"});
      return q.open("a rounding decides whether the matrix is positive definite");
    }
  }
}

void positive_definite(Questioned& q) {
  const Tensor x = q.tensor("x");
  if (!q.sees_values() || x.rank() < 2 || x.size(-1) != x.size(-2) || x.numel() == 0) return;
  if (!is_of(x.dtype(), Kinds::Factorable)) return;
  const bool upper = q.flag("upper");
  const int batch = x.rank() - 2;
  const std::vector<int64_t> starts =
      offsets_of(x.sizes().first(size_t(batch)), x.strides().first(size_t(batch)), 0);
  visit_dtype(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if constexpr (is_complex_type<T> || std::is_floating_point_v<T>)
      for (const int64_t start : starts)
        pivots(q, static_cast<const T*>(x.raw_data()) + start, x.strides().last(2), x.size(-1), upper,
               unit_roundoff(x.dtype()));
  });
}

/// torch.linalg.solve_triangular: B has as many rows (columns unless left) as A, batches broadcast.
void systems(Questioned& q) {
  const Tensor a = q.tensor("A"), b = q.tensor("B");
  if (b.rank() < 2) return q.object({ErrorCode::Shape}, {"B"});
  if (a.rank() < 2) return;
  if (b.size(q.flag("left") ? -2 : -1) != a.size(-1)) q.object({ErrorCode::Shape}, {"A", "B"});
  for (int d = 3; d <= std::min(a.rank(), b.rank()); ++d)
    if (a.size(-d) != b.size(-d) && a.size(-d) != 1 && b.size(-d) != 1)
      return q.object({ErrorCode::Broadcast}, {"A", "B"});
}

/// torch.nn.functional.layer_norm: the last sizes of x, one at least; weight and bias have them.
void normalised(Questioned& q) {
  const Tensor x = q.tensor("x");
  const Dims shape = q.integers("normalized_shape");
  bool fits = !shape.empty() && shape.size() <= x.rank();
  for (int d = 1; d <= shape.size() && fits; ++d) fits = shape[shape.size() - d] == x.size(-d);
  if (!fits) q.object({ErrorCode::Shape}, {"normalized_shape"});
  for (const Name parameter : {Name("weight"), Name("bias")}) {
    const Tensor p = q.tensor(parameter);
    if (!p.defined()) continue;
    if (!std::ranges::equal(p.sizes(), Ints(shape))) q.object({ErrorCode::Shape}, {parameter});
    if (!is_of(p.dtype(), Kinds::Floating)) q.object({ErrorCode::DType}, {parameter});
    else if (p.dtype() != x.dtype()) q.open("parameters of another dtype than x are documented nowhere");
  }
  const double eps = std::get<double>(q.value("eps"));
  if (!(eps < 1e30 && eps > -1e30)) q.open("PyTorch takes any eps, our row only finite ones");
}

/// torch.var takes any number; of those that are not finite `doc` says that they are refused.
void finite_correction(Questioned& q) {
  if (!q.given("correction")) return;
  const double correction = std::get<double>(q.value("correction"));
  if (correction - correction != 0) q.object({ErrorCode::Value}, {"correction"});
}

/// torch.roll: as many shifts as dims; one without dims.
void shift_for_each_dim(Questioned& q) {
  const bool some = q.given("dims");
  const Dims dims = some ? q.integers("dims") : Dims();
  if (q.integers("shifts").size() != (some ? dims.size() : 1))
    q.object({ErrorCode::Shape}, {"shifts", "dims"});
  const int64_t rank = std::max(q.tensor("x").rank(), 1);
  for (const int64_t d : dims)
    if (d < -rank || d >= rank) q.object({ErrorCode::DimOutOfRange}, {"dims"});
}

}  // namespace

Rows matrix_rows() {
  const Constraint dims = distinct_dims("dim", "x"), dim = one_dim("dim", "x");
  const Constraint equal = same_dtype("a", "b"), numbers = of_kind("a", Kinds::NotBool);
  const auto shaped = [](int rank) { return of_rank("a", rank, rank); };
  const Constraint scans = dtype_of_kind("dtype", "", Kinds::NotBool);
  const Constraint matrices[] = {square("x"), of_kind("x", Kinds::Factorable), positive_definite};
  const Constraint norm[] = {of_kind("x", Kinds::Floating), normalised};
  return {
      {"sum", {dims}},
      {"prod", {dims}},
      {"mean", {dims, dtype_of_kind("dtype", "x", Kinds::Inexact)}},
      {"var", {dims, of_kind("x", Kinds::Inexact), finite_correction}},
      {"std", {dims, of_kind("x", Kinds::Inexact), finite_correction}},
      {"sum_to_size", {transposes_broadcasting}},
      {"amax", {dims, of_kind("x", Kinds::Real), something_to_choose(false)}},
      {"amin", {dims, of_kind("x", Kinds::Real), something_to_choose(false)}},
      {"argmax", {dim, of_kind("x", Kinds::RealNotBool), something_to_choose(true)}},
      {"cumsum", {dim, scans}},
      {"cumprod", {dim, scans}},
      {"softmax", {dim, dtype_of_kind("dtype", "x", Kinds::Floating)}},
      {"log_softmax", {dim, dtype_of_kind("dtype", "x", Kinds::Floating)}},
      {"sort", {dim, of_kind("x", Kinds::Real)}},
      {"roll", {shift_for_each_dim}},
      {"flip", {distinct_dims("dims", "x")}},
      {"mm", {shaped(2), of_rank("b", 2, 2), equal_sizes("a", -1, "b", 0), equal, numbers}},
      {"mv", {shaped(2), of_rank("v", 1, 1), equal_sizes("a", -1, "v", 0), same_dtype("a", "v"), numbers}},
      {"bmm",
       {shaped(3), of_rank("b", 3, 3), equal_sizes("a", 2, "b", 1), equal_sizes("a", 0, "b", 0), equal,
        numbers}},
      {"matmul", {products, equal, numbers}},
      {"outer", {of_rank("a", 1, 1), of_rank("b", 1, 1)}},
      {"dot", {of_rank("a", 1, 1), of_rank("b", 1, 1), equal_sizes("a", 0, "b", 0), equal, numbers}},
      {"tril", {of_rank("x", 2, kAny)}},
      {"triu", {of_rank("x", 2, kAny)}},
      {"linalg_cholesky", {matrices[0], matrices[1], matrices[2]}},
      {"cholesky", {matrices[0], matrices[1], matrices[2]}},
      {"linalg_solve_triangular",
       {square("A"), of_kind("A", Kinds::Factorable), same_dtype("A", "B"), systems}},
      {"layer_norm", {norm[0], norm[1]}},
      {"native_layer_norm", {norm[0], norm[1]}},
  };
}

}  // namespace lamella::verify
