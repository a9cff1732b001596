// The cells that dispatch brings, and which key gets which.
#include "lamella/dispatch/cells.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lamella/dispatch/call.h"
#include "lamella/dispatch/determinism.h"
#include "lamella/dispatch/frame_copy.h"

namespace lamella {

namespace {

ClassHooks class_hooks;
Cell autograd_cell = nullptr, autograd_function_cell = nullptr;
std::atomic<Cell> override_watch{nullptr};

Transform& transform_at(const Frame& frame, int key) {
  Transform* const transform = dispatch_state().levels[key - kFirstLevelKey].transform;
  if (!transform) [[unlikely]]
    raise_escaped(frame, key);
  return *transform;
}
void level_cell(Frame& frame, int key) { transform_at(frame, key).call(frame, key); }
void level_cell_with_functions(Frame& frame, int key) {
  transform_at(frame, key).call_with_functions(frame, key);
}

/// Of rows that say what they are about. Their bodies ask tensors for sizes and dtypes before any backend
/// sees them, and would speak of the operators that they call.
void defined_composite_cell(Frame& frame, int) {
  bool usual = frame.op->simple;
  Device first = Device::CPU;
  for (const uint8_t i : frame.op->tensor_params) {
    const TensorImpl* const t = usual && frame.args[i] ? frame.arg<Tensor>(i).impl() : nullptr;
    usual = t && (i == frame.op->tensor_params[0] || t->device == first);
    if (t) first = t->device;
  }
  if (!usual) [[unlikely]] {
    check_defined(frame);
    const DispatchState& state = dispatch_state();
    if (!(state.modes & ~state.exclude)) check_one_device(frame);  // a mode may move what the body hands it
  }
  frame.op->composite(frame);
}
/// Likewise where all tensors are on the CPU, as its key says, and arguments `i` are those that must be
/// there.
template <int... i> void cpu_composite_cell(Frame& frame, int) {
  if (!(frame.arg<Tensor>(i).defined() && ...)) [[unlikely]]
    check_defined(frame);
  frame.op->composite(frame);
}
void composite_cell(Frame& frame, int) { frame.op->composite(frame); }
void body_cell(Frame& frame, int) { frame.op->body(frame); }

/// A transform that takes composites whole (a mode that counts layer_norm, say) is asked before they are
/// taken apart.
void composite_level_cell(Frame& frame, int key) {
  Transform* const transform = dispatch_state().levels[key - kFirstLevelKey].transform;
  if (transform && transform->takes_composites) return transform->call(frame, key);
  const bool asked = frame.op->infer && !frame.op->tensor_params.empty();
  asked ? defined_composite_cell(frame, key) : composite_cell(frame, key);
}

void autograd_thunk(Frame& frame, int key) {
  LAMELLA_ASSERT(autograd_cell);
  autograd_cell(frame, key);
}

/// Such operators come here whatever their arguments carry, so also in programs without base autograd.
void autograd_function_thunk(Frame& frame, int key) {
  if (autograd_function_cell) return autograd_function_cell(frame, key);
  const Below below(key);
  call(frame);
}

}  // namespace

/// Of what somebody else wrote: levels and forms look at results without asking. A form's own is its target.
void detail::check_given(const Frame& frame, int key) {
  const bool fills = frame.op->form == OpForm::Functional;
  if (!fills || frame.op->schema.result_kind == ResultKind::TensorList) return;
  for (int k = 0; k < frame.op->schema.n_results; ++k)
    LAMELLA_CHECK(frame.results[k].defined(), Undefined,
                  "{}: what serves it for {} left result {} undefined; expected a tensor", frame.op->name,
                  key_name(key), k);
}

namespace {

/// A cell that somebody brought for a device is spared what the library's own cells do of themselves.
void entered_cell(Frame& frame, int key) {
  if (class_hooks.enter && !class_hooks.enter(frame, key)) return;
  const bool held = frame.op->composite && frame.op->has_cell(key);
  const Cell watch = held ? override_watch.load(std::memory_order_acquire) : nullptr;
  if (watch) [[unlikely]]
    return watch(frame, key);
  frame.op->brought[key](frame, key);
  detail::check_given(frame, key);
}

void missing_cell(Frame& frame, int key) {
  const int at = frame.op->device_param;
  LAMELLA_CHECK(
      at < 0 || frame.none(at) || int(frame.arg<Device>(at)) != key, NoKernel,
      "{}: device = {} has no kernel of it; expected cpu, reference, meta or a device that a plug-in serves",
      frame.op->name, key_name(key));
  std::string args;
  for (const Value& v : own(frame)) args += (args.empty() ? "" : ", ") + str(v);
  fail(ErrorCode::NoKernel, "{}: no kernel for key {} with arguments ({})", frame.op->name,
       live_key_name(key), args);
}

struct Serving {
  Cell cell = nullptr;
  Served by = Served::Hole;
};

/// How the class runs the operator on results that it allocates.
Cell class_cell(const Op& op) {
  if (op.form == OpForm::InPlace) return class_hooks.in_place;
  if (op.form == OpForm::Out) return class_hooks.out;
  return op.view ? class_hooks.view : op.composite ? class_hooks.kernel : class_hooks.backend;
}

/// What somebody brought for the operator itself.
Cell own_cell(const Op& op, int key) {
  const Column* const column = op.column(key);
  return column ? column->now().cell : nullptr;
}

/// What somebody brought for the class.
Cell cell_of_class(const Op& op, int key, const KeyDefaults& defaults) {
  for (const KeyDefaults::OfClass& c : defaults.classes)
    if (c.key == key && c.shape == op.base->shape) return c.cell;
  return nullptr;
}

/// Forms have no cells of their own: they write what the functional row gives. `looks`: the cell looks at its
/// arguments itself.
Cell entered(const Op& op, int key, Cell cell, bool looks) {
  if (op.form != OpForm::Functional) return class_cell(op);
  return kBackendKeys.has(key) && !looks ? entered_cell : cell;
}

/// The first line of the note.
Serving explicit_cell(const Op& op, int key) {
  const Column* const column = op.column(key);
  if (!column) return {};
  const Alternative& now = column->now();
  if (now.cell) return {entered(op, key, now.cell, now.asks_itself), Served::Explicit};
  if (now.kernel && column->chosen > 0) return {class_cell(op), Served::Explicit};
  return {};
}

/// The second. What has no kernel in this library, but a launch, knows host memory and asks the entries of
/// the CPU and of the oracle itself.
Serving of_class(const Op& op, int key) {
  if (!kBackendKeys.has(key)) return {};
  const auto device = Device(key);
  if (op.form == OpForm::Functional && op.composite) {
    // A definition's results lie in memory of their own, a view's may not.
    const bool defined = device == Device::Reference && op.kernel.reference && !op.schema.returns_alias;
    return defined ? Serving{class_hooks.backend, Served::Class} : Serving{};
  }
  if (!(op.composite || op.view || op.kernel.cpu || op.launch)) return {};
  bool runs = op.view || op.composite || op.has(kAnyDevice) || op.kernel.on(device);
  if (device == Device::CPU) runs = true;
  if (device == Device::Reference) runs = runs || !op.kernel.cpu;
  if (device == Device::Meta) {
    const bool plain = !op.view && op.form == OpForm::Functional;
    return {plain ? class_hooks.meta : class_cell(op), Served::Class};
  }
  return runs ? Serving{class_cell(op), Served::Class} : Serving{};
}

/// The third.
Serving decomposed(const Op& op, int key) {
  if (op.form != OpForm::Functional || !op.composite) return {};
  const bool asked = op.infer && !op.tensor_params.empty();
  Serving s{asked ? defined_composite_cell : composite_cell, Served::Decompose};
  if (asked && op.simple && key == int(Device::CPU)) {
    std::vector<uint8_t> needed;
    for (const uint8_t i : op.tensor_params)
      if (!op.schema.params[i].optional) needed.push_back(i);
    if (needed == std::vector<uint8_t>{0}) s.cell = cpu_composite_cell<0>;
    if (needed == std::vector<uint8_t>{0, 1}) s.cell = cpu_composite_cell<0, 1>;
  }
  return s;
}

/// The others.
Serving beneath(const Op& op, int key, const KeyDefaults& defaults) {
  if (const Cell c = cell_of_class(op, key, defaults)) return {entered(op, key, c, false), Served::Class};
  if (const Serving s = of_class(op, key); s.cell) return s;
  if (const Serving s = decomposed(op, key); s.cell) return s;
  if (op.body) return {body_cell, Served::Decompose};
  if (const Cell c = defaults.fallback[key]) return {c, Served::Fallback};
  return {missing_cell, Served::Hole};
}

bool is_composite(const Op& op) { return op.form == OpForm::Functional && op.composite; }

Cell beneath_at_autograd(const Op& op) {
  if (is_composite(op)) return decomposed(op, kAutogradKey).cell;
  return op.body ? autograd_function_thunk : autograd_thunk;
}

/// Of a row without rules for types. What somebody brought is the functional row's; forms record as usual.
Cell recording_cell(const Op& op, int key) {
  const Column* const column = op.form == OpForm::Functional ? op.column(key) : nullptr;
  if (column && column->now().cell) return column->now().cell;
  if (key == kAutogradKey) return beneath_at_autograd(op);
  return is_composite(op) ? composite_level_cell : op.body ? level_cell_with_functions : level_cell;
}

/// What records calls, at a level or the base, takes the formulas of the highest type among the arguments.
void cell_by_type(Frame& frame, int key) {
  const KeySet keys = keys_of(frame);
  const auto& rules = frame.op->rules_of_types;
  const auto of = std::ranges::find_if(rules, [&](const RulesOfType& r) { return keys.has(r.key); });
  if (of == rules.end()) return recording_cell(*frame.op, key)(frame, key);
  Frame same{of->row.get(), frame.args, frame.results, frame.list};
  recording_cell(*same.op, key)(same, key);
}

}  // namespace

void fill_cells(Op& op, const KeyDefaults& defaults) {
  for (Column& c : op.columns) {
    c.beneath = c.key == kAutogradKey ? beneath_at_autograd(op) : beneath(op, c.key, defaults).cell;
    // Somebody has looked at its arguments.
    if (c.beneath == entered_cell) c.beneath = cell_of_class(op, c.key, defaults);
  }
  for (int key = 0; key < kAutogradKey; ++key) {
    Serving s = explicit_cell(op, key);
    op.brought[key] = own_cell(op, key);
    if (!s.cell) op.brought[key] = cell_of_class(op, key, defaults);
    if (!s.cell) s = beneath(op, key, defaults);
    op.cells[key] = s.cell;
    op.served[key] = s.by;
  }
  for (int key = kAutogradKey; key < kKeyCount; ++key)
    op.cells[key] = op.rules_of_types.empty() ? recording_cell(op, key) : cell_by_type;
  guard_varying(op, defaults);
}

namespace {
/// What runs beneath an operator's own cell, its class's perhaps, has nothing beneath itself.
struct Beneath {
  const Frame* frame = nullptr;
  int key = 0;
};
thread_local Beneath beneath_own;

class RunsBeneath {
 public:
  RunsBeneath(const Frame& frame, int key) : outer_(std::exchange(beneath_own, {&frame, key})) {}
  ~RunsBeneath() { beneath_own = outer_; }
  RunsBeneath(const RunsBeneath&) = delete;

