// Wrong dispatch: cells that skip a level, serve levels in the wrong order, leave masks behind or call
// something else.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/operators.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/run/runner.h"

namespace lamella::verify {

namespace {

constexpr int kOutermost = kFirstLevelKey;

bool runs(const Op& op) { return !op.composite && takes_tensors(op) && op.cells[int(Device::CPU)]; }
bool computes(const Op& op) { return runs(op) && !op.view && op.schema.result_kind == ResultKind::Tensors; }
bool random_op(const Op& op) { return op.has(kRandom); }
bool takes_two(const Op& op) { return runs(op) && op.simple && op.tensor_params.size() >= 2; }

void right_cell(Frame& f, int key) {
  const Op* wrong = f.op;
  f.op = &right_row();
  right_row().cells[key](f, key);
  f.op = wrong;
}

const Wrapper* wrapper_of(const Tensor& t, int key) {
  if (!t.defined() || !(t.keys() >> key & 1)) return nullptr;
  const auto* w = static_cast<const Wrapper*>(t.impl()->wrap);
  return w && w->key == key ? w : nullptr;
}

/// The call one level down, on what the wrappers hold.
void call_unwrapped(Frame& f, int key) {
  Values args = own(f);
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      if (const Wrapper* w = wrapper_of(*t, key)) *t = Tensor(w->value);
    } else if (auto* ts = std::get_if<Tensors>(&v)) {
      for (Tensor& t : *ts)
        if (const Wrapper* w = wrapper_of(t, key)) t = Tensor(w->value);
    }
  }
  const Below below(key);
  const Tensors results = call_boxed(*f.op, args);
  if (f.op->schema.result_kind == ResultKind::TensorList) *f.list = results;
  else std::copy(results.begin(), results.end(), f.results);
}

void level_skipped(Frame& f, int key) {
  if (key == kOutermost) return call_unwrapped(f, key);
  right_cell(f, key);
}

/// One kind of transform does not see the operator.
enum class Kind { Vmap, Jvp, Grad };
template <Kind K> void kind_skipped(Frame& f, int key) {
  static constexpr std::string_view kNames[] = {"vmap", "jvp", "grad"};
  const Transform* transform = dispatch_state().levels[key - kFirstLevelKey].transform;
  if (transform && transform->name() == kNames[int(K)]) return call_unwrapped(f, key);
  right_cell(f, key);
}

void lower_level_first(Frame& f, int key) {
  const uint64_t below = keys_of(f).bits & ~KeySet::from(key).bits & ~dispatch_state().exclude;
  if (below >> kFirstLevelKey == 0) return right_cell(f, key);
  const Excluding masked(KeySet::of(key));
  call(f);
}

/// What a forgotten guard leaves behind: the outermost level stays masked.
void mask_left_behind(Frame& f, int key) {
  right_cell(f, key);
  dispatch_state().exclude |= KeySet::of(kOutermost).bits;
}

/// The level that has served the call stays masked.
void own_mask_left_behind(Frame& f, int key) {
  right_cell(f, key);
  dispatch_state().exclude |= KeySet::of(key).bits;
}

/// Backward through what was recorded outside all levels finds nothing.
void autograd_skipped(Frame& f, int key) {
  const Excluding masked(KeySet::of(key));
  call(f);
}

void dead_level_served(Frame& f, int key) {
  const LevelSlot& live = dispatch_state().levels[key - kFirstLevelKey];
  bool dead = false;
  for (const uint8_t i : f.op->tensor_params) {
    if (f.none(i) || f.op->schema.params[i].kind != ParamKind::Tensor) continue;
    const Wrapper* w = wrapper_of(f.tensor(i), key);
    dead |= w && w->serial != live.serial;
  }
  dead || !live.transform ? call_unwrapped(f, key) : right_cell(f, key);
}

/// Something a kernel needs is set up on the first thread that calls it, and on no other.
void first_thread_only(Frame& f, int key) {
  static std::atomic<std::thread::id> first;
  std::thread::id none;
  first.compare_exchange_strong(none, std::this_thread::get_id());
  right_cell(f, key);
  const Tensor& y = f.results[0];
  if (first == std::this_thread::get_id() || y.numel() == 0 || !y.is_contiguous()) return;
  std::memset(y.raw_data(), 1, size_t(y.numel() * itemsize(y.dtype())));
}

/// A level calls the row that it saw first, whatever was registered since.
void row_cached(Frame& f, int key) {
  static const Op first = *f.op;
  const Op* now = f.op;
  f.op = &first;
  right_row().cells[key](f, key);
  f.op = now;
}

/// A handle to every result is kept for ever.
void result_kept(Frame& f, int key) {
  right_cell(f, key);
  static thread_local std::vector<Tensor>* const kept = new std::vector<Tensor>;
  kept->push_back(f.results[0]);
}

/// Every error is a value error.
void code_forgotten(Frame& f, int key) {
  try {
    right_cell(f, key);
  } catch (const Error& e) { fail(ErrorCode::Value, "{}", e.what()); }
}

