// What happens between an operator and the levels: history lost, levels taken for each other, guards
// forgotten.
#include <atomic>
#include <thread>

#include "lamella/mutate/museum/plant.h"
#include "lamella/ops/functions/copy.h"

namespace lamella::verify {

namespace {

bool differentiates(int key) { return transform_at(key) == "grad" || transform_at(key) == "jvp"; }

void lanes_without_history(Frame& f, int key) {
  right_cell(f, key);
  Wrapper* w = wrapper_of(f.results[0], key);
  if (w && transform_at(key) == "vmap") w->value = constant(w->value);
}

int lanes_below(const Tensor& t) {
  if (!(t.keys() >> kFirstLevelKey)) return 0;
  const auto* w = static_cast<const Wrapper*>(t.impl()->wrap);
  return int(transform_at(w->key) == "vmap") + lanes_below(w->value);
}

template <int Lanes> void no_history_in_lanes(Frame& f, int key) {
  right_cell(f, key);
  const Wrapper* w = wrapper_of(f.results[0], key);
  if (!w || !differentiates(key) || lanes_below(w->value) < Lanes) return;
  f.results[0] = Tensor(w->value);
}

/// What a guard does, without the guard.
void masked_by_hand(Frame& f, int key) {
  const uint64_t before = dispatch_state().exclude;
  dispatch_state().exclude |= KeySet::of(kKeyCount - 1).bits;
  right_cell(f, key);
  dispatch_state().exclude = before;
}

/// Batch rules are set up by the first thread that asks for one.
void set_up_once(Frame& f, int key) {
  static std::atomic<std::thread::id> first;
  std::thread::id none;
  if (transform_at(key) == "vmap") first.compare_exchange_strong(none, std::this_thread::get_id());
  const bool known = transform_at(key) != "vmap" || first == std::this_thread::get_id();
  LAMELLA_CHECK(known, NoKernel, "{}: no batch rule in this thread", f.op->name);
  right_cell(f, key);
}

void inner_hides_outer(Frame& f, int key) {
  right_cell(f, key);
  Wrapper* w = wrapper_of(f.results[0], key);
  if (w && transform_at(key) == "grad") w->value = constant(w->value, "grad");
}

/// An operand of an outer level makes the inner level take the whole product for its constant.
void outer_taken_for_constant(Frame& f, int key) {
  bool outer_only = false;
  for (const uint8_t i : f.op->tensor_params)
    outer_only |= !wrapper_of(f.tensor(i), key) && !constant(f.tensor(i)).is_same(f.tensor(i));
  outer_only&& differentiates(key) ? call_unwrapped(f, key) : right_cell(f, key);
}

/// Tangents are handed over packed: the only one there is belongs to the first operand.
void packed_tangents(Frame& f, int key) {
  const bool second_alone = !wrapper_of(f.tensor(0), key) && wrapper_of(f.tensor(1), key);
  if (transform_at(key) != "jvp" || !second_alone) return right_cell(f, key);
  static const Op* const packed = [] {
    auto* row = new Op(right("pow"));  // rows are never freed
    row->jvp[1] = row->jvp[0];
    row->jvp[1].input = 1;
    return row;
  }();
  Frame wrong{packed, f.args, f.results, f.list};
  right_cell(wrong, key);
}

void symbolic_zero_wins(Frame& f, int key) {
  right_cell(f, key);
  const Wrapper* w = wrapper_of(f.results[0], key);
  const bool both = wrapper_of(f.tensor(0), key) && wrapper_of(f.tensor(1), key);
  if (w && !both && transform_at(key) == "jvp") f.results[0] = Tensor(w->value);
}

void scalars_in_default_dtype(Frame& f, int key) {
  right_cell(f, key);
  Wrapper* w = wrapper_of(f.results[0], key);
  if (!w || transform_at(key) != "jvp" || w->value.rank() > 0) return;
  const Below below(key);
  if (is_floating(w->value.dtype())) w->value = to(w->value, dispatch_state().default_dtype);
}

void read_and_cut(Frame& f) {
  const Tensor& x = f.tensor(0);
  f.results[0] = x.is_contiguous() ? x : clone(constant(x));
}

void copy_kept(Frame& f, int key) {
  right_cell(f, key);
  f.results[0].impl()->retain();  // one handle more than there are
}

/// A scope without recording stops cotangents alone.
void tangents_pass(Op& r) {
  r.jvp.push_back(bind(r, wrt("x", [](Tensor t) { return t; })));
}

}  // namespace

void add_level_exhibits(std::vector<Exhibit>& list) {
  const Wing wing{list, "level"};
  constexpr std::string_view kPerLane = "derivatives_per_lane";
  wing.add("custom_skips_transforms", "ft#207 pt#68060", "log_softmax", "jvp_equals_differences",
           at_levels<call_unwrapped>, "A user's operator runs below all transforms, which never see it.");
  wing.add("lanes_without_history", "pt#102720", "tanh", kPerLane, at_levels<lanes_without_history>,
           "Under vmap an operator's result loses its derivative.");
  wing.add("zeros_under_vmap", "ft#847 ft#922", "sin", kPerLane, at_levels<no_history_in_lanes<1>>,
           "vmap over a backward pass returns zeros and raises nothing.");
  wing.add("depth_three_alone", "ft#842", "mul", "stacks", at_levels<no_history_in_lanes<2>>,
           "A derivative under two vmaps is lost, under one it is right.");
  wing.add("unbalanced_after_exception", "pt#149801 pt#130362", "add", "dead_levels",
           at_levels<masked_by_hand>, "An exception leaves the thread's dispatch state changed.");
  wing.add("set_up_once", "pt#113520", "sum", "threads_are_apart", at_levels<set_up_once>,
           "Batch rules are registered lazily; a second thread does not find them.");
  wing.add("inner_hides_outer", "pt#32576", "mul", "stacks", at_levels<inner_hides_outer>,
           "A gradient of a gradient is zero: the inner level hides the outer one.");
  wing.add("outer_taken_for_constant", "ForwardDiff#83 ForwardDiff#443 ForwardDiff#238 ReverseDiff#45", "mul",
           "no_confusion", at_levels<outer_taken_for_constant>,
           "Perturbations of nested levels are confused.");
  wing.add("packed_tangents", "mlx#3634 mlx#3636 mlx#4200", "pow", "vjp_is_adjoint",
           at_levels<packed_tangents>,
           "With the second operand traced alone, its tangent takes the first one's formula.");
  wing.add("symbolic_zero_wins", "jax#37377", "add", "vjp_is_adjoint", at_levels<symbolic_zero_wins>,
           "An operand without tangent makes the result's tangent zero.");
  wing.add("scalars_in_default_dtype", "pt#160513 pt#90065", "mul", "primals_are_plain",
           at_levels<scalars_in_default_dtype>, "Forward mode changes the dtype of results of rank 0.");
  wing.add("read_and_cut", "mlx#610", "contiguous", "vjp_equals_differences",
           put<&Op::composite, read_and_cut>, "Looking at the values cuts the graph: a zero gradient.");
  wing.add("copy_kept", "mlx#2841 mlx#3290", "exp", "state_restored", at_levels<copy_kept>,
           "Copies of traced values are never freed.");
  wing.add("no_grad_lets_tangents_pass", "pt#128600", "exp", "constants_stay", tangents_pass,
           "no_grad stops reverse mode alone: tangents pass, and jacfwd differs from jacrev.",
           OpForm::Functional, "detach");
}

}  // namespace lamella::verify
