// A plug-in that adds a layout: coordinates and values of what is not zero (COO), of any rank. Products with
// dense matrices, what moves elements, scaling and sums are done on the values alone; everything else works
// on the strided form, counted. The gradient of a sparse operand is sparse, with its pattern.
#include <algorithm>

#include "lamella/draw/draw.h"
#include "lamella/plugin.h"

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
/// Also where levels wrap it.
bool is_coo(const Tensor& t) { return layout_of(t) == "coo"; }
Tensor column(const Tensor& indices, int64_t d) { return select(indices, 1, d); }
Tensor from_columns(const Tensors& columns, int64_t n) {
  return columns.empty() ? zeros({n, 0}, DType::I64) : stack(columns, 1);
}

/// Positions in row-major order, by the dims from `first` on.
Tensor flat(const Tensor& indices, Ints sizes, size_t first = 0) {
  Tensor at = zeros({indices.size(0)}, DType::I64);
  for (size_t d = 0; d < sizes.size(); ++d) at = at * Scalar(sizes[d]) + column(indices, int64_t(first + d));
  return at;
}

/// The other way.
Tensor unflat(Tensor at, Ints sizes) {
  Tensors columns;
  for (size_t d = sizes.size(); d-- > 0;) {
    const Tensor row = div(at, Scalar(std::max<int64_t>(sizes[d], 1)), "floor");
    columns.insert(columns.begin(), at - row * Scalar(sizes[d]));
    at = row;
  }
  return from_columns(columns, at.size(0));
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

/// For each value of matrices [.., n, m]: its row and column among all rows and columns of the batch.
struct Places {
  Tensor rows, columns;
  explicit Places(const Tensor& t) {
    const Tensor& at = coo_of(t)->indices;
    const size_t r = size_t(t.rank());
    const Tensor batch = flat(at, t.sizes().first(r - 2));
    rows = batch * Scalar(t.size(-2)) + column(at, int64_t(r) - 2);
    columns = batch * Scalar(t.size(-1)) + column(at, int64_t(r) - 1);
  }
};
Tensor turned(const Tensor& t) { return transpose(t, -2, -1); }
Tensor adjoint(const Tensor& t) { return conj(turned(t)); }
Tensor rows_of(const Tensor& t) {
  return reshape(t, {t.numel() / std::max<int64_t>(t.size(-1), 1), t.size(-1)});
}

/// Sparse matrices times dense ones: as many products as there are values, for each column.
Tensor product(const Tensor& a, const Tensor& b) {
  const Places at(a);
  const Tensor lines = reshape(b, {b.numel() / std::max<int64_t>(b.size(-1), 1), b.size(-1)});
  const Tensor terms = unsqueeze(coo_of(a)->values, 1) * index_select(lines, 0, at.columns);
  Dims sizes(a.sizes());
  sizes[sizes.size() - 1] = b.size(-1);
  return reshape(index_add(zeros({a.numel() / std::max<int64_t>(a.size(-1), 1), b.size(-1)}, terms.dtype()),
                           0, at.rows, terms),
                 sizes);
}

/// mm and bmm.
void product_cell(Frame& f, int key) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  Inferred shapes;
  if ((coo_of(a) && coo_of(b)) || a.numel() == 0 || b.numel() == 0) return not_mine(f, key);
  f.op->infer(f, shapes);  // refuses what does not fit
  f.results[0] = coo_of(a) ? product(a, b) : turned(product(turned(b), turned(a)));
}

OpHandle masked_op("coo_masked"), sampled_op("coo_sampled");
Tensor masked(const Tensor& x, const Tensor& like) { return call(*masked_op, {x, like})[0]; }
Tensor sampled(const Tensor& like, const Tensor& a, const Tensor& b) {
  return call(*sampled_op, {like, a, b})[0];
}

/// coo_masked(x, like): x where `like` has values.
void masked_cell(Frame& f, int key) {
  const Tensor &x = f.tensor(0), &like = f.tensor(1);
  if (!coo_of(like)) return not_mine(f, key);
  const Tensor& at = coo_of(like)->indices;
  if (coo_of(x) && coo_of(x)->indices.is_same(at)) return void(f.results[0] = x);
  const Tensor all = reshape(coo_of(x) ? dense(x) : x, {-1});
  f.results[0] = coo(at, index_select(all, 0, flat(at, x.sizes())), x.sizes());
}

