// Which calls run straight, and what they do: see straight.h.
#include "lamella/ops/straight.h"

#include <algorithm>

#include "lamella/ops/structured.h"

namespace lamella::ops {

bool is_of_class(InferFn infer) {
  static constexpr InferFn kOfClasses[] = {nullptr, infer_broadcast, infer_float, infer_compare, infer_same};
  return std::ranges::count(kOfClasses, infer) > 0;
}

namespace {
/// Whether operands of one shape and of dtype `d`, other arguments at their defaults, give one result of that
/// shape, computed in `d`.
bool keeps_shape(const Op& op, DType d, DType& result) {
  const Tensor x = make_tensor(Dims{2}, d, Device::Meta);
  const Values values = canonical(op, Values(op.straight, x), {});
  const BoxedArgs args(op, values);
  Tensor unused;
  Inferred inferred;
  infer_frame(Frame{&op, args.data(), &unused}, inferred);
  result = inferred.outs[0].dtype;
  return inferred.compute == d && inferred.outs.size() == 1 && inferred.outs[0].sizes == Dims{2};
}
}  // namespace

void probe_lines(Op& op) {
  Kernels& k = op.kernel;
  k.line_rule = op.infer;
  const auto& params = op.schema.params;
  const bool alone = !op.launch && params.size() == op.straight;
  const bool asked = alone || (k.line_ok && std::all_of(params.begin() + op.straight, params.end(),
                                                        [](const Param& p) { return p.has_default; }));
  const DTypeMask takes =
      is_of_class(op.infer) ? kAllTypes : k.line_dtypes;  // classes take whatever promotes
  for (size_t d = 0; op.straight && d < k.lines.size(); ++d)
    if (k.lines[d] && !(asked && takes & mask(DType(d)) && keeps_shape(op, DType(d), k.line_results[d])))
      k.lines[d] = nullptr;
  k.line_mixes = op.straight == 2 && asked && op.infer != infer_same ? takes : 0;
}

namespace {
/// The operand that has the shape of the result, if one has.
const TensorImpl& widest(const TensorImpl& a, const TensorImpl& b) {
  return a.numel == 1 && (b.numel != 1 || b.rank > a.rank) ? b : a;
}
bool has_or_repeats(const TensorImpl& t, const TensorImpl& like) {
  return t.has_shape_of(like) || (t.numel == 1 && t.rank <= like.rank);
}
/// Whether the run may read `t` as it lies.
inline bool lies_dense(const TensorImpl* t) {
  return t && t->storage && t->contiguous && t->device == Device::CPU && !comes_late(*t);
}
}  // namespace

bool run_mixed(Frame& f, const TensorImpl* target) {
  const Op& op = *f.op;
  const Kernels& k = op.kernel;
  if (op.straight != 2) return false;
  const Tensor* const both[] = {&f.tensor(0), &f.tensor(1)};
  const TensorImpl *const a = both[0]->impl(), *const b = both[1]->impl();
  if (!lies_dense(a) || !lies_dense(b)) return false;
  const TensorImpl& like = widest(*a, *b);
  const int64_t n = like.numel;
  if (n > kUsualThresholds.tile || !has_or_repeats(&like == a ? *b : *a, like)) return false;
  if ((mask(a->dtype) | mask(b->dtype)) & ~k.line_mixes) return false;
  if (op.infer != k.line_rule || (k.line_ok && !k.line_ok(f))) return false;
  const DType compute = result_type(both);
  const auto line = k.lines[size_t(compute)];
  if (!line) return false;
  const DType dtype = k.line_results[size_t(compute)];
  if (target) {
    if (!holds_straight(*target, like, dtype)) return false;
    if (!is_read_first(*a, *target) || !is_read_first(*b, *target)) return false;
  } else f.results[0] = make_tensor({like.sizes(), like.rank}, dtype);
  const kernels::LineOperand ins[] = {{a->data(), a->dtype, a->numel != n},
                                      {b->data(), b->dtype, b->numel != n}};
  kernels::run_buffered(line, target ? target->data() : f.results[0].raw_data(), ins, compute, n);
  return true;
}

}  // namespace lamella::ops
