// The batch rules shape classes give.
#include "lamella/ops/batch.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/infer.h"
#include "lamella/ops/structured.h"

namespace lamella {

Tensor to_front(const Tensor& t, int from) {
  if (from == 0) return t;
  Dims order{from};
  for (int d = 0; d < t.rank(); ++d)
    if (d != from) order.push_back(d);
  return permute(t, order);
}

Tensor from_front(const Tensor& t, int to) {
  if (to < 0) to += t.rank();
  if (to == 0) return t;
  Dims order;
  for (int d = 1; d < t.rank(); ++d) order.push_back(d);
  order.insert(to, 0);
  return permute(t, order);
}

Tensor expand_front(const Tensor& t, int64_t size) {
  Dims sizes{size};
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  return expand(t, sizes);
}

Tensor BatchCall::front(int i) const {
  const Tensor& t = frame.tensor(i);
  return is_mapped(i) ? to_front(t, dims[i]) : expand_front(t, size);
}

Tensor BatchCall::front_padded(int i, int rank) const {
  const Tensor& t = frame.tensor(i);
  if (!is_mapped(i)) return t;
  Tensor out = to_front(t, dims[i]);
  for (int r = logical_rank(i); r < rank; ++r) out = unsqueeze(out, 1);
  return out;
}

Tensors BatchCall::front_list(int i) const {
  Tensors out;
  const TensorSpan list = frame.tensors(i);
  for (size_t k = 0; k < list.size(); ++k) {
    const int d = list_dims[i][k];
    out.push_back(d == kNotMapped ? expand_front(list[k], size) : to_front(list[k], d));
  }
  return out;
}

namespace ops {

namespace {
Dims shifted_dims(const BatchCall& b, int i, int rank, bool padded) {
  Dims out;
  if (b.frame.none(i)) {  // all logical dims
    for (int d = 0; d < rank; ++d) out.push_back(d + 1);
    return out;
  }
  for (const int64_t d : b.frame.ints(i)) out.push_back(padded ? 1 : d < 0 ? d : d + 1);
  if (out.empty() && b.frame.op->shape == ShapeClass::Reduce)
    for (int d = 0; d < rank; ++d) out.push_back(d + 1);
  return out;
}
}  // namespace

void batch_front(BatchCall& b) {
  const Op& op = *b.frame.op;
  FrameCopy r(b.frame);
  const int first = op.tensor_params.empty() ? -1 : op.tensor_params[0];
  const bool list = first >= 0 && op.schema.params[size_t(first)].kind == ParamKind::TensorList;
  const int rank = first < 0 || list ? -1 : b.logical_rank(first);
  // Rank 0 counts as one dim of size 1 where dims are named: give it that dim, behind the mapped one.
  bool padded = rank == 0 && op.shape != ShapeClass::View && op.shape != ShapeClass::Other;
  if (op.shape == ShapeClass::Index && rank == 1)
    for (const uint8_t i : op.tensor_params) padded |= b.logical_rank(i) == 0;
  for (int i = 0; i < op.arity; ++i) {
    if (b.frame.none(i) && op.schema.params[size_t(i)].role != ParamRole::Dim) continue;
    const Param& p = op.schema.params[size_t(i)];
    if (p.kind == ParamKind::Tensor && b.frame.tensor(i).defined()) {
      const Tensor t = b.front(i);
      r.set(i, padded && b.logical_rank(i) == 0 ? unsqueeze(t, 1) : t);
    } else if (p.kind == ParamKind::TensorList) {
      int element = 0;
      for (Tensor& t : b.front_list(i)) r.set(i, element++, std::move(t));
    } else if (p.role == ParamRole::Dim && p.kind == ParamKind::Int && !b.frame.none(i)) {
      const int64_t d = b.frame.arg<int64_t>(i);
      r.set(i, padded ? int64_t{1} : d < 0 ? d : d + 1);
    } else if (p.role == ParamRole::Dim && p.kind == ParamKind::Ints) {
      r.set(i, shifted_dims(b, i, padded ? 1 : rank, padded));
    } else if (p.role == ParamRole::Size) {
      Dims sizes(b.frame.ints(i));
      sizes.insert(0, b.size);
      r.set(i, std::move(sizes));
    }
  }
  Frame lower = r.into(b.results, b.list);
  call(lower);
  if (!padded) return;
  for (size_t k = 0; k < b.lane.outs.size(); ++k) {  // drop the lent dim where the result still has it
    Dims sizes = b.lane.outs[k].sizes;
    sizes.insert(0, b.size);
    if (!std::ranges::equal(b.results[k].sizes(), Ints(sizes))) b.results[k] = reshape(b.results[k], sizes);
  }
}

namespace {
/// A logical scalar promotes weakly, and equally with other scalars; with its mapped dim it would not.
/// Integers among floating operands are heard by category alone, with and without that dim.
bool is_weak(const BatchCall& b, int i, DType compute) {
  const DType d = b.frame.tensor(i).dtype();
  return b.is_mapped(i) && b.logical_rank(i) == 0 && d != compute &&
         (is_inexact(d) || category(d) == category(compute) || promote(d, compute) != compute);
}

/// Kernels compute half types in f32, where a scalar of a wider dtype is not rounded to half before. With its
/// mapped dim it would be: then all operands go to f32 first.
bool scalar_meets_half(const BatchCall& b, DType compute) {
  if (!is_half(compute)) return false;
  bool scalar = false, half = false;
  for (const uint8_t i : b.frame.op->tensor_params) {
    if (b.frame.none(i) || !b.frame.tensor(i).defined()) continue;
    scalar |= is_weak(b, i, compute);
    half |= b.frame.tensor(i).dtype() == compute;
  }
  return scalar && half;
}
}  // namespace

void batch_broadcast(BatchCall& b) {
  const Op& op = *b.frame.op;
  FrameCopy r(b.frame);
  int rank = 0;
  for (const uint8_t i : op.tensor_params)
    if (!b.frame.none(i) && b.frame.tensor(i).defined()) rank = std::max(rank, b.logical_rank(i));
  const DType compute = b.lane.compute;
  const bool widened = scalar_meets_half(b, compute);
  const DType unit = widened ? DType::F32 : compute;
  for (const uint8_t i : op.tensor_params) {
    if (b.frame.none(i) || !b.frame.tensor(i).defined() || (!widened && !b.is_mapped(i))) continue;
    const Tensor t = b.is_mapped(i) ? b.front_padded(i, rank) : b.frame.tensor(i);
    const bool converts = is_weak(b, i, compute) || (widened && t.dtype() == compute);
    r.set(i, converts ? to(t, unit) : t);
  }
  Frame lower = r.into(b.results, b.list);
  call(lower);
  for (size_t k = 0; widened && k < b.lane.outs.size(); ++k)
    if (b.results[k].dtype() != b.lane.outs[k].dtype) b.results[k] = to(b.results[k], b.lane.outs[k].dtype);
}

}  // namespace ops
}  // namespace lamella