 private:
  Beneath outer_;
};
}  // namespace

void call_built_in(Frame& frame, int key) {
  const Column* const column = frame.op->column(key);
  const bool is_beneath = beneath_own.frame == &frame && beneath_own.key == key;
  LAMELLA_CHECK(column && column->now().cell && column->beneath && !is_beneath, Usage,
                "{}: call_built_in: no cell of the operator's own runs for {}; expected a call from one",
                frame.op->name, key_name(key));
  const RunsBeneath scope(frame, key);
  column->beneath(frame, key);
}

void empty_cells(Op& op) {
  for (Cell& cell : op.cells) cell = missing_cell;
  for (Cell& cell : op.brought) cell = nullptr;
  for (Served& s : op.served) s = Served::Hole;
}

void fall_through(Frame& frame, int key) {
  const Excluding without(KeySet::of(key));
  call(frame);
}

std::string_view name(Served s) {
  static constexpr std::string_view kNames[] = {"explicit", "class", "decompose", "fallback", "hole"};
  return kNames[int(s)];
}

void watch_overrides(Cell watch) { override_watch.store(watch, std::memory_order_release); }

void set_class_hooks(const ClassHooks& hooks) { class_hooks = hooks; }
const ClassHooks& installed_class_hooks() { return class_hooks; }
void set_autograd_cell(Cell cell) { autograd_cell = cell; }
void set_autograd_function_cell(Cell cell) { autograd_function_cell = cell; }

}  // namespace lamella
