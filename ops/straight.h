// Pointwise calls on small dense tensors, and views of few dims: without inference, plans or lists of sizes.
#pragma once

#include <cstring>
#include <memory>

#include "lamella/core/family.h"
#include "lamella/core/thresholds.h"
#include "lamella/ops/define.h"

namespace lamella::ops {

/// NOTE: [late histories] A view that was plain when it was made carries no key of autograd, although a write
/// through another member of its family may have given it derivatives since. Backends meet such a handle and
/// send the call up; where autograd is masked (its own calls, NoGrad) there is nothing to do.
inline bool comes_late(const TensorImpl& t) {
  constexpr uint64_t kBit = KeySet::of(kAutogradKey).bits;
  return has_late_history(&t) && !(t.keys & kBit) && !(dispatch_state().exclude & kBit);
}

/// Whether the row's shape function is one of the classes'.
bool is_of_class(InferFn infer);
/// Finds out which straight runs of a new operator its shape function allows.
void probe_lines(Op& op);

/// NOTE: [small tensors run straight] Dense operands of one shape and dtype need neither inference nor a
/// plan: the shape function was asked once for each dtype, when the operator was added (probe_lines). Two
/// operands may also have two dtypes, and one of them a single element, as 2.5 in `x * 2.5`: a tile of them
/// at most goes through buffers (run_mixed). The result is a new tensor or, of a form, its target, if that is
/// dense, of the result's dtype and shape, and shares its memory with no operand but element by element.
/// All else, what is to be refused above all, is left to the general way.

/// Whether a straight run may write a result of this dtype, of the shape of `like`, to `target`.
inline bool holds_straight(const TensorImpl& target, const TensorImpl& like, DType dtype) {
  return target.contiguous && target.storage && target.dtype == dtype && target.device == Device::CPU &&
         target.has_shape_of(like);
}
/// Whether no element of `t`, a dense operand, is written, or each just after it was read.
inline bool is_read_first(const TensorImpl& t, const TensorImpl& target) {
  if (&t == &target || t.storage != target.storage) return true;
  return t.offset == target.offset && t.dtype == target.dtype && t.has_shape_of(target);
}

/// Of operands of one shape and dtype, into `target` or, where that is null, a new result of the frame.
/// False: the call is none of these, and nothing has happened.
[[gnu::always_inline]] inline bool run_line(Frame& f, const TensorImpl* target) {
  const Op& op = *f.op;
  const size_t n = op.straight;
  if (n == 0 || op.infer != op.kernel.line_rule) return false;
  const TensorImpl* first = f.tensor(0).impl();
  if (!first || (op.kernel.line_ok && !op.kernel.line_ok(f))) return false;  // who is undefined has no dtype
  if (!first->contiguous || !first->storage || first->numel > kUsualThresholds.straight) return false;
  if (comes_late(*first) || (target && !is_read_first(*first, *target))) return false;
  const auto line = op.kernel.lines[size_t(first->dtype)];
  if (!line) return false;
  const void* ins[kMaxStraight];
  ins[0] = first->data();
  for (size_t i = 1; i < n; ++i) {
    const TensorImpl* t = f.tensor(int(i)).impl();
    if (!t || !t->storage || t->dtype != first->dtype || !t->contiguous || t->device != first->device ||
        !t->has_shape_of(*first) || comes_late(*t) || (target && !is_read_first(*t, *target)))
      return false;
    ins[i] = t->data();
  }
  const DType dtype = op.kernel.line_results[size_t(first->dtype)];
  if (target) {
    if (!holds_straight(*target, *first, dtype)) return false;
    line(target->data(), ins, first->numel);
    return true;
  }
  Tensor& out = f.results[0];
  out = make_tensor({first->sizes(), first->rank}, dtype);
  line(out.raw_data(), ins, first->numel);
  return true;
}

/// Likewise of two operands that differ in dtype or shape.
bool run_mixed(Frame& f, const TensorImpl* target);

/// Either of them.
[[gnu::always_inline]] inline bool run_straight(Frame& f, const TensorImpl* target) {
  return run_line(f, target) || (f.op->kernel.line_mixes && run_mixed(f, target));
}

/// What follows from sizes and strides, of a header of few dims.
inline void count_elements(TensorImpl& t) {
  const int64_t *const sizes = t.dims, *const strides = t.dims + TensorImpl::kInlineRank;
  int64_t n = 1;
  bool dense = true;
  for (int d = t.rank - 1; d >= 0; --d) {
    dense &= sizes[d] == 1 || strides[d] == n;
    n *= sizes[d];
  }
  t.numel = n;
  t.contiguous = dense || n == 0;
}

/// NOTE: [views in headers] A view of few dims keeps most of what its tensor's header says. So it gets a copy
/// of that header, which the operator edits (OpDef::edit), with no lists of sizes and strides in between. Of
/// more dims, of tensors that a backend does not take as they are, and where a row has another view function
/// than the one it was added with, that function is asked.
///
/// The view of `x`, parameter 0, as the frame's result; in no family yet. False: nothing has happened.
[[gnu::always_inline]] inline bool view_in_header(Frame& f, const TensorImpl* x, int key) {
  if (!x || !x->storage || int(x->device) != key || x->rank > TensorImpl::kInlineRank) return false;
  if (is_internal(x->dtype) || comes_late(*x)) return false;
  TensorImpl* const header = TensorImpl::create_bare();
  Tensor made = Tensor::adopt(header);
  header->dtype = x->dtype;
  header->device = x->device;
  header->keys = uint64_t{1} << key;
  header->rank = x->rank;
  std::memcpy(header->dims, x->dims, sizeof header->dims);
  header->offset = x->offset;
  header->storage = x->storage;
  x->storage->retain();
  if (!f.op->edit(f, *header)) return false;
  count_elements(*header);
  std::construct_at(f.results, std::move(made));  // an empty slot, as every result's before a call
  return true;
}

}  // namespace lamella::ops
