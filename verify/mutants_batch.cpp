// Wrong batch rules.
#include "lamella/ops/batch.h"
#include "lamella/ops/functions.h"
#include "lamella/verify/mutants.h"

namespace lamella::verify {

namespace {

void right_rule(BatchCall& b) {
  const Op& op = *right_row;
  if (op.batch) return op.batch(b);
  op.shape == ShapeClass::Broadcast ? ops::batch_broadcast(b) : ops::batch_front(b);
}

bool batchable(const Op& op) {
  const bool loops = !op.batch && (op.shape == ShapeClass::Dynamic || op.shape == ShapeClass::Other);
  return !op.composite && !op.has(kRandom) && takes_tensors(op) && !loops &&
         op.schema.result_kind == ResultKind::Tensors;
}
bool has_two_tensors(const Op& op) { return batchable(op) && op.simple && op.tensor_params.size() >= 2; }
bool names_dims(const Op& op) {
  if (!batchable(op) || op.shape == ShapeClass::Broadcast) return false;
  for (const Param& p : op.schema.params)
    if (p.role == ParamRole::Dim && p.kind == ParamKind::Int) return true;
  return false;
}
bool broadcasts_two(const Op& op) {
  return has_two_tensors(op) && op.shape == ShapeClass::Broadcast && !op.batch;
}

void lanes_reversed(BatchCall& b) {
  right_rule(b);
  for (int k = 0; k < b.frame.op->schema.n_results; ++k)
    if (b.mapped[k]) b.results[k] = flip(b.results[k], {0});
}

void first_lane_for_all(BatchCall& b) {
  right_rule(b);
  if (b.size == 0) return;
  for (int k = 0; k < b.frame.op->schema.n_results; ++k)
    if (b.mapped[k]) b.results[k] = expand(slice(b.results[k], 0, 0, 1), b.results[k].sizes());
}

void with_dims(BatchCall& b, int (*change)(const BatchCall&, int param)) {
  std::vector<int> dims(b.dims, b.dims + b.frame.op->schema.params.size());
  for (const uint8_t i : b.frame.op->tensor_params)
    if (!b.frame.none(i) && b.frame.op->schema.params[i].kind == ParamKind::Tensor) dims[i] = change(b, i);
  BatchCall wrong{b.frame, dims.data(), b.list_dims, b.size, b.logical, b.results, b.list};
  right_rule(wrong);
  std::copy(std::begin(wrong.mapped), std::end(wrong.mapped), b.mapped);
}

void mapped_dim_assumed_first(BatchCall& b) {
  with_dims(b, [](const BatchCall& c, int i) { return c.is_mapped(i) ? 0 : BatchCall::kNotMapped; });
}

void size_taken_for_lanes(BatchCall& b) {
  with_dims(b, [](const BatchCall& c, int i) {
    const Tensor& t = c.frame.tensor(i);
    const bool looks_mapped = t.defined() && t.rank() > 0 && t.size(0) == c.size;
    return c.is_mapped(i) ? c.dims[i] : looks_mapped ? 0 : BatchCall::kNotMapped;
  });
}

/// The operator on operands with the mapped dim in front, other arguments as the lane gave them.
void on_fronts(BatchCall& b) {
  Values args = own(b.frame);
  for (const uint8_t i : b.frame.op->tensor_params)
    if (const auto* t = std::get_if<Tensor>(&args[i]); t && t->defined())
      args[i] = b.is_mapped(i) ? b.front(i) : *t;
  for (size_t i = 0; i < args.size(); ++i)
    if (auto* sizes = std::get_if<Dims>(&args[i]);
        sizes && b.frame.op->schema.params[i].role == ParamRole::Size)
      sizes->insert(0, b.size);
  const Tensors results = call_boxed(*b.frame.op, args);
  for (size_t k = 0; k < results.size(); ++k) b.results[k] = results[k];
}

void empty_batch_refused(BatchCall& b) {
  LAMELLA_CHECK(b.size > 0, Value, "{}: an empty batch", b.frame.op->name);
  right_rule(b);
}

}  // namespace

void add_batch_mutants(std::vector<Mutant>& list) {
  list.push_back({"lanes_reversed", "batch", "The last lane's result comes first.", batchable,
                  [](Op& r) { r.batch = lanes_reversed; }});
  list.push_back({"first_lane_for_all", "batch", "Every lane gets the first lane's result.", batchable,
                  [](Op& r) { r.batch = first_lane_for_all; }});
  list.push_back({"mapped_dim_assumed_first", "batch", "The mapped dim is not moved to the front.", batchable,
                  [](Op& r) { r.batch = mapped_dim_assumed_first; }});
  list.push_back({"dim_not_shifted", "batch", "A dim argument is not moved up by the mapped dim.", names_dims,
                  [](Op& r) { r.batch = on_fronts; }});
  list.push_back({"ranks_not_aligned", "batch", "Mapped operands of different rank are not padded.",
                  broadcasts_two, [](Op& r) { r.batch = on_fronts; }});
  list.push_back({"size_taken_for_lanes", "batch",
                  "A dim with as many elements as there are lanes is taken for the mapped one.",
                  has_two_tensors, [](Op& r) { r.batch = size_taken_for_lanes; }});
  list.push_back({"empty_batch_refused", "batch", "A batch of no lanes raises.", batchable,
                  [](Op& r) { r.batch = empty_batch_refused; }});
}

}  // namespace lamella::verify
