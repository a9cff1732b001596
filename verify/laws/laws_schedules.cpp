// The law of schedules: what threads do at once, each sees in its own order, and all in some order of steps.
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lamella/dispatch/table.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/pass_on.h"
#include "lamella/verify/case/thread_schedule.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

constexpr size_t kMostThreads = 4, kMostSteps = 5;

/// An operator whose rows are registered: each says which of them ran.
constexpr int kRegisteredVersions = 1 + int(kMostThreads * kMostSteps);
thread_local int version_ran = -1;
template <int Version> void version_body(Frame& f) {
  version_ran = Version;
  f.results[0] = f.tensor(0);
}
template <int... Versions>
constexpr std::array<CompositeFn, sizeof...(Versions)> bodies_of(std::integer_sequence<int, Versions...>) {
  return {version_body<Versions>...};
}
constexpr auto kBodies = bodies_of(std::make_integer_sequence<int, kRegisteredVersions>{});
constexpr std::string_view kShared = "schedule_shared";

void register_version(std::string_view name, int version) {
  const std::string schema = std::string(name) + "(Tensor x) -> Tensor";
  OpTable::replace({.schema = std::string_view(schema),
                    .shape = ShapeClass::Composite,
                    .composite = kBodies[size_t(version)],
                    .jvp = not_differentiable("a law's own operator"),
                    .vjp = not_differentiable("a law's own operator"),
                    .properties = kNoInPlace | kNoOut | kTestOnly,
                    .samples = [](Draw&) -> Values { return {}; },
                    .doc = "Its argument."});
}
int version_of(std::string_view name, const Tensor& x) {
  version_ran = -1;
  call(name, {x});
  return version_ran;
}

enum class StepKind : uint32_t {
  Call,
  RegisterOwn,
  CallOwn,
  RegisterShared,
  CallShared,
  View,
  Drop,
  Exchange,
  OwnLevel,
  Captured,
  Escape
};
constexpr uint32_t kKinds = 11;
constexpr std::string_view kKindNames[] = {
    "call", "register own", "call own",  "register shared",    "call shared", "view",
    "drop", "exchange",     "own level", "call for the level", "escape"};
struct ActorStep {
  StepKind kind;
  uint32_t word;
};

/// A write or a read of the shared name, from when to when.
struct NameEvent {
  bool write;
  int version;
  uint64_t begin, end;
};

/// Whether there is an order of all events in which each read sees the last write, and none goes before one
/// that had ended when it began.
class SerialOrder {
 public:
  explicit SerialOrder(const std::vector<std::vector<NameEvent>>& threads) : threads_(threads) {}
  bool exists() { return from(std::vector<size_t>(threads_.size()), 0); }

 private:
  bool from(const std::vector<size_t>& at, int last) {
    if (!seen_.emplace(at, last).second) return false;
    bool done = true;
    for (size_t t = 0; t < at.size(); ++t) {
      if (at[t] == threads_[t].size()) continue;
      done = false;
      const NameEvent& e = threads_[t][at[t]];
      if (!may_be_next(at, e) || (!e.write && e.version != last)) continue;
      std::vector<size_t> next = at;
      ++next[t];
      if (from(next, e.version)) return true;
    }
    return done;
  }
  bool may_be_next(const std::vector<size_t>& at, const NameEvent& e) const {
    for (size_t t = 0; t < at.size(); ++t)
      if (at[t] < threads_[t].size() && threads_[t][at[t]].end < e.begin) return false;
    return true;
  }
  const std::vector<std::vector<NameEvent>>& threads_;
  std::set<std::pair<std::vector<size_t>, int>> seen_;
};

/// A tensor of a small, a middling or a large block, full of one number.
Tensor numbered(uint32_t size, double number) {
  static constexpr int64_t kSizes[] = {4, 100, 1000};
  return full({kSizes[size % 3]}, number, DType::F64);
}

/// What the threads of a case share.
struct Stage {
  const Op& op;
  Function f;
  Tensors xs, want;  ///< of the plain call
  Tensors wrapped;   ///< arguments of the level around
  DispatchState::Captured captured;
  const OpTable* pinned;  ///< by the thread that runs the law
  std::atomic<uint64_t> clock{0};
  std::mutex mutex;
  Tensors offered;  ///< of that mutex
};

/// One thread: its steps, what it holds and what it saw.
struct Actor {
  Stage& shared;
  int index;
  std::vector<ActorStep> steps;
  Tensors handles = {};
  std::vector<NameEvent> events = {};
  std::vector<uint64_t> serials = {};
  Tensors results = {};  ///< of the level around
  int own = -1;
  Finding wrong = {};

  std::string own_name() const { return format("schedule_own_{}", index); }

