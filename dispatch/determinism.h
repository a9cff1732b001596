// Kernels that may give other bits each time: where they may not, they are refused, or others run.
#pragma once

#include "lamella/dispatch/cells.h"
#include "lamella/dispatch/state.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [determinism] A kernel or cell that adds in the order in which threads come says so
/// (Alternative::varies), and may name an alternative of its column that stands in for it (`instead`). While
/// this thread requires determinism, a call that would run it runs that one, or is refused (no_kernel) with
/// the operator, the alternative and its key; a warned one runs, and the watcher is told. Nobody else is
/// asked: only cells of columns that vary look at the state. Captured states carry it. Nothing that the
/// library has for the CPU varies, with however many threads (NOTE: [threads of kernels]).
///
///     const Deterministic on(true);  // to the end of the scope, on this thread
class Deterministic {
 public:
  explicit Deterministic(bool on) : Deterministic(on ? Determinism::Required : Determinism::Any) {}
  explicit Deterministic(Determinism asked) : saved_(dispatch_state().determinism) {
    LAMELLA_CHECK(asked <= Determinism::Required, Value,
                  "Deterministic: asked = Determinism({}); expected Any, Warned or Required", int(asked));
    dispatch_state().determinism = asked;
  }
  ~Deterministic() { dispatch_state().determinism = saved_; }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  Determinism saved_;
};

/// Whether calls at `key` are refused where determinism is required: what runs varies, and nothing stands in.
bool only_varies(const Op& op, int key);

/// Told of each call that Determinism::Warned warns of, on its thread. It may not raise.
using VaryingWatcher = void (*)(const std::string& text);
/// Null, as at first: a line on the standard error output, one for each operator and key.
void watch_varying(VaryingWatcher watcher);

/// The last step of fill_cells: cells that vary get one in front of them that looks at the state, and the row
/// gets what stands in for it.
void guard_varying(Op& op, const KeyDefaults& defaults);

}  // namespace lamella
LAMELLA_API_END
