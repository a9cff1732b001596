// See NOTE: [determinism].
#include "lamella/dispatch/determinism.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

#include "lamella/core/check.h"

namespace lamella {

namespace {

std::atomic<VaryingWatcher> varying_watcher{nullptr};

bool varies(const Column& c) { return c.now().varies; }

/// Forms of an operator with a cell of its own write what that gives: it is asked there.
bool is_guarded(const Op& op, const Column& c) {
  return varies(c) && (op.form == OpForm::Functional || c.now().kernel);
}

void say_once(const Op& op, int key, const std::string& text) {
  static std::mutex mutex;
  static std::set<std::pair<uint32_t, int>> said;
  const std::lock_guard lock(mutex);
  if (said.insert({op.base->id, key}).second) std::fprintf(stderr, "lamella: %s\n", text.c_str());
}

void warn(const Op& op, int key) {
  const std::string text = format("{}: kernel \"{}\" for {} may give other bits each time it is called",
                                  op.name, op.column(key)->now().name, key_name(key));
  if (const VaryingWatcher watcher = varying_watcher.load(std::memory_order_acquire)) watcher(text);
  else say_once(op, key, text);
}

void varying_cell(Frame& frame, int key) {
  const Op& op = *frame.op;
  const Column& column = *op.column(key);
  const Determinism asked = dispatch_state().determinism;
  if (asked == Determinism::Required) {
    LAMELLA_CHECK(!column.now().instead.empty(), NoKernel,
                  "{}: kernel \"{}\" for {} may give other bits each time it is called; expected one that "
                  "repeats: determinism is required",
                  op.name, column.now().name, key_name(key));
    Frame same{op.steady.get(), frame.args, frame.results, frame.list};
    return same.op->cells[key](same, key);
  }
  if (asked == Determinism::Warned) warn(op, key);
  column.usual(frame, key);
}

/// The alternative that stands in for one that varies, or else the first one: calls that it would serve are
/// refused before.
void choose_steady(Column& c) {
  const auto at = std::ranges::find(c.alternatives, c.now().instead, &Alternative::name);
  c.chosen = c.now().instead.empty() || at == c.alternatives.end() ? 0 : size_t(at - c.alternatives.begin());
}

}  // namespace

void guard_varying(Op& op, const KeyDefaults& defaults) {
  op.steady.reset();
  if (std::ranges::none_of(op.columns, varies)) return;
  auto row = std::make_shared<Op>(op);
  row->rules_of_types.clear();  // what a call runs below levels and base autograd has no derivatives
  for (Column& c : row->columns)
    if (varies(c)) choose_steady(c);
  if (op.form == OpForm::Functional) {
    row->base = row.get();
    take_kernels(*row);
  } else {
    LAMELLA_ASSERT(op.base->steady);  // it has the same columns
    row->base = op.base->steady.get();
    row->kernel = row->base->kernel;
  }
  fill_cells(*row, defaults);
  op.steady = std::move(row);
  for (Column& c : op.columns) {
    if (!is_guarded(op, c)) continue;
    c.usual = op.cells[c.key];
    op.cells[c.key] = varying_cell;
  }
}

bool only_varies(const Op& op, int key) {
  const Column* const column = op.base->column(key);
  return column && varies(*column) && column->now().instead.empty();
}

void watch_varying(VaryingWatcher watcher) { varying_watcher.store(watcher, std::memory_order_release); }

}  // namespace lamella