  void run() {
    open_level();  // a thread's first one: all threads ask for their serials at once
    YieldingObserver observer;
    for (size_t k = 0; k < steps.size() && wrong.empty(); ++k) {
      Schedule::yield();
      const ScopedObserver stops(&observer);
      wrong = take(steps[k], 1 + index * int(kMostSteps) + int(k));
      if (!wrong.empty()) wrong = format("thread {}, {}: ", index, kKindNames[size_t(steps[k].kind)]) + wrong;
    }
    handles.clear();
  }

  Finding take(const ActorStep& step, int version) {
    using enum StepKind;
    switch (step.kind) {
      case Call: return called();
      case RegisterOwn: return register_version(own_name(), own = version), ask_own();
      case CallOwn: return own < 0 ? "" : ask_own();
      case RegisterShared:
      case CallShared: return on_shared(step.kind == RegisterShared, version);
      case View: return view(step.word);
      case Drop: return drop(step.word);
      case Exchange: return exchange(step.word);
      case OwnLevel: return in_own_level();
      case Captured: return for_level();
      default: return escape();
    }
  }

  Finding called() const {
    const ScopedTable pinned(shared.pinned);
    return disagrees(shared.f(shared.xs), shared.want, Agreement::Bitwise);
  }
  Finding ask_own() const {
    const int version = version_of(own_name(), shared.xs[0]);
    return version == own ? "" : format("version {} of its own operator ran, expected {}", version, own);
  }
  Finding on_shared(bool write, int version) {
    NameEvent e{write, version, shared.clock.fetch_add(1, std::memory_order_relaxed), 0};
    if (write) register_version(kShared, version);
    else e.version = version_of(kShared, shared.xs[0]);
    e.end = shared.clock.fetch_add(1, std::memory_order_relaxed);
    events.push_back(e);
    return "";
  }
  Finding check(const Tensor& t) const {
    const double* const p = t.data<double>();
    for (int64_t i = 1; i < t.numel(); ++i)
      if (p[i] != p[0]) return format("a tensor full of {} holds {}", p[0], p[i]);
    return "";
  }
  Finding view(uint32_t word) {
    if (handles.empty()) handles.push_back(numbered(word, index));
    const Tensor base = handles[word / 3 % handles.size()];
    Schedule::yield();
    const Tensor part = make_view(base, Dims{base.numel() / 2}, Dims{1}, base.impl()->offset);
    if (word & 1) handles.push_back(part);
    return check(part);
  }
  Finding drop(uint32_t word) {
    if (handles.empty()) return "";
    Tensor& last = handles[word % handles.size()];
    const Finding changed = check(last);
    last = {};
    handles.erase(handles.begin() + word % handles.size());
    return changed;
  }
  Finding exchange(uint32_t word) {
    Tensor mine = handles.empty() ? numbered(word, index) : handles.back();
    if (!handles.empty()) handles.pop_back();
    {
      const std::lock_guard lock(shared.mutex);
      std::swap(mine, shared.offered[word % shared.offered.size()]);
    }
    Schedule::yield();
    handles.push_back(mine);
    return check(mine);
  }
  void open_level() {
    PassOn transform;
    const Level level(transform);
    serials.push_back(level.serial());
  }
  Finding in_own_level() {
    PassOn transform;
    const ScopedTable pinned(shared.pinned);
    const Level level(transform);
    serials.push_back(level.serial());
    return disagrees(shared.f(shared.xs), shared.want, Agreement::Bitwise);
  }
  Finding for_level() {
    const ScopedState state(shared.captured);
    results = shared.f(shared.wrapped);
    return "";
  }
  Finding escape() const {
    const ScopedTable pinned(shared.pinned);
    Tensors ys;
    const Status s = status_of([&] { ys = shared.f(shared.wrapped); });
    const bool handed_on = shared.op.composite && !s.raised;
    const bool refused = s.raised && (s.code == ErrorCode::EscapedWrapper ||
                                      (shared.op.composite && s.code == ErrorCode::NoKernel));
    if (handed_on || refused) return "";
    return "wrapped by another thread's level; expected error escaped_wrapper, got " + str(s);
  }
};

/// Registrations of a case go when it ends.
class Registrations {
 public:
  Registrations() : before_(&published()) { register_version(kShared, 0); }
  ~Registrations() { OpTable::take_back(before_); }
  Registrations(const Registrations&) = delete;

 private:
  static const OpTable& published() {
    const ScopedTable none(nullptr);
    return OpTable::current();
  }
  const OpTable* before_;
};

std::string steps_text(const std::vector<Actor>& actors) {
  std::string out;
  for (const Actor& a : actors) {
    out += format("  // thread {}:", a.index);
    for (const ActorStep& s : a.steps)
      out += format(" {}{}", &s == a.steps.data() ? "" : ", ", kKindNames[size_t(s.kind)]);
    out += "\n";
  }
  return out;
}