/// coo_sampled(like, a, b): of the products a b what lies where `like` has values, and nothing else.
void sampled_cell(Frame& f, int key) {
  const Tensor &like = f.tensor(0), &a = f.tensor(1), &b = f.tensor(2);
  if (!coo_of(like) || coo_of(a) || coo_of(b) || a.numel() == 0 || b.numel() == 0) return not_mine(f, key);
  const Places at(like);
  const Tensor left = index_select(rows_of(a), 0, at.rows),
               right = index_select(rows_of(turned(b)), 0, at.columns);
  f.results[0] = coo(coo_of(like)->indices, sum(left * right, Dims{1}), like.sizes());
}

void infer_masked(const Frame& f, Inferred& out) {
  out.outs.push_back({Dims(f.tensor(1).sizes()), f.tensor(0).dtype()});
}
void infer_sampled(const Frame& f, Inferred& out) {
  out.outs.push_back({Dims(f.tensor(0).sizes()), f.tensor(1).dtype()});
}

/// The dims in another order, results of transpose and permute.
void permute_cell(Frame& f, int) {
  const Tensor& x = f.tensor(0);
  const Geometry g = f.op->view(f, {x.sizes(), x.strides(), 0});  // refuses what does not fit
  Dims order;
  for (int d = 0; d < x.rank(); ++d) order.push_back(d);
  if (f.op->name == "permute") order = Dims(f.ints(1));
  else
    std::swap(order[int(f.arg<int64_t>(1) + x.rank()) % x.rank()],
              order[int(f.arg<int64_t>(2) + x.rank()) % x.rank()]);
  Tensors columns;
  for (const int64_t d : order) columns.push_back(column(coo_of(x)->indices, (d + x.rank()) % x.rank()));
  f.results[0] = coo(from_columns(columns, coo_of(x)->indices.size(0)), coo_of(x)->values, g.sizes);
}

/// Other sizes for the same elements in the same order.
void view_cell(Frame& f, int) {
  const Tensor& x = f.tensor(0);
  const Geometry g = f.op->view(f, {x.sizes(), x.strides(), 0});
  f.results[0] = coo(unflat(flat(coo_of(x)->indices, x.sizes()), g.sizes), coo_of(x)->values, g.sizes);
}

/// Each value n times, behind one another in the order of a new index.
Tensor times(const Tensor& t, int64_t n) { return reshape(expand(unsqueeze(t, 0), {n, t.size(0)}), {-1}); }

void expand_cell(Frame& f, int) {
  const Tensor& x = f.tensor(0);
  const Geometry g = f.op->view(f, {x.sizes(), x.strides(), 0});
  Tensor values = coo_of(x)->values;
  Tensors columns;
  const int more = g.sizes.size() - x.rank();
  for (int d = 0; d < g.sizes.size(); ++d)
    columns.push_back(d < more ? zeros({values.size(0)}, DType::I64) : column(coo_of(x)->indices, d - more));
  for (int d = 0; d < g.sizes.size(); ++d) {
    const int64_t n = g.sizes[d], k = values.size(0);
    if (d >= more && x.size(d - more) == n) continue;
    for (Tensor& c : columns) c = times(c, n);
    columns[size_t(d)] = reshape(expand(unsqueeze(arange(n), 1), {n, k}), {-1});
    values = times(values, n);
  }
  f.results[0] = coo(from_columns(columns, values.size(0)), values, g.sizes);
}

/// Operators that keep zeros, of one sparse tensor and numbers: on the values.
void on_values(Frame& f, int key) {
  for (const uint8_t i : f.op->tensor_params)
    if (i > 0 && f.tensor(i).defined() && (coo_of(f.tensor(i)) || f.tensor(i).rank() > 0))
      return not_mine(f, key);
  if (!coo_of(f.tensor(0))) return not_mine(f, key);
  const Tensor x = f.tensor(0);
  FrameCopy lower(f);
  lower.set(0, coo_of(x)->values);
  Frame of_values = lower.into(f.results, f.list);
  call(of_values);
  f.results[0] = coo(coo_of(x)->indices, f.results[0], x.sizes());
}