/// What is to be refused is accepted: the first argument comes back.
void refusal_swallowed(Frame& f, int key) {
  try {
    right_cell(f, key);
  } catch (const Error&) { f.results[0] = f.tensor(f.op->tensor_params[0]); }
}

/// Another operator of the same form, whose kernel a wrong alternative would be.
const Op* alternative_of(const Op& op) {
  for (const Op* other : OpTable::current().rows()) {
    if (other->form != OpForm::Functional || other->shape != op.shape || !other->kernel.cpu ||
        other->launch != op.launch)
      continue;
    if (other->kernel.cpu == op.kernel.cpu || other->infer != op.infer ||
        other->tensor_params != op.tensor_params)
      continue;
    if (other->schema.params.size() == op.schema.params.size() &&
        other->schema.n_results == op.schema.n_results)
      return other;
  }
  return nullptr;
}
bool has_alternative(const Op& op) { return computes(op) && op.kernel.cpu && alternative_of(op); }

void take_alternative(Op& row) {
  const Kernels& other = alternative_of(row)->kernel;
  row.kernel.cpu = other.cpu;
  row.kernel.lines = other.lines;
}

template <Cell C> void counted(Frame& f, int key) { reached(), C(f, key); }
template <Cell C> void at_levels(Op& row) {
  live_bug.counted = true;
  std::fill(row.cells + kFirstLevelKey, row.cells + kKeyCount, counted<C>);
}
template <int Key, Cell C> void at(Op& row) {
  live_bug.counted = true;
  row.cells[Key] = counted<C>;
}
template <Cell C> void on_cpu(Op& row) { at<int(Device::CPU), C>(row); }

void not_written(Frame& f, int) { f.results[0] = f.tensor(0); }
/// The write happens, and nobody can know: saved tensors that were overwritten are not noticed.
void write_not_counted(Frame& f, int key) {
  right_cell(f, key);
  Storage& storage = *f.tensor(0).impl()->storage;
  storage.version.fetch_sub(1, std::memory_order_relaxed);
}
bool has_in_place(const Op& op) { return runs(op) && OpTable::current().find(op.name + "_"); }
bool has_out(const Op& op) { return runs(op) && OpTable::current().find(op.name + "_out"); }

void meta_shape_reversed(Frame& f, int key) {
  right_cell(f, key);
  for (int k = 0; k < f.op->schema.n_results; ++k) {
    Dims sizes(f.results[k].sizes());
    std::reverse(sizes.begin(), sizes.end());
    f.results[k] = make_tensor(sizes, f.results[k].dtype(), Device::Meta);
  }
}

/// Without elements results are f64.
void meta_dtype_forgotten(Frame& f, int key) {
  right_cell(f, key);
  for (int k = 0; k < f.op->schema.n_results; ++k)
    f.results[k] = make_tensor(f.results[k].sizes(), DType::F64, Device::Meta);
}

void view_copied(Frame& f, int key) {
  right_cell(f, key);
  f.results[0] = plain_copy(f.results[0]);
}

/// Under a derivative the primal is computed anew, a little differently.
void primal_recomputed(Frame& f, int key) {
  right_cell(f, key);
  const Transform* transform = dispatch_state().levels[key - kFirstLevelKey].transform;
  if (transform->name() == "vmap" || f.op->schema.result_kind == ResultKind::TensorList) return;
  const Wrapper* w = wrapper_of(f.results[0], key);
  if (!w || !is_inexact(w->value.dtype())) return;
  const Below below(key);
  const_cast<Wrapper*>(w)->value = w->value * 1.0000002;
}
bool differentiable(const Op& op) { return computes(op) && has_vjp(op) && has_jvp(op); }

bool has_meta(const Op& op) { return computes(op) && op.shape != ShapeClass::Dynamic; }
/// Whether a result in drawn cases has other sizes when they are reversed.
bool has_long_meta(const Op& op) {
  bool turns = false;
  for (uint64_t i = 0; has_meta(op) && i < 100 && !turns; ++i)
    (void)status_of([&] {
      for (const Tensor& y : probe(Probe::Forward, op, choices_of(i, laws().front(), op, i), {}))
        for (int d = 0; d < y.rank(); ++d) turns |= y.size(d) != y.size(y.rank() - 1 - d);
    });
  return turns;
}

/// Rows where columns should be, when both are as long.
Geometry strides_swapped(const Frame& f, const Geometry& x) {
  Geometry g = right_row().view(f, x);
  const int last = g.sizes.size() - 1;
  if (last > 0 && g.sizes[0] == g.sizes[last]) std::swap(g.strides[0], g.strides[last]);
  return g;
}
/// Strides of a dense base, whatever the base has; only where such elements lie in its memory.
Geometry strides_forgotten(const Frame& f, const Geometry& x) {
  Geometry dense = x;
  int64_t last = 0, numel = 1;
  for (int d = 0; d < x.sizes.size(); ++d) last += (x.sizes[d] - 1) * x.strides[d], numel *= x.sizes[d];
  if (last >= numel - 1) dense.strides = contiguous_strides(x.sizes);
  return right_row().view(f, dense);
}

