// Wrong batch rules.
#include <map>

#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/functions/along_dim.h"
#include "lamella/ops/functions/join.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

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
/// What an operator's own batch rule returned in drawn cases.
struct LaneTraits {
  bool differ = false;  ///< two lanes of a result differed
  bool single = false;  ///< a result of one lane was mapped
}* lane_noting = nullptr;

void note(BatchCall& b) {
  right_batch_rule(b);
  for (int k = 0; k < b.frame.op->schema.n_results; ++k) {
    if (!b.mapped[k] || b.size == 0 || b.results[k].keys() >> kAutogradKey) continue;
    lane_noting->single |= b.size == 1;
    lane_noting->differ |= !differs(lane(b.results[k], 0, b.size - 1), lane(b.results[k], 0, 0)).empty();
  }
}

const LaneTraits& lanes_of(const Op& op) {
  static std::map<std::string, LaneTraits> known;
  const auto [at, fresh] = known.try_emplace(op.name);
  if (!fresh) return at->second;
  lane_noting = &at->second;
  const Planted recorder{
      .id = op.name, .group = {}, .what = {}, .op = &op, .plant = [](Op& row) { row.batch = note; }};
  const OpTable* table = plant(recorder);
  const ScopedTable pinned(table);
  for (uint64_t i = 0; i < 100; ++i)
    (void)status_of([&] {
      (void)probe(Probe::Vmap, table->row(op.id), choices_of(i, laws().front(), op, i),
                  {.dtypes = mask(DType::F64), .nonfinite = i % 2 == 1});
    });
  return at->second;
}

bool lanes_differ(const Op& op) { return batchable(op) && lanes_of(op).differ; }
/// Views are wrapped as mapped whatever their rule says.
bool computes_lanes(const Op& op) { return batchable(op) && !op.is_view() && lanes_of(op).single; }
bool takes_plain_tensor(const Op& op) {
  if (takes_type_alone(op)) return false;
  for (const uint8_t i : op.tensor_params)
    if (op.schema.params[i].kind == ParamKind::Tensor) return batchable(op);
  return false;
}
bool broadcasts_two(const Op& op) {
  return has_two_tensors(op) && op.shape == ShapeClass::Broadcast && !op.batch;
}

void lanes_reversed(BatchCall& b) {
  right_batch_rule(b);
  for (int k = 0; k < b.frame.op->schema.n_results; ++k)
    if (b.mapped[k]) b.results[k] = flip(b.results[k], {0});
}

void first_lane_for_all(BatchCall& b) {
  right_batch_rule(b);
  if (b.size == 0) return;
  for (int k = 0; k < b.frame.op->schema.n_results; ++k)
    if (b.mapped[k]) b.results[k] = expand(slice(b.results[k], 0, 0, 1), b.results[k].sizes());
}

void with_dims(BatchCall& b, int (*change)(const BatchCall&, int param)) {
  std::vector<int> dims(b.dims, b.dims + b.frame.op->schema.params.size());
  for (const uint8_t i : b.frame.op->tensor_params)
    if (!b.frame.none(i) && b.frame.op->schema.params[i].kind == ParamKind::Tensor) dims[i] = change(b, i);
  BatchCall wrong{b.frame, dims.data(), b.list_dims, b.size, b.logical, b.lane, b.results, b.list};
  right_batch_rule(wrong);
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
  right_batch_rule(b);
}

/// A batch of one is passed on as if it were no batch, its dim still there.
void single_lane_not_mapped(BatchCall& b) {
  right_batch_rule(b);
  if (b.size != 1) return;
  for (int k = 0; k < b.frame.op->schema.n_results; ++k) b.mapped[k] = false;
}

/// The mapped dim is looked for at the next dim.
void mapped_dim_off_by_one(BatchCall& b) {
  with_dims(b, [](const BatchCall& c, int i) {
    return c.is_mapped(i) ? (c.dims[i] + 1) % c.frame.tensor(i).rank() : BatchCall::kNotMapped;
  });
}

