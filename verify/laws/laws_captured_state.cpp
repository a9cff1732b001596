// The law of captured states: a scope of one is the state that was captured, whole, and ends where it began.
#include <memory>
#include <optional>
#include <thread>

#include "lamella/core/generator.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/inference.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"

namespace lamella::verify {

namespace {

class Silent final : public Transform {
 public:
  explicit Silent(TransformKind kind) : kind_(kind) {}
  TransformKind kind() const override { return kind_; }
  std::string_view name() const override { return "silent"; }
  void call(Frame& frame, int key) override {
    const Below below(key);
    lamella::call(frame);
  }

 private:
  TransformKind kind_;
};

/// Levels, keys, settings and a mode, as drawn, until it ends.
class OddState {
 public:
  explicit OddState(Draw& d) : before_(dispatch_state()) {
    const uint32_t depth = d.below(4);
    const bool around = d.flag();
    if (around) outer_.emplace(d.flag());
    for (uint32_t k = 0; k < depth; ++k) {
      transforms_.push_back(std::make_unique<Silent>(TransformKind(d.below(3))));
      levels_.push_back(d.one_in(3) ? above_a_gap(*transforms_.back(), int(d.below(3)))
                                    : std::make_unique<Level>(*transforms_.back()));
    }
    if (!around && d.flag()) inner_.emplace(true);
    DispatchState& s = dispatch_state();
    s.exclude ^= bits(d), s.modes ^= bits(d), s.ambient ^= bits(d);
    const uint32_t odd = d.below(4);
    if (odd & 1) s.default_dtype = DType::F64;
    if (odd & 2) s.default_device = Device::Reference;
    s.determinism = Determinism(odd % 3);
    s.random_stream = uint8_t(1 + odd % 2);
    if (d.flag()) s.table = &OpTable::current();
  }
  ~OddState() {
    DispatchState& s = dispatch_state();
    s.settings() = before_;
    inner_.reset();
    while (!levels_.empty()) levels_.pop_back();
    outer_.reset();
    s.exclude = before_.exclude, s.modes = before_.modes, s.ambient = before_.ambient;
    s.table = before_.table;
  }
  OddState(const OddState&) = delete;

 private:
  /// As a level that is entered again after those below it have ended.
  static std::unique_ptr<Level> above_a_gap(Transform& t, int gap) {
    const uint64_t serial = Level(t).serial();
    return std::make_unique<Level>(t, kFirstLevelKey + dispatch_state().depth + gap, serial);
  }
  static uint64_t bits(Draw& d) { return (uint64_t(d.word()) << 32 | d.word()) & d.word(); }
  const DispatchState before_;
  std::vector<std::unique_ptr<Silent>> transforms_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::optional<InferenceMode> outer_, inner_;  ///< of the levels
};

/// What a captured state is to carry (docs/thread_state.md).
struct Carried {
  DispatchState state = dispatch_state();
  uint64_t birth = detail::birth_serial;
  KeySet live = live_levels();

