// The law of traces: what is written of a call is what an observer of its own sees of it.
#include "lamella/dispatch/trace.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

struct Interruption {};

/// Keys by their names, highest first.
std::string names_of(uint64_t bits) {
  const DispatchState& s = dispatch_state();
  std::string out;
  for (int key = kKeyCount; key-- > 0;) {
    if (!(bits >> key & 1)) continue;
    if (!out.empty()) out += ' ';
    const int level = key - kFirstLevelKey;
    if (key == kAutogradKey) out += "autograd";
    else if (level < 0) out += name(Device(key));
    else if (s.levels[level].transform) out += format("{}#{}", s.levels[level].transform->name(), level + 1);
    else out += format("level#{}", level + 1);
  }
  return "{" + out + "}";
}

/// Writes each call down a second time, lets the trace write it, too, and ends all of them at one.
class Recorder final : public Observer {
 public:
  explicit Recorder(uint64_t ends_at) : ends_at_(ends_at) {}

  void on_call(const Frame& frame, KeySet keys, int chosen) override {
    const Op& op = *frame.op;
    std::string line(2 * open_, ' ');
    line += op.name;
    for (size_t i = 0; i < op.schema.params.size(); ++i) {
      const Param& p = op.schema.params[i];
      const bool list = p.kind == ParamKind::TensorList;
      if ((p.kind != ParamKind::Tensor && !list) || !frame.args[i]) continue;
      std::string of;
      if (!list) of = argument(frame.arg<Tensor>(int(i)));
      else
        for (const Tensor& t : frame.arg<TensorSpan>(int(i))) of += (of.empty() ? "" : ", ") + argument(t);
      line += "  " + p.name + ": " + (list ? "[" + of + "]" : of);
    }
    const DispatchState& s = dispatch_state();
    uint64_t live = 0, include = s.modes;
    for (int k = 0; k < s.depth; ++k)
      if (s.levels[k].transform) live |= uint64_t{1} << (kFirstLevelKey + k);
    if (op.has(kRandom) || op.has(kAmbient)) include |= s.ambient;
    if (op.takes_functions) include |= live;
    const uint64_t shown = live | uint64_t{1} << kAutogradKey;
    line += "   exclude " + names_of(s.exclude & shown) + "  include " + names_of(include & shown);
    const bool backend = chosen < kAutogradKey;
    const Column* const column = op.column(chosen);
    const bool own =
        (backend && op.brought[chosen]) || (column && op.form == OpForm::Functional && column->chosen > 0);
    const bool body = op.composite && !own &&
                      (chosen == int(Device::CPU) || op.cells[chosen] == op.cells[int(Device::Meta)] ||
                       (is_level_key(chosen) && op.form == OpForm::Functional));
    std::string to = names_of(uint64_t{1} << chosen);
    to = body ? "composite" : to.substr(1, to.size() - 2);
    text_ += line + "   -> " + to + "\n";
    kernels_ += backend && !body;
    ++calls_, ++open_;
    trace_.on_call(frame, keys, chosen);
  }
  void on_result(const Frame&) override {
    if (++results_ == ends_at_) throw Interruption{};
  }
  void on_return(const Frame& frame) override {
    --open_;
    trace_.on_return(frame);
  }

  /// Between calls of the program: none is open.
  void between() {
    if (open_ != 0 && wrong_.empty()) wrong_ = format("{} calls were never said to end", int64_t(open_));
  }
  Finding wrong() const {
    if (!wrong_.empty()) return wrong_;
    if (trace_.calls() != calls_) return format("{} calls, expected {}", trace_.calls(), calls_);
    if (trace_.kernels() != kernels_) return format("{} kernels, expected {}", trace_.kernels(), kernels_);
    return trace_.text() == text_ ? "" : "the trace is\n" + trace_.text() + "expected\n" + text_;
  }
  uint64_t results() const { return results_; }
  int calls() const { return calls_; }

 private:
  static std::string argument(const Tensor& t) { return type_str(t) + " " + names_of(t.keys()); }

  const uint64_t ends_at_;
  Trace trace_;
  std::string text_, wrong_;
  size_t open_ = 0;
  int calls_ = 0, kernels_ = 0;
  uint64_t results_ = 0;
};

/// Calls without tensors are told, too: of an operator for which nobody but the backend is there. (A number:
/// its layout is nobody's, and the wrong one is planted elsewhere.)
Finding factory_unseen() {
  Recorder seen(0);
  const ScopedObserver scope(&seen);
  (void)zeros({}, DType::F64);
  seen.between();
  return seen.calls() > 0 ? seen.wrong() : "of a call that takes no tensors an observer is told nothing";
}

/// The function, ended at one of its calls, and once more.
Verdict traces_tell(Case& c) {
  std::optional<DrawnFunction> d = draw_function(c);
  if (!d) return Verdict::discard();
  const uint32_t w = c.draw.word();
  if (status_of([&] { d->f(d->xs); }).raised) return Verdict::discard();
  Recorder whole(0);
  {
    const ScopedObserver scope(&whole);
    d->f(d->xs);
    whole.between();
  }
  Finding wrong = whole.wrong();
  if (wrong.empty() && whole.results() > 0) {
    Recorder ended(1 + w % whole.results());
    const ScopedObserver scope(&ended);
    try {
      d->f(d->xs);
    } catch (const Interruption&) {}
    ended.between();
    d->f(d->xs);
    ended.between();
    wrong = ended.wrong();
  }
  if (wrong.empty()) wrong = factory_unseen();
  if (wrong.empty()) return Verdict::pass(d->depth);
  return Verdict::fail(wrong, d->program, d->depth);
}

bool any_op(const Op& op) { return takes_tensors(op); }

}  // namespace

void add_trace_laws(std::vector<Law>& laws) {
  laws.push_back(
      {127,
       "traces_tell",
       "dispatch",
       "A trace has, in their order and nesting, the calls that an observer sees, with types, keys, "
       "masks and cells, also where calls end by an exception, and counts them and their kernels.",
       {.tame = true, .max_numel = 6},
       false,
       any_op,
       traces_tell});
}

}  // namespace lamella::verify