/// What all lanes share is repeated along the last dim, and taken for mapped along the first.
void shared_repeated_behind(BatchCall& b) {
  Values args = own(b.frame);
  std::vector<int> dims(b.dims, b.dims + args.size());
  for (const uint8_t i : b.frame.op->tensor_params) {
    auto* t = std::get_if<Tensor>(&args[i]);
    if (!t || !t->defined() || b.is_mapped(i)) continue;
    Dims sizes(t->sizes());
    sizes.push_back(b.size);
    *t = expand(unsqueeze(*t, -1), sizes);
    dims[i] = 0;
  }
  const BoxedArgs boxed(*b.frame.op, args);
  Frame frame = b.frame;
  frame.args = boxed.data();
  BatchCall wrong{frame, dims.data(), b.list_dims, b.size, b.logical, b.lane, b.results, b.list};
  right_batch_rule(wrong);
  std::copy(std::begin(wrong.mapped), std::end(wrong.mapped), b.mapped);
}

/// All lanes of one operand are given the first lane's.
void operand_of_first_lane(BatchCall& b) {
  Values args = own(b.frame);
  const int i = b.frame.op->tensor_params[size_t(live_bug.operand)];
  if (auto* t = std::get_if<Tensor>(&args[size_t(i)]); t && b.is_mapped(i) && b.size > 1)
    *t = expand(slice(*t, b.dims[i], 0, 1), t->sizes());
  const BoxedArgs boxed(*b.frame.op, args);
  Frame frame = b.frame;
  frame.args = boxed.data();
  BatchCall wrong{frame, b.dims, b.list_dims, b.size, b.logical, b.lane, b.results, b.list};
  right_batch_rule(wrong);
  std::copy(std::begin(wrong.mapped), std::end(wrong.mapped), b.mapped);
}
bool takes_no_list(const Op& op) { return lanes_differ(op) && op.simple; }

/// Right results, by a call for each lane: only who counts calls can see it.
void lane_by_lane(BatchCall& b) {
  if (b.size < 2) return right_batch_rule(b);
  const Op& op = *b.frame.op;
  std::vector<Tensors> lanes(size_t(op.schema.n_results));
  for (int64_t i = 0; i < b.size; ++i) {
    Values args = own(b.frame);
    for (const uint8_t k : op.tensor_params)
      if (auto* t = std::get_if<Tensor>(&args[k]); t && b.is_mapped(k)) *t = select(*t, b.dims[k], i);
    const Tensors ys = call_boxed(op, args);
    for (size_t k = 0; k < ys.size(); ++k) lanes[k].push_back(ys[k]);
  }
  for (size_t k = 0; k < lanes.size(); ++k) b.results[k] = stack(lanes[k], 0);
}
bool has_whole_lanes(const Op& op) {
  return batchable(op) && op.simple && !op.is_view() && !op.has(kUnspecified);
}

template <BatchFn R> void rule(Op& row) {
  live_bug.counted = true;
  row.batch = [](BatchCall& b) { reached(), R(b); };
}

}  // namespace

std::vector<Mutant> batch_mutants() {
  return {
      {"lanes_reversed", "batch", "The last lane's result comes first.", lanes_differ, rule<lanes_reversed>},
      {"first_lane_for_all", "batch", "Every lane gets the first lane's result.", lanes_differ,
       rule<first_lane_for_all>},
      {"mapped_dim_assumed_first", "batch", "The mapped dim is not moved to the front.", takes_plain_tensor,
       rule<mapped_dim_assumed_first>},
      {"mapped_dim_off_by_one", "batch", "The dim after the mapped one is moved to the front.",
       takes_plain_tensor, rule<mapped_dim_off_by_one>},
      {"dim_not_shifted", "batch", "A dim argument is not moved up by the mapped dim.", names_dims,
       rule<on_fronts>},
      {"ranks_not_aligned", "batch", "Mapped operands of different rank are not padded.", broadcasts_two,
       rule<on_fronts>},
      {"size_taken_for_lanes", "batch",
       "A dim with as many elements as there are lanes is taken for the mapped one.", has_two_tensors,
       rule<size_taken_for_lanes>},
      {"empty_batch_refused", "batch", "A batch of no lanes raises.", batchable, rule<empty_batch_refused>},
      {"single_lane_not_mapped", "batch", "A batch of one lane is passed on with its dim, unmapped.",
       computes_lanes, rule<single_lane_not_mapped>},
      {"shared_repeated_behind", "batch", "What lanes share is repeated along the wrong dim.",
       has_two_tensors, rule<shared_repeated_behind>},
      {"operand_of_first_lane", "batch", "All lanes are given the first lane's operand.", takes_no_list,
       rule<operand_of_first_lane>, tensor_bits},
      {"lane_by_lane", "batch", "Each lane is computed by a call of its own.", has_whole_lanes,
       rule<lane_by_lane>},
  };
}

}  // namespace lamella::verify