/// Of one pattern, as gradients of one tensor are.
void add_cell(Frame& f, int key) {
  const Coo *const a = coo_of(f.tensor(0)), *const b = coo_of(f.tensor(1));
  if (!a || !b || !std::ranges::equal(f.tensor(0).sizes(), f.tensor(1).sizes())) return not_mine(f, key);
  const bool same = a->indices.is_same(b->indices) ||
                    (a->indices.size(0) == b->indices.size(0) &&
                     sum(to(ne(a->indices, b->indices), DType::I64)).item<int64_t>() == 0);
  if (!same) return not_mine(f, key);
  f.results[0] = coo(a->indices, add(a->values, b->values, f.arg<Scalar>(2)), f.tensor(0).sizes());
}

/// Of all elements.
void sum_cell(Frame& f, int key) {
  if (!f.none(1) || f.arg<bool>(2)) return not_mine(f, key);
  FrameCopy lower(f);
  lower.set(0, coo_of(f.tensor(0))->values);
  Frame of_values = lower.into(f.results, f.list);
  call(of_values);
}

/// On strided tensors all elements are there.
void masked_strided(Frame& f, int) { f.results[0] = clone(f.tensor(0)); }
void sampled_strided(Frame& f, int) { f.results[0] = matmul(f.tensor(1), f.tensor(2)); }

Values no_samples(Draw& d) {
  const Tensor x = d.tensor({2, 2}, DType::F64);
  return {x, x, x};
}

void define_operators() {
  OpTable::add({.schema = "coo_masked(Tensor x, Tensor like) -> Tensor",
                .shape = ShapeClass::Other,
                .infer = infer_masked,
                .jvp = linear_in({"x"}),
                .vjp = {wrt("x", saves("like"), [](Tensor dy, Tensor like) { return masked(dy, like); })},
                .batch = [](BatchCall& b) { b.results[0] = masked(b.front(0), b.front(1)); },
                .properties = kTestOnly | kNoInPlace | kNoOut,
                .samples = no_samples,
                .doc = "x where `like` has values: everywhere, if it is strided."});
  OpTable::add(
      {.schema = "coo_sampled(Tensor like, Tensor a, Tensor b) -> Tensor",
       .shape = ShapeClass::Other,
       .infer = infer_sampled,
       .jvp = linear_in({"a", "b"}),
       .vjp = {wrt("a", saves("like", "b"),
                   [](Tensor dy, Tensor like, Tensor b) { return matmul(masked(dy, like), adjoint(b)); }),
               wrt("b", saves("like", "a"),
                   [](Tensor dy, Tensor like, Tensor a) { return matmul(adjoint(a), masked(dy, like)); })},
       .batch = [](BatchCall& b) { b.results[0] = sampled(b.front(0), b.front(1), b.front(2)); },
       .properties = kTestOnly | kNoInPlace | kNoOut,
       .samples = no_samples,
       .doc = "Products of matrices [.., n, k] and [.., k, m] where `like` has values."});
  for (const Device d : {Device::CPU, Device::Reference}) {
    OpTable::set("coo_masked", int(d), {"strided", masked_strided});
    OpTable::set("coo_sampled", int(d), {"strided", sampled_strided});
  }
  OpTable::set("coo_masked", coo_key, {"sparse", masked_cell});
  OpTable::set("coo_sampled", coo_key, {"sparse", sampled_cell});
}

/// Gradients of sparse operands have their pattern.
void define_rules() {
  for (const char* product : {"mm", "bmm"}) {
    OpTable::set(product, coo_key, {"sparse", product_cell});
    OpTable::set_rules(product, coo_key, linear_in({"a", "b"}),
                       {wrt("a", saves("a", "b"),
                            [](Tensor dy, Tensor a, Tensor b) {
                              return is_coo(a) ? sampled(a, dy, adjoint(b)) : matmul(dy, adjoint(b));
                            }),
                        wrt("b", saves("a", "b"), [](Tensor dy, Tensor a, Tensor b) {
                          return is_coo(b) ? sampled(b, adjoint(a), dy) : matmul(adjoint(a), dy);
                        })});
  }
  OpTable::set_rules("to_strided", coo_key, linear_in({"x"}),
                     {wrt("x", saves("x"), [](Tensor dy, Tensor x) { return masked(dy, x); })});
}
}  // namespace