  Finding differs(const Carried& want) const {
    const auto wrong = [](const char* what, uint64_t a, uint64_t b) {
      return format("{}: got {}, expected {}", what, a, b);
    };
    if (state.exclude != want.state.exclude) return wrong("masked keys", state.exclude, want.state.exclude);
    if (state.modes != want.state.modes) return wrong("keys of modes", state.modes, want.state.modes);
    if (state.ambient != want.state.ambient) return wrong("ambient keys", state.ambient, want.state.ambient);
    if (state.depth != want.state.depth)
      return wrong("levels", uint64_t(state.depth), uint64_t(want.state.depth));
    if (state.table != want.state.table) return "another table is pinned";
    if (state.settings() != want.state) return state.differs(want.state);
    for (int k = 0; k < kMaxLevels; ++k) {
      const LevelSlot &a = state.levels[k], &b = want.state.levels[k];
      if (a.transform != b.transform || a.serial != b.serial) return format("level {} is another one", k);
    }
    for (int k = 0; k < kMaxLevels; ++k)
      if (live.has(kFirstLevelKey + k) != bool(want.state.levels[k].transform))
        return format("live_levels() has {} level {}", live.has(kFirstLevelKey + k) ? "a dead" : "no", k);
    if (birth != want.birth) return wrong("serial for new memory", birth, want.birth);
    return "";
  }
  /// Likewise all that a thread has.
  Finding whole_differs(const Carried& want) const {
    if (Finding d = differs(want); !d.empty()) return d;
    if (state.captured_at != want.state.captured_at || state.captured_depth != want.state.captured_depth)
      return "it still counts as acting for another thread";
    if (state.observer != want.state.observer) return "another observer is installed";
    return "";
  }
};

struct Interruption {};

/// Applies `outer`, and `inner` inside it, on this thread.
Finding applied(const std::pair<DispatchState::Captured, Carried>& outer,
                const std::pair<DispatchState::Captured, Carried>& inner, bool by_exception) {
  Finding wrong;
  const auto note = [&](const char* when, const Finding& d) {
    if (wrong.empty() && !d.empty()) wrong = when + d;
  };
  const Carried before;
  try {
    const ScopedState on(outer.first);
    note("in the scope: ", Carried().differs(outer.second));
    const Carried within;
    try {
      const ScopedState nested(inner.first);
      note("in a scope inside: ", Carried().differs(inner.second));
      if (by_exception) throw Interruption{};
    } catch (const Interruption&) {}
    note("after a scope inside: ", Carried().whole_differs(within));
    if (by_exception) throw Interruption{};
  } catch (const Interruption&) {}
  note("after the scope: ", Carried().whole_differs(before));
  return wrong;
}

/// The state as it is captured, and as it is.
std::pair<DispatchState::Captured, Carried> captured_here() { return {DispatchState::capture(), Carried()}; }

/// A random operator called for the level by another thread is refused where this one is.
Finding randomness_is_carried(Case& c) {
  Values args = c.args;
  args[size_t(c.op.schema.find("key"))] = Value{};
  const auto mode = Randomness(c.draw.below(3));
  Status here, there;
  Generator generator(0);
  const ScopedGenerator own(generator);
  vmap(Function([&](const Tensors& xs) {
         here = status_of([&] { call_boxed(c.op, args); });
         const DispatchState::Captured captured = DispatchState::capture();
         std::thread([&] {
           const ScopedState on(captured);
           there = status_of([&] { call_boxed(c.op, args); });
         }).join();
         return xs;
       }),
       {{0}, {0}, mode, -1})({zeros({2})});
  if (here.raised == there.raised && (!here.raised || here.code == there.code)) return "";
  return "drawing random numbers inside vmap: " + str(here).text() +
         "; by a thread that acts for it: " + str(there);
}

Verdict captured_states_are_whole(Case& c) {
  Finding wrong;
  const bool by_exception = c.draw.flag(), own_state = c.draw.flag();
  {
    const OddState first(c.draw);
    const std::pair outer = captured_here();
    const OddState second(c.draw);
    const std::pair inner = captured_here();
    std::thread([&] {
      std::optional<OddState> own;
      if (own_state) own.emplace(c.draw);
      wrong = applied(outer, inner, by_exception);
    }).join();
    if (wrong.empty()) wrong = applied(outer, inner, by_exception);
    if (!wrong.empty()) wrong += own_state ? " (on a thread with a state of its own)" : "";
  }
  if (wrong.empty()) wrong = randomness_is_carried(c);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong, "  // DispatchState::capture() and ScopedState: " + wrong.text() + "\n", 1);
}

bool draws_numbers(const Op& op) { return op.has(kRandom) && op.schema.find("key") >= 0; }

}  // namespace

void add_captured_state_laws(std::vector<Law>& laws) {
  laws.push_back({121,
                  "captured_states_are_whole",
                  "dispatch",
                  "On any thread the scope of a captured state has its keys, modes, levels, table, settings "
                  "and birth of memory, and leaves what was before, after an exception too.",
                  {.tame = true, .max_numel = 4},
                  false,
                  draws_numbers,
                  captured_states_are_whole});
}

}  // namespace lamella::verify