bool has_default(const Op& op) {
  for (const Param& p : op.schema.params)
    if (p.has_default && (p.kind == ParamKind::Bool || (p.kind == ParamKind::Int && !p.optional)))
      return runs(op);
  return false;
}
void default_changed(Op& row) {
  for (Param& p : row.schema.params) {
    if (!p.has_default) continue;
    if (bool* b = std::get_if<bool>(&p.default_value)) *b = !*b;
    else if (int64_t* i = std::get_if<int64_t>(&p.default_value)) *i = *i < 0 ? 0 : *i + 1;
  }
}

}  // namespace

std::vector<Mutant> dispatch_mutants() {
  return {
      {"level_skipped", "dispatch", "The outermost level does not see the operator.", runs,
       at_levels<level_skipped>},
      {"vmap_skipped", "dispatch", "vmap does not see the operator.", runs,
       at_levels<kind_skipped<Kind::Vmap>>},
      {"jvp_skipped", "dispatch", "jvp does not see the operator.", differentiable,
       at_levels<kind_skipped<Kind::Jvp>>},
      {"grad_skipped", "dispatch", "grad does not see the operator.", differentiable,
       at_levels<kind_skipped<Kind::Grad>>},
      {"autograd_skipped", "dispatch", "backward() does not see the operator.", differentiable,
       at<kAutogradKey, autograd_skipped>},
      {"lower_level_first", "dispatch", "With two levels, the outer one is served first.", runs,
       at_levels<lower_level_first>},
      {"mask_left_behind", "dispatch", "A mask is not restored when the kernel returns.", computes,
       on_cpu<mask_left_behind>},
      {"own_mask_left_behind", "dispatch", "A level stays masked after it has served a call.", runs,
       at_levels<own_mask_left_behind>},
      {"wrong_alternative", "dispatch", "The kernel of another operator is called.", has_alternative,
       take_alternative},
      {"argument_not_seen", "dispatch", "The keys of a tensor argument do not count.", takes_two,
       [](Op& r) { r.tensor_params.erase(r.tensor_params.begin() + live_bug.operand); }, tensor_bits},
      {"dead_level_served", "dispatch", "A wrapper of a level that has ended is opened.", runs,
       at_levels<dead_level_served>},
      {"randomness_not_ambient", "dispatch", "vmap does not see calls without mapped arguments.", random_op,
       [](Op& r) { r.properties &= ~uint32_t(kRandom); }},
      {"first_thread_only", "dispatch", "What a kernel needs is set up on the first thread alone.", computes,
       on_cpu<first_thread_only>},
      {"row_cached", "dispatch", "A level calls the row that it saw first, whatever was registered since.",
       runs, at_levels<row_cached>},
      {"result_kept", "dispatch", "Results are never freed.", computes, on_cpu<result_kept>},
      {"code_forgotten", "dispatch", "All errors of a kernel are value errors.", computes,
       on_cpu<code_forgotten>},
      {"refusal_swallowed", "dispatch", "Arguments that a kernel or its shape function refuses are accepted.",
       [](const Op& op) { return computes(op) && op.simple; }, on_cpu<refusal_swallowed>},
      {"view_strides_swapped", "dispatch", "A view of a square reads columns for rows.", is_view,
       [](Op& r) { r.view = strides_swapped; }},
      {"view_strides_forgotten", "dispatch", "A view takes its base for a dense one.", is_view,
       [](Op& r) { r.view = strides_forgotten; }},
      {"view_copied", "dispatch", "A view is a copy.", is_view, on_cpu<view_copied>},
      {"primal_recomputed", "dispatch", "A derivative changes the value it comes with.", differentiable,
       at_levels<primal_recomputed>},
      {"meta_shape_reversed", "dispatch", "Shapes without elements come out reversed.", has_long_meta,
       at<int(Device::Meta), meta_shape_reversed>},
      {"meta_dtype_forgotten", "dispatch", "Results without elements are f64.", has_meta,
       at<int(Device::Meta), meta_dtype_forgotten>},
      {"default_changed", "dispatch", "Boxed calls fill in another default.", has_default, default_changed},
      {"in_place_not_written", "dispatch", "The in-place form computes and does not store.", has_in_place,
       on_cpu<not_written>, nullptr, OpForm::InPlace},
      {"out_not_written", "dispatch", "The out= form computes and does not store.", has_out,
       on_cpu<not_written>, nullptr, OpForm::Out},
      {"in_place_not_counted", "dispatch", "An in-place write does not change the version.", has_in_place,
       on_cpu<write_not_counted>, nullptr, OpForm::InPlace},
      {"out_not_counted", "dispatch", "A write to out= does not change the version.", has_out,
       on_cpu<write_not_counted>, nullptr, OpForm::Out},
  };
}

}  // namespace lamella::verify