// Tests: laws of its own. The same program on strided tensors gives the same, no product is done on those,
// and what a sparse operand receives is sparse.
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/law.h"

namespace {
constexpr auto kRounding = verify::Agreement::Rounding;  // sums in another order

/// Mostly zeros; now and then nothing else, or none.
Tensor drawn(verify::Case& c, Ints sizes) {
  const Tensor few = c.draw.tensor(Dims(sizes), DType::F32);
  return to(gt(few, scalar_tensor(0.5 * c.draw.below(4), DType::F32)), DType::F64) *
         c.draw.tensor(Dims(sizes), DType::F64);
}

struct Checked {
  verify::Finding wrong = {};
  const int64_t before = strided_fallbacks();

  void agree(const char* what, const Tensor& got, const Tensor& want) {
    if (!wrong.empty()) return;
    wrong = verify::disagrees(got, want, kRounding, verify::of_sums({want}));
    if (!wrong.empty()) wrong = std::string(what) + ": " + wrong;
  }
  /// Sparse, and the elements of `want` where `like` has values.
  void agree_there(const char* what, const Tensor& got, const Tensor& want, const Tensor& like) {
    if (wrong.empty() && !coo_of(got)) wrong = std::string(what) + " is not sparse";
    if (wrong.empty() && coo_of(got)->values.numel() != coo_of(like)->values.numel())
      wrong = std::string(what) + " has another pattern";
    if (wrong.empty()) agree(what, dense(got), dense(masked(want, like)));
  }
  verify::Verdict verdict(int depth) const {
    if (!wrong.empty()) return verify::Verdict::fail(wrong, "");
    if (strided_fallbacks() != before) return verify::Verdict::fail("a call ran on strided tensors", "");
    return verify::Verdict::pass(depth);
  }
};
Tensor energy(const Tensor& a, const Tensor& b) {
  const Tensor y = matmul(a, b);
  return sum(y * y);
}

verify::Verdict as_strided(verify::Case& c) {
  const Tensor m = drawn(c, Dims{4, 3}), x = c.draw.tensor({3, 2}, DType::F64);
  const Tensor s = to_layout(m, "coo");
  Checked all;
  const auto f = [](const Tensor& a) { return [a](const Tensor& v) { return energy(a, v); }; };
  all.agree("mm", mm(s, x), mm(m, x));
  all.agree("mm from the right", mm(turned(x), turned(s)), mm(turned(x), turned(m)));
  all.agree("the dense operand's gradient", grad(f(s))(x), grad(f(m))(x));
  const Tensors moved =
      jvp([&](const Tensors& v) { return Tensors{mm(v[0], v[1])}; }, {s, x}, {s, x}).tangents;
  all.agree("jvp", moved[0], 2 * mm(m, x));
  return all.verdict(1);
}

verify::Verdict sparse_gradients(verify::Case& c) {
  const Tensor m = drawn(c, Dims{4, 3}), x = c.draw.tensor({3, 2}, DType::F64);
  const Tensor s = to_layout(m, "coo"), slope = grad([&](const Tensor&a) { return energy(a, x); })(m);
  Checked all;
  all.agree_there("grad", grad([&](const Tensor& a) { return energy(a, x); })(s), slope, s);
  all.agree_there("grad from the right",
                  grad([&](const Tensor& a) { return energy(turned(x), turned(a)); })(s), slope, s);
  all.agree_there("grad of two uses", grad([&](const Tensor& a) { return energy(a, x) + energy(-a, x); })(s),
                  2 * slope, s);
  const Tensor leaf = requires_grad(s), other = requires_grad(x);
  for (int times = 1; times <= 2; ++times) {
    backward(energy(leaf, other));
    all.agree_there("backward", grad_of(leaf), double(times) * slope, s);
  }
  all.agree("the other's", grad_of(other), 2 * grad([&](const Tensor& v) { return energy(m, v); })(x));
  // Along a sparse direction, the derivative of the gradient: 2 t x x^T where s has values.
  const Function gradient = [&](const Tensors& a) {
    return Tensors{grad([&](const Tensor& b) { return energy(b, x); })(a[0])};
  };
  all.agree_there("the second derivative", jvp(gradient, {s}, {s}).tangents[0], 2 * mm(mm(m, x), turned(x)),
                  s);
  return all.verdict(2);
}

verify::Verdict sparse_lanes(verify::Case& c) {
  const int64_t n = 1 + c.draw.below(3);
  const Tensor m = drawn(c, Dims{n, 4, 3}), x = c.draw.tensor({3, 2}, DType::F64),
               xs = c.draw.tensor({n, 3, 2}, DType::F64);
  const Tensor s = to_layout(m, "coo"), one = to_layout(select(m, 0, 0), "coo");
  Checked all;
  const Function products = [](const Tensors& v) { return Tensors{mm(v[0], v[1])}; };
  const auto mapped = [](const Function& f, InDims dims) { return vmap(f, VmapOptions{dims}); };
  all.agree("lanes of the sparse one", mapped(products, {0, kNone})({s, x})[0], matmul(m, x));
  all.agree("lanes of both", mapped(products, {0, 0})({s, xs})[0], matmul(m, xs));
  all.agree("lanes of the dense one", mapped(products, {kNone, 0})({one, xs})[0], matmul(dense(one), xs));
  all.agree("lanes of a captured one", vmap([&](const Tensor& v) { return mm(one, v); })(xs),
            matmul(dense(one), xs));
  const Function slopes = [](const Tensors& v) {
    return Tensors{grad([&](const Tensor& a) { return energy(a, v[1]); })(v[0])};
  };
  const Tensor wanted = 2 * matmul(matmul(m, xs), turned(xs));
  all.agree_there("gradients of lanes", mapped(slopes, {0, 0})({s, xs})[0], wanted, s);
  const auto together = [&](const Tensor& a) { return sum(mapped(products, {0, 0})({a, xs})[0]); };
  all.agree_there("the gradient through lanes", grad(together)(s),
                  matmul(ones({n, 4, 2}, DType::F64), turned(xs)), s);
  const Function tangents = [](const Tensors& v) {
    return jvp([&](const Tensors& a) { return Tensors{mm(a[0], v[1])}; }, {v[0]}, {v[0]}).tangents;
  };
  all.agree("tangents of lanes", mapped(tangents, {0, 0})({s, xs})[0], matmul(m, xs));
  const Tensor leaf = requires_grad(s);
  backward(sum(mapped(products, {0, 0})({leaf, xs})[0]));
  all.agree_there("backward through lanes", grad_of(leaf), matmul(ones({n, 4, 2}, DType::F64), turned(xs)),
                  s);
  return all.verdict(2);
}

void add_laws() {
  const auto of_mm = [](const Op& op) { return op.name == "mm"; };
  verify::add_law({1011,
                   "sparse_as_strided",
                   "layouts",
                   "Sparse products, dense gradients and tangents are those of the strided matrix.",
                   {},
                   false,
                   of_mm,
                   as_strided});
  verify::add_law({1012,
                   "sparse_gradients",
                   "layouts",
                   "The gradient of a sparse operand is the strided one where it has values, and sparse.",
                   {},
                   false,
                   of_mm,
                   sparse_gradients});
  verify::add_law({1013,
                   "sparse_lanes",
                   "layouts",
                   "Under vmap, sparse lanes and captured sparse matrices do as strided ones.",
                   {},
                   false,
                   of_mm,
                   sparse_lanes});
}
}  // namespace

LAMELLA_PLUGIN() {
  coo_key = add_tensor_type({.name = "coo", .to_strided = dense, .from_strided = sparse});
  define_operators();
  define_rules();
  for (const char* name : {"transpose", "permute"}) OpTable::set(name, coo_key, {"sparse", permute_cell});
  for (const char* name : {"view", "unsqueeze", "squeeze"})
    OpTable::set(name, coo_key, {"sparse", view_cell});
  OpTable::set("expand", coo_key, {"sparse", expand_cell});
  OpTable::set("add", coo_key, {"sparse", add_cell});
  OpTable::set("sum", coo_key, {"sparse", sum_cell});
  for (const char* name : {"neg", "conj_physical", "abs", "mul", "div", "clone", "to", "zeros_like"})
    OpTable::set(name, coo_key, {"values", on_values});
  add_laws();
}
