// A plug-in that adds a layout: coordinates and values of what is not zero (COO). Products with dense
// matrices, transposes, scaling and sums are done on the values alone; everything else works on the strided
// form, counted.
#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/plugin.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/layout.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/law.h"

namespace {
using namespace lamella;

int coo_key = -1;

struct Coo : TensorLayout {
  const Tensor indices, values;  ///< i64[n, rank] and [n], no index twice
  Coo(Tensor at, Tensor v) : TensorLayout(coo_key), indices(std::move(at)), values(std::move(v)) {}
  std::string str() const override { return format(" in coo with {} values", values.numel()); }
};

Tensor coo(const Tensor& indices, const Tensor& values, Ints sizes) {
  return make_of_layout(sizes, values.dtype(), values.device(),
                        Ref<TensorLayout>::adopt(new Coo(indices, values)));
}
const Coo* coo_of(const Tensor& t) { return layout_at<Coo>(t, coo_key); }
Tensor column(const Coo& a, int64_t d) { return select(a.indices, 1, d); }

/// Positions in row-major order.
Tensor flat(const Tensor& indices, Ints sizes) {
  Tensor at = zeros({indices.size(0)}, DType::I64);
  for (size_t d = 0; d < sizes.size(); ++d) at = at * Scalar(sizes[d]) + select(indices, 1, int64_t(d));
  return at;
}

Tensor dense(const Tensor& t) {
  const Coo& a = *coo_of(t);
  return reshape(scatter_add(zeros({t.numel()}, t.dtype()), 0, flat(a.indices, t.sizes()), a.values),
                 t.sizes());
}

Tensor sparse(const Tensor& x) {
  const Tensor at = nonzero(x);
  return coo(at, index_select(reshape(x, {-1}), 0, flat(at, x.sizes())), x.sizes());
}

/// A sparse matrix times a dense one: as many products as there are values, for each column.
Tensor product(const Tensor& a, const Tensor& b) {
  const Coo& s = *coo_of(a);
  const Tensor terms = unsqueeze(s.values, 1) * index_select(b, 0, column(s, 1));
  return index_add(zeros({a.size(0), b.size(1)}, terms.dtype()), 0, column(s, 0), terms);
}

void mm_cell(Frame& f, int key) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  const bool fits = a.rank() == 2 && b.rank() == 2 && a.size(1) == b.size(0) && a.dtype() == b.dtype();
  if (!fits || (coo_of(a) && coo_of(b))) return not_mine(f, key);
  f.results[0] = coo_of(a) ? product(a, b) : transpose(product(transpose(b, 0, 1), transpose(a, 0, 1)), 0, 1);
}

void transpose_cell(Frame& f, int) {
  const Tensor& x = f.tensor(0);
  int64_t a = f.arg<int64_t>(1), b = f.arg<int64_t>(2);
  LAMELLA_CHECK(std::max(a, b) < x.rank() && std::min(a, b) >= -x.rank(), IndexOutOfRange,
                "transpose: dims {} and {} of {}; expected dims that it has", a, b, x);
  a = (a + x.rank()) % x.rank(), b = (b + x.rank()) % x.rank();
  Tensors columns;
  Dims sizes(x.sizes());
  for (int64_t d = 0; d < x.rank(); ++d) columns.push_back(column(*coo_of(x), d == a ? b : d == b ? a : d));
  std::swap(sizes[int(a)], sizes[int(b)]);
  f.results[0] = coo(stack(columns, 1), coo_of(x)->values, sizes);
}

/// Operators that keep zeros, of one sparse tensor: on the values.
void on_values(Frame& f, int key) {
  for (const uint8_t i : f.op->tensor_params)
    if (i > 0 && f.tensor(i).defined() && f.tensor(i).numel() != 1) return not_mine(f, key);
  if (!coo_of(f.tensor(0))) return not_mine(f, key);
  const Tensor x = f.tensor(0);
  FrameCopy lower(f);
  lower.set(0, coo_of(x)->values);
  Frame of_values = lower.into(f.results, f.list);
  call(of_values);
  f.results[0] = coo(coo_of(x)->indices, f.results[0], x.sizes());
}

/// Laws of its own: the same program on strided tensors gives the same, and no product is done on those.
verify::Verdict as_strided(verify::Case& c) {
  const Tensor m = to(gt(c.draw.tensor({4, 3}, DType::F32), scalar_tensor(0.5, DType::F32)), DType::F64) *
                   Scalar(int64_t(1 + c.draw.below(3)));
  const Tensor x = c.draw.tensor({3, 2}, DType::F64, Domain::Any);
  const Tensor s = to_layout(m, "coo");
  const int64_t before = strided_fallbacks();
  const auto f = [](const Tensor& a) { return [a](const Tensor& v) { return sum(mm(a, v) * mm(a, v)); }; };
  constexpr auto kRounding = verify::Agreement::Rounding;  // sums in another order
  std::string d = verify::disagrees(mm(s, x), mm(m, x), kRounding);
  if (d.empty()) d = verify::disagrees(grad(f(s))(x), grad(f(m))(x), kRounding);
  if (d.empty() && strided_fallbacks() != before) d = "a product was done on strided tensors";
  return d.empty() ? verify::Verdict::pass() : verify::Verdict::fail(d, "");
}
}  // namespace

LAMELLA_PLUGIN() {
  coo_key = add_tensor_type({.name = "coo", .to_strided = dense, .from_strided = sparse});
  OpTable::set("mm", coo_key, {"sparse", mm_cell});
  OpTable::set("transpose", coo_key, {"sparse", transpose_cell});
  for (const char* name : {"neg", "conj_physical", "abs"})
    if (OpTable::current().find(name)) OpTable::set(name, coo_key, {"values", on_values});
  verify::add_law({.number = 1003,
                   .id = "sparse_as_strided",
                   .group = "layouts",
                   .statement = "Sparse products and their gradients are those of the strided matrix.",
                   .applies = [](const Op& op) { return op.name == "mm"; },
                   .check = as_strided});
}
