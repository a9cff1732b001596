// The loop over lanes: what vmap does without a batch rule, and what rules are compared with.
#include "lamella/transforms/lanes.h"

#include <algorithm>

#include "lamella/dispatch/frame_copy.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"

namespace lamella {

namespace {
constinit thread_local int64_t fallbacks = 0;

Tensors call_lane(BatchCall& b, int64_t lane) {
  FrameCopy values(b.frame);
  for_each_tensor(b.frame, [&](const Tensor& t, int i, int element) {
    const int dim = is_list(*b.frame.op, i) ? b.list_dims[i][size_t(element)] : b.dims[i];
    if (dim != BatchCall::kNotMapped) values.set(i, element, select(t, dim, lane));
  });
  Tensors results(size_t(b.frame.op->schema.n_results));
  Frame call = values.into(results.data());
  lamella::call(call);
  return results;
}

/// Nothing runs for an empty batch: shapes and dtypes come from the shape function, on logical shapes.
void no_lanes(BatchCall& b) {
  const Op& op = *b.frame.op;
  LAMELLA_CHECK(op.shape != ShapeClass::Dynamic, NoKernel,
                "{}: its shape depends on values, and an empty batch has none; expected one lane at least",
                op.name);
  const int first = op.tensor_params[0];
  const Tensor& like = tensors_at(b.logical, first)[0];
  const Tensor& plain = tensors_at(b.frame, first)[0];
  Shapes outs = b.lane.outs;
  if (op.is_view()) {
    const Geometry g = op.view(b.logical, {like.sizes(), like.strides(), 0});
    outs.push_back({g.sizes, g.dtype.value_or(like.dtype())});
  }
  std::optional<Device> device;
  if (op.device_param >= 0 && !b.frame.none(op.device_param)) device = b.frame.arg<Device>(op.device_param);
  for (size_t k = 0; k < outs.size(); ++k) {
    Dims sizes = outs[k].sizes;
    sizes.insert(0, 0);
    b.results[k] = new_zeros(plain, sizes, outs[k].dtype, device);
  }
}
}  // namespace

void call_lanes(BatchCall& b) {
  const Op& op = *b.frame.op;
  std::vector<Tensors> results(size_t(op.schema.n_results));
  for (int64_t lane = 0; lane < b.size; ++lane) {
    const Tensors lane_results = call_lane(b, lane);
    for (size_t k = 0; k < lane_results.size(); ++k) {
      results[k].push_back(lane_results[k]);
      LAMELLA_CHECK(std::ranges::equal(results[k][0].sizes(), lane_results[k].sizes()), Shape,
                    "{}: its result is {} in lane {}, expected {} as in lane 0", op.name, lane_results[k],
                    lane, results[k][0]);
    }
  }
  for (size_t k = 0; k < results.size(); ++k) b.results[k] = stack(results[k], 0);
}

void loop_over_lanes(BatchCall& b) {
  ++fallbacks;
  LAMELLA_CHECK(b.frame.op->schema.result_kind == ResultKind::Tensors, NoKernel,
                "{}: no batch rule, and it returns a list", b.frame.op->name);
  b.size == 0 ? no_lanes(b) : call_lanes(b);
}

ForceLoop::ForceLoop() : saved_(force_loop) { force_loop = true; }
ForceLoop::~ForceLoop() { force_loop = saved_; }
int64_t loop_fallbacks() { return fallbacks; }

}  // namespace lamella
