// The batch rules shape classes give.
#include "lamella/ops/batch.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/view.h"
#include "lamella/ops/infer.h"
#include "lamella/ops/structured.h"

namespace lamella {

namespace {
/// Dim `from` becomes dim `to`; the others keep their order.
Tensor moved(const Tensor& t, int from, int to) {
  if (from == to) return t;
  Dims order;
  for (int d = 0; d < t.rank(); ++d)
    if (d != from) order.push_back(d);
  order.insert(to, from);
  return permute(t, order);
}

Dims prefixed(int64_t lanes, Ints sizes) {
  Dims out(sizes);
  out.insert(0, lanes);
  return out;
}
}  // namespace

Tensor to_front(const Tensor& t, int from) { return moved(t, from, 0); }
Tensor from_front(const Tensor& t, int to) { return moved(t, 0, to < 0 ? to + t.rank() : to); }
Tensor expand_front(const Tensor& t, int64_t size) { return expand(t, prefixed(size, t.sizes())); }

static Tensor lanes_first(const Tensor& t, int dim, int64_t lanes) {
  return dim == BatchCall::kNotMapped ? expand_front(t, lanes) : to_front(t, dim);
}

Tensor BatchCall::front(int i) const { return lanes_first(frame.tensor(i), dims[i], size); }

Tensor BatchCall::front_padded(int i, int rank) const {
  const Tensor& t = frame.tensor(i);
  if (!is_mapped(i)) return t;
  Tensor out = to_front(t, dims[i]);
  for (int r = logical_rank(i); r < rank; ++r) out = unsqueeze(out, 1);
  return out;
}

Tensors BatchCall::front_list(int i) const {
  Tensors out;
  for (const Tensor& t : frame.tensors(i)) out.push_back(lanes_first(t, list_dims[i][out.size()], size));
  return out;
}

namespace ops {

static Dims shifted_dims(const BatchCall& b, int i, int rank, bool padded) {
  Dims out;
  if (!b.frame.none(i))
    for (const int64_t d : b.frame.ints(i)) out.push_back(padded ? 1 : d < 0 ? d : d + 1);
  const bool all = b.frame.none(i) || (out.empty() && b.frame.op->shape == ShapeClass::Reduce);
  for (int d = 0; all && d < rank; ++d) out.push_back(d + 1);
  return out;
}

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
      r.set(i, prefixed(b.size, b.frame.ints(i)));
    }
  }
  Frame lower = r.into(b.results, b.list);
  call(lower);
  if (!padded) return;
  for (size_t k = 0; k < b.lane.outs.size(); ++k) {  // drop the lent dim where the result still has it
    const Dims sizes = prefixed(b.size, b.lane.outs[k].sizes);
    if (!std::ranges::equal(b.results[k].sizes(), Ints(sizes))) b.results[k] = reshape(b.results[k], sizes);
  }
}

/// A logical scalar promotes weakly, and equally with other scalars; with its mapped dim it would not.
/// Integers among floating operands are heard by category alone, with and without that dim.
static bool is_weak(const BatchCall& b, int i, DType compute) {
  const DType d = b.frame.tensor(i).dtype();
  return b.is_mapped(i) && b.logical_rank(i) == 0 && d != compute &&
         (is_inexact(d) || category(d) == category(compute) || promote(d, compute) != compute);
}

void batch_broadcast(BatchCall& b) {
  const Op& op = *b.frame.op;
  const DType compute = b.lane.compute;
  const auto given = [&](int i) { return !b.frame.none(i) && b.frame.tensor(i).defined(); };
  int rank = 0;
  bool any_weak = false, any_of_compute = false;
  for (const uint8_t i : op.tensor_params) {
    if (!given(i)) continue;
    rank = std::max(rank, b.logical_rank(i));
    any_weak |= is_weak(b, i, compute);
    any_of_compute |= b.frame.tensor(i).dtype() == compute;
  }
  // Kernels compute half types in f32, where a scalar of a wider dtype is not rounded to half before. With
  // its mapped dim it would be: then all operands go to f32 first.
  const bool widened = is_half(compute) && any_weak && any_of_compute;
  FrameCopy r(b.frame);
  for (const uint8_t i : op.tensor_params) {
    if (!given(i) || (!widened && !b.is_mapped(i))) continue;
    const Tensor t = b.front_padded(i, rank);
    const bool converts = is_weak(b, i, compute) || (widened && t.dtype() == compute);
    r.set(i, converts ? to(t, widened ? DType::F32 : compute) : t);
  }
  Frame lower = r.into(b.results, b.list);
  call(lower);
  for (size_t k = 0; widened && k < b.lane.outs.size(); ++k)
    if (b.results[k].dtype() != b.lane.outs[k].dtype) b.results[k] = to(b.results[k], b.lane.outs[k].dtype);
}

}  // namespace ops
}  // namespace lamella