Finding what_is_wrong(std::vector<Actor>& actors, const std::vector<Finding>& raised, const Tensor& x) {
  std::vector<std::vector<NameEvent>> events;
  std::map<uint64_t, int> owners;
  for (size_t k = 0; k < actors.size(); ++k) {
    Actor& a = actors[k];
    if (!raised[k].empty()) return format("thread {} raised: ", a.index) + raised[k];
    if (!a.wrong.empty()) return a.wrong;
    events.push_back(a.events);
    for (size_t n = 0; n < a.serials.size(); ++n) {
      if (n > 0 && a.serials[n] <= a.serials[n - 1])
        return format("thread {} has levels of serials {} and then {}", a.index, a.serials[n - 1],
                      a.serials[n]);
      const auto [at, fresh] = owners.try_emplace(a.serials[n], a.index);
      if (!fresh)
        return format("threads {} and {} have levels of one serial, {}", at->second, a.index, a.serials[n]);
    }
    const ScopedTable none(nullptr);
    if (a.own >= 0 && !OpTable::current().find(a.own_name()))
      return format("the operator that thread {} has registered is not there at the end", a.index);
    if (const int v = a.own < 0 ? -1 : version_of(a.own_name(), x); v != a.own)
      return format("version {} of thread {}'s operator is there at the end, expected {}", v, a.index, a.own);
  }
  if (SerialOrder(events).exists()) return "";
  std::string text = "no order of these explains the versions that ran:";
  for (size_t t = 0; t < events.size(); ++t)
    for (const NameEvent& e : events[t])
      text +=
          format(" thread {} {} {} at {}-{};", t, e.write ? "registered" : "ran", e.version, e.begin, e.end);
  return text;
}

std::vector<ActorStep> draw_steps(Draw& d) {
  std::vector<ActorStep> out(1 + d.below(uint32_t(kMostSteps)));
  for (ActorStep& s : out) {
    const uint32_t w = d.word();
    s = {StepKind(w % kKinds), w / kKinds};
  }
  return out;
}

Verdict schedules_are_serial(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty() || draws_anew(c)) return Verdict::discard();
  const Batch b = draw_batch(c, slots, draw_mapped(c.draw, slots.size()), 1 + c.draw.below(2));
  const size_t threads = 2 + c.draw.below(uint32_t(kMostThreads) - 1);
  const Schedule schedule(c.draw.word(), c.draw.flag());
  Stage shared{c.op, c.function(slots), c.values(slots), {}, {}, {}, dispatch_state().table, {}, {}, {}};
  const VmapOptions lanes{b.in_dims, {0}, Randomness::Same, b.size};
  Tensors mapped;
  if (status_of([&] {
        shared.want = shared.f(shared.xs);
        mapped = vmap(shared.f, lanes)(b.xs);
      }).raised)
    return Verdict::discard();
  std::vector<Actor> actors;
  for (size_t k = 0; k < threads; ++k) {
    actors.push_back({shared, int(k), draw_steps(c.draw)});
    shared.offered.push_back(numbered(uint32_t(k), double(10 + k)));
  }
  for (Actor& a : actors)
    for (const Tensor& t : shared.offered) a.handles.push_back(t);
  Finding wrong;
  {
    const Registrations registrations;
    std::vector<std::function<void()>> bodies;
    for (Actor& a : actors) bodies.push_back([&a] { a.run(); });
    std::vector<Finding> raised;
    const Function inside = [&](const Tensors& wrapped) {
      shared.wrapped = wrapped, shared.captured = DispatchState::capture();
      raised = schedule.run(bodies);
      shared.wrapped.clear();
      for (Actor& a : actors)
        if (a.results.empty()) a.results = shared.f(wrapped);
      Tensors all;
      for (Actor& a : actors)
        for (Tensor& y : a.results) all.push_back(std::exchange(y, {}));
      return all;
    };
    const Tensors got = vmap(inside, lanes)(b.xs);
    wrong = what_is_wrong(actors, raised, shared.xs[0]);
    for (size_t k = 0; k < got.size() && wrong.empty(); ++k)
      if (wrong = disagrees(got[k], mapped[k % mapped.size()], Agreement::Bitwise); !wrong.empty())
        wrong = format("what thread {} computed for the level: ", k / mapped.size()) + wrong;
  }
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      wrong, cpp_declarations(c.args) + steps_text(actors) + "  " + cpp_call(c.op, c.args) + ";\n", 1);
}

bool runs_anywhere(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified); }

}  // namespace

void add_schedule_laws(std::vector<Law>& laws) {
  laws.push_back(
      {120,
       "schedules_are_serial",
       "dispatch",
       "Threads that register, call, share and drop tensors and views, open levels, act for "
       "another's and let its wrappers escape see their own steps in order and all of them in some "
       "order; no two levels have one serial, and nothing is left.",
       {.tame = true, .max_numel = 8},
       false,
       runs_anywhere,
       schedules_are_serial});
}

}  // namespace lamella::verify
