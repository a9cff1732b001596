// Shapes of composites from their docs, and how the reference column's kernels are given their arguments.
#include "lamella/ops/definitions.h"

#include <algorithm>
#include <cmath>

#include "lamella/ops/define.h"

namespace lamella::ops::definition {

namespace {
/// Composites say what is wrong, and are asked for it (structured.cpp); here it is enough that it is.
bool holds(Inferred& out, bool condition, ErrorCode otherwise) {
  if (!condition && !out.refused) out.refused = otherwise;
  return condition;
}

/// The dim counted from the front; 0 if it is refused.
int64_t from_front(Inferred& out, int64_t dim, int64_t rank) {
  rank = std::max<int64_t>(rank, 1);
  return holds(out, dim >= -rank && dim < rank, ErrorCode::DimOutOfRange) ? (dim + rank) % rank : 0;
}

/// The product of sizes, of which no empty one hides that the others are too large; 0 if it is refused.
int64_t elements(Inferred& out, Ints sizes) {
  if (!holds(out, sizes.size() <= size_t(kMaxDims), ErrorCode::Shape)) return 0;
  __int128 span = 1, count = 1;
  for (const int64_t s : sizes) {
    span *= s > 1 ? s : 1;
    if (!holds(out, span <= kMaxNumel, ErrorCode::Overflow)) return 0;
    count *= s;
  }
  return int64_t(count);
}

void one_result(Inferred& out, const Dims& sizes, DType dtype) {
  elements(out, sizes);
  out.compute = dtype;
  out.outs.push_back({sizes, dtype});
}

/// All of `ins` and `outs` as they are.
void run_plainly(const Launch& l, TensorSpan ins, Ints ints, std::span<const Scalar> scalars = {}) {
  std::vector<View> from, to;
  for (const Tensor& t : ins) from.push_back(t.view_of());
  for (const Tensor& t : l.outs) to.push_back(t.view_of());
  run(l, to, from, ints, scalars);
}
}  // namespace

void shape_of_same(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  one_result(out, x.sizes(), x.dtype());
}

void shape_of_real(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  one_result(out, x.sizes(), to_real(x.dtype()));
}

void shape_of_reshape(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  Dims sizes(f.ints(1)), known;
  for (const int64_t s : sizes) {
    if (!holds(out, s >= -1, ErrorCode::Shape)) return;
    if (s >= 0) known.push_back(s);
  }
  if (!holds(out, sizes.size() - known.size() <= 1, ErrorCode::Shape)) return;
  const int64_t given = elements(out, known);
  for (int64_t& s : sizes)
    if (s == -1) {
      if (!holds(out, given > 0 && x.numel() % given == 0, ErrorCode::Shape)) return;
      s = x.numel() / given;
    }
  if (!holds(out, sizes.size() > known.size() || given == x.numel(), ErrorCode::Shape)) return;
  one_result(out, sizes, x.dtype());
}

void run_elements(const Launch& l) {
  const Frame& f = l.frame;
  std::vector<Dims> strides(f.op->base->tensor_params.size());
  std::vector<View> ins;
  std::vector<Scalar> numbers;
  for (const uint8_t i : f.op->base->tensor_params)
    ins.push_back(broadcast_view(f, f.tensor(i), l.outs[0].sizes(), strides[ins.size()]));
  for (size_t i = 0; i < f.op->base->schema.params.size(); ++i)
    if (f.op->base->schema.params[i].kind == ParamKind::Scalar) numbers.push_back(f.arg<Scalar>(int(i)));
  const View out = l.outs[0].view_of();
  run(l, {&out, 1}, ins, {}, numbers);
}

void run_places(const Launch& l) { run_plainly(l, {&l.frame.tensor(0), 1}, l.inferred.ints); }

void run_copy(const Launch& l) { run_plainly(l, {&l.frame.tensor(0), 1}, Dims{0}); }
void run_conjugate(const Launch& l) {
  run_plainly(l, {&l.frame.tensor(0), 1}, Dims{is_complex(l.outs[0].dtype())});
}

void shape_of_stack(const Frame& f, Inferred& out) {
  const TensorSpan tensors = f.tensors(0);
  if (!holds(out, !tensors.empty(), ErrorCode::Value)) return;
  const Tensor& first = tensors[0];
  const int64_t dim = from_front(out, f.arg<int64_t>(1), first.rank() + 1);
  if (!holds(out, first.rank() < kMaxDims, ErrorCode::Shape)) return;
  DType dtype = first.dtype();  // all have one rank: none promotes as a scalar beside others
  for (const Tensor& t : tensors) {
    if (!holds(out, Dims(t.sizes()) == Dims(first.sizes()), ErrorCode::Shape)) return;
    dtype = promote(dtype, t.dtype());
  }
  Dims sizes(first.sizes());
  sizes.insert(int(dim), int64_t(tensors.size()));
  one_result(out, sizes, dtype);
  out.ints = {dim};
}
void run_stack(const Launch& l) { run_plainly(l, l.frame.tensors(0), l.inferred.ints); }

namespace {
/// Parts of these lengths along the dim of parameter 2; ints: the dim, where each part begins.
void shape_of_parts(const Frame& f, Inferred& out, int64_t dim, const std::vector<int64_t>& lengths) {
  const Tensor& x = f.tensor(0);
  out.ints = {dim};
  int64_t at = 0;
  for (const int64_t n : lengths) {
    Dims sizes(x.sizes());
    sizes[int(dim)] = n;
    out.outs.push_back({sizes, x.dtype()});
    out.ints.push_back(at);
    at += n;
  }
}
int64_t split_dim(const Frame& f, Inferred& out) {
  if (!holds(out, f.tensor(0).rank() > 0, ErrorCode::Shape)) return 0;
  return from_front(out, f.arg<int64_t>(2), f.tensor(0).rank());
}
}  // namespace

void shape_of_split(const Frame& f, Inferred& out) {
  const int64_t dim = split_dim(f, out);
  if (out.refused) return;
  const int64_t size = f.tensor(0).size(int(dim)), most = f.arg<int64_t>(1);
  if (!holds(out, most > 0 || (most == 0 && size == 0), ErrorCode::Value)) return;
  std::vector<int64_t> lengths;
  int64_t rest = size;
  for (; rest > most; rest -= most) lengths.push_back(most);
  lengths.push_back(rest);
  shape_of_parts(f, out, dim, lengths);
}

void shape_of_split_with_sizes(const Frame& f, Inferred& out) {
  const int64_t dim = split_dim(f, out);
  if (out.refused) return;
  const Ints lengths = f.ints(1);
  __int128 sum = 0;
  for (const int64_t n : lengths) {
    if (!holds(out, n >= 0, ErrorCode::Value)) return;
    sum += n;
  }
  if (!holds(out, sum == f.tensor(0).size(int(dim)), ErrorCode::Value)) return;
  shape_of_parts(f, out, dim, {lengths.begin(), lengths.end()});
}

namespace {
/// x without the dims that parameter 1 names, or with size 1 there; all for None and an empty list. ints: of
/// each dim whether it is named.
void shape_of_reduced(const Frame& f, Inferred& out, bool keep, DType dtype) {
  const Tensor& x = f.tensor(0);
  const bool all = f.none(1) || f.ints(1).empty();
  Dims reduced(x.rank(), all), sizes;
  if (!all) {
    std::vector<int64_t> named;
    for (const int64_t d : f.ints(1)) {
      named.push_back(from_front(out, d, x.rank()));
      if (!holds(out, std::ranges::count(named, named.back()) == 1, ErrorCode::Shape)) return;
      if (x.rank() > 0) reduced[int(named.back())] = 1;
    }
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (!reduced[d]) sizes.push_back(x.size(d));
    else if (keep) sizes.push_back(1);
  }
  one_result(out, sizes, dtype);
  out.ints = reduced;
}
}  // namespace

void shape_of_mean(const Frame& f, Inferred& out) {
  const DType dtype = f.none(3) ? f.tensor(0).dtype() : f.arg<DType>(3);
  if (!holds(out, is_inexact(dtype), ErrorCode::DType)) return;
  shape_of_reduced(f, out, f.arg<bool>(2), dtype);
}

void shape_of_var(const Frame& f, Inferred& out) {
  const DType dtype = f.tensor(0).dtype();
  if (!holds(out, is_inexact(dtype), ErrorCode::DType)) return;
  if (!holds(out, f.none(2) || std::isfinite(f.arg<double>(2)), ErrorCode::Value)) return;
  shape_of_reduced(f, out, f.arg<bool>(3), to_real(dtype));
}

void run_var(const Launch& l) {
  const Scalar correction = l.frame.none(2) ? 1.0 : l.frame.arg<double>(2);
  run_plainly(l, {&l.frame.tensor(0), 1}, l.inferred.ints, {&correction, 1});
}

void shape_of_sum_to_size(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  const Ints size = f.ints(1);
  if (!holds(out, size.size() <= size_t(x.rank()), ErrorCode::Shape)) return;
  bool sums = size.empty() || size.size() < size_t(x.rank());
  for (size_t d = 1; d <= size.size(); ++d) {
    const int64_t from = x.size(-int(d)), to = size[size.size() - d];
    if (!holds(out, to == from || to == 1, ErrorCode::Shape)) return;
    sums |= to != from;
  }
  // Where nothing is summed the result is x as it is; else it has the dtype of sums.
  const bool counts = sums && !is_inexact(x.dtype());
  one_result(out, size, counts ? DType::I64 : x.dtype());
}

void shape_of_layer_norm(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  const Dims shape(f.ints(1));
  if (!holds(out, is_floating(x.dtype()), ErrorCode::DType)) return;
  if (!holds(out, !shape.empty() && shape.size() <= x.rank(), ErrorCode::Shape)) return;
  for (int d = 1; d <= shape.size(); ++d)
    if (!holds(out, x.size(-d) == shape[shape.size() - d], ErrorCode::Shape)) return;
  if (!holds(out, std::isfinite(f.arg<double>(4)), ErrorCode::Value)) return;
  for (const int i : {2, 3})
    if (f.tensor(i).defined()) {
      if (!holds(out, Dims(f.tensor(i).sizes()) == shape, ErrorCode::Shape)) return;
      if (!holds(out, is_floating(f.tensor(i).dtype()), ErrorCode::DType)) return;
    }
  one_result(out, x.sizes(), x.dtype());
}

/// Statistics have x's dtype; of half dtypes beside a wider weight, that in which they were computed.
void shape_of_native_layer_norm(const Frame& f, Inferred& out) {
  shape_of_layer_norm(f, out);
  if (out.refused) return;
  const Tensor &x = f.tensor(0), &weight = f.tensor(2);
  const bool wide = is_half(x.dtype()) && weight.defined() && !is_half(weight.dtype());
  Dims sizes(x.sizes());
  for (int d = 1; d <= int(f.ints(1).size()); ++d) sizes[x.rank() - d] = 1;
  for (int k = 0; k < 2; ++k) out.outs.push_back({sizes, wide ? DType::F32 : x.dtype()});
}

void run_layer_norm(const Launch& l) {
  Tensors ins{l.frame.tensor(0)};
  Dims ints{int64_t(l.frame.ints(1).size())};
  for (const int i : {2, 3}) {
    ints.push_back(l.frame.tensor(i).defined());
    if (l.frame.tensor(i).defined()) ins.push_back(l.frame.tensor(i));
  }
  const Scalar eps = l.frame.arg<double>(4);
  run_plainly(l, ins, ints, {&eps, 1});
}

void shape_of_matmul(const Frame& f, Inferred& out) {
  const Tensor &a = f.tensor(0), &b = f.tensor(1);
  if (!holds(out, a.dtype() == b.dtype() && a.dtype() != DType::Bool, ErrorCode::DType)) return;
  if (!holds(out, a.rank() > 0 && b.rank() > 0, ErrorCode::Shape)) return;
  if (!holds(out, a.size(-1) == b.size(b.rank() == 1 ? -1 : -2), ErrorCode::Shape)) return;
  Dims sizes;
  for (int d = std::max(a.rank(), b.rank()); d > 2; --d) {
    const int64_t s = d <= a.rank() ? a.size(-d) : 1, t = d <= b.rank() ? b.size(-d) : 1;
    if (!holds(out, s == t || s == 1 || t == 1, ErrorCode::Broadcast)) return;
    sizes.push_back(s == 1 ? t : s);
  }
  if (a.rank() > 1) sizes.push_back(a.size(-2));
  if (b.rank() > 1) sizes.push_back(b.size(-1));
  one_result(out, sizes, a.dtype());
}

void shape_of_cholesky(const Frame& f, Inferred& out) {
  const Tensor& x = f.tensor(0);
  if (!holds(out, x.rank() >= 2 && x.size(-1) == x.size(-2), ErrorCode::Shape)) return;
  if (!holds(out, is_inexact(x.dtype()) && !is_half(x.dtype()), ErrorCode::DType)) return;
  one_result(out, x.sizes(), x.dtype());
  out.ints = {f.arg<bool>(1)};
}

void shape_of_split_key(const Frame& f, Inferred& out) {
  const Tensor& key = f.tensor(0);
  if (!holds(out, key.dtype() == DType::U64, ErrorCode::DType)) return;
  if (!holds(out, f.arg<int64_t>(1) >= 0, ErrorCode::Value)) return;
  Dims sizes(key.sizes());
  sizes.push_back(f.arg<int64_t>(1));
  one_result(out, sizes, DType::U64);
}

}  // namespace lamella::ops::definition
