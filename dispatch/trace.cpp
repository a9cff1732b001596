// Writing the dispatch trace.
#include "lamella/dispatch/trace.h"

namespace lamella {

std::string live_keys_text(KeySet keys) {
  std::string out = "{";
  for (int key = kKeyCount - 1; key >= 0; --key)
    if (keys.has(key)) out += (out.size() > 1 ? " " : "") + live_key_name(key);
  return out + "}";
}

namespace {
std::string argument_text(const Tensor& t) { return type_str(t) + " " + live_keys_text(KeySet(t.keys())); }

/// Masks of keys that are not live say nothing.
KeySet live_part(uint64_t bits) {
  const DispatchState& s = dispatch_state();
  const uint64_t live = ((uint64_t{1} << s.depth) - 1) << kFirstLevelKey;
  return KeySet(bits & (live | KeySet::of(kAutogradKey).bits));
}

/// Whether the call is no more than those that a composite's body makes, or a form's of a composite.
bool is_taken_apart(const Op& op, int key) {
  if (!op.composite) return false;
  const bool functional = op.form == OpForm::Functional;
  if (key < kAutogradKey) return op.served[key] == Served::Decompose || (!functional && !op.brought[key]);
  if (!functional || op.has_cell(key)) return false;
  const Transform* const t =
      is_level_key(key) ? dispatch_state().levels[key - kFirstLevelKey].transform : nullptr;
  return !t || !t->takes_composites;
}
}  // namespace

void Trace::on_call(const Frame& frame, KeySet, int chosen) {
  const Op& op = *frame.op;
  const DispatchState& state = dispatch_state();
  std::string line(size_t(depth_) * 2, ' ');
  line += op.name;
  for (const uint8_t i : op.tensor_params) {
    if (frame.none(i)) continue;
    line += "  " + op.schema.params[i].name + ": ";
    if (op.schema.params[i].kind == ParamKind::Tensor) {
      line += argument_text(frame.tensor(i));
      continue;
    }
    line += "[";
    for (const Tensor& t : frame.tensors(i)) line += (line.back() == '[' ? "" : ", ") + argument_text(t);
    line += "]";
  }
  line += "   exclude " + live_keys_text(live_part(state.exclude));
  uint64_t include = state.modes;
  if (op.properties & (kRandom | kAmbient)) include |= state.ambient;
  if (op.takes_functions) include |= live_levels().bits;  // and base autograd, always
  line += "  include " + live_keys_text(live_part(include));
  const bool composed = is_taken_apart(op, chosen);
  line += "   -> " + (composed ? std::string("composite") : live_key_name(chosen));
  text_ += line + "\n";
  ++depth_;
  ++calls_;
  if (!composed && chosen < kAutogradKey) ++kernels_;
}

void Trace::on_return(const Frame&) { --depth_; }

std::string trace(const std::function<void()>& f) {
  given(f, "trace");
  Trace observer;
  const ScopedObserver scope(&observer);
  f();
  return observer.text();
}

}  // namespace lamella
