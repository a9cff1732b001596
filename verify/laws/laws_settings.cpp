// Laws of settings: scopes of a thread's state, of all kinds, nested in any order; generators of threads.
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <thread>

#include "lamella/core/generator.h"
#include "lamella/core/guard.h"
#include "lamella/core/rng.h"
#include "lamella/core/thresholds.h"
#include "lamella/dispatch/call.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/ops/functions/random.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/inference.h"
#include "lamella/transforms/stop_gradient.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/interrupted.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/pass_on.h"
#include "lamella/verify/case/thread_schedule.h"
#include "lamella/verify/oracle/oracle.h"

namespace lamella::verify {

namespace {

/// What a scope may change of this thread, as it is seen from outside.
struct Seen {
  DispatchState state = dispatch_state();
  uint64_t birth = detail::birth_serial;
  const Generator* generator = &default_generator();
  uint64_t key = default_generator().key(), counter = default_generator().counter();
  std::vector<uint64_t> lanes = random_state().lanes;
  const Thresholds* thresholds = &lamella::thresholds();
  GuardSide side = detail::guard_side;

  Finding differs(const Seen& want) const {
    const DispatchState &a = state, &b = want.state;
    if (generator != want.generator) return "another generator is asked";
    if (key != want.key || counter != want.counter)
      return format("the generator stands at {} of {}, expected {} of {}", counter, key, want.counter,
                    want.key);
    if (lanes != want.lanes) return format("{} lanes, expected {}", lanes.size(), want.lanes.size());
    if (a.exclude != b.exclude) return format("masked keys {}, expected {}", a.exclude, b.exclude);
    if (a.modes != b.modes || a.ambient != b.ambient) return "modes or ambient keys differ";
    if (a.depth != b.depth) return format("{} levels, expected {}", a.depth, b.depth);
    for (int k = 0; k < a.depth; ++k)
      if (a.levels[k].serial != b.levels[k].serial) return format("level {} is another one", k);
    if (a.table != b.table) return "another table is pinned";
    if (a.observer != b.observer) return "another observer is installed";
    if (a.settings() != b) return a.differs(b);
    if (birth != want.birth) return "new memory has another birth";
    if (thresholds != want.thresholds) return "other thresholds";
    if (side != want.side) return "memory is guarded on another side";
    return "";
  }
};

struct Interruption {};

/// Whether vmap on this thread runs lane by lane: it counts the calls that do.
bool maps_by_loop() {
  const int64_t before = loop_fallbacks();
  (void)vmap([](const Tensor& x) { return mul(x, x); })(ones({2, 2}, DType::F64));
  return loop_fallbacks() > before;
}

/// One scope, what is to be seen in it, and the scopes inside.
class Nest {
 public:
  explicit Nest(Draw& d, bool throws) : draw_(d), throws_(throws) {}

  /// Empty, or the first thing that was not as the scopes say.
  Finding run(int left) {
    check_draw();
    for (uint32_t k = draw_.below(3); k-- > 0 && left > 0;) {
      const Seen before;
      try {
        scope(draw_.below(14), left - 1);
      } catch (const Interruption&) {}
      note("after a scope: ", Seen().differs(before));
      check_draw();
    }
    if (left == 0) check_elsewhere();
    if (throws_ && left == 0 && wrong_.empty()) throw Interruption{};
    return wrong_;
  }

 private:
  /// A thread beside this one is in none of these scopes.
  void check_elsewhere() {
    bool loops = false;
    DispatchState state;
    bool raised = false;
    std::thread([&] {
      try {
        loops = maps_by_loop(), state = dispatch_state();
      } catch (...) { raised = true; }
    }).join();
    if (raised) note("on another thread: ", "vmap raises");
    if (loops) note("on another thread: ", "vmap loops");
    if (state.exclude || state.modes || state.depth || state.observer)
      note("on another thread: ", "scopes are seen");
  }
  void note(const char* when, const Finding& what) {
    if (wrong_.empty() && !what.empty()) wrong_ = when + what;
  }
  /// What is drawn now: the key of the generator that the innermost scope names, at its counter, then the
  /// lanes, outermost first.
  void check_draw() {
    uint64_t want = fold_in(generator_->key(), generator_->counter());
    for (const uint64_t lane : lanes_) want = fold_in(want, lane);
    if (dispatch_state().exclude == exclude_ && maps_by_loop() != loops_)
      note("", loops_ ? "vmap takes its rules in a ForceLoop" : "vmap loops outside of a ForceLoop");
    const RandomState stands = random_state();
    Generator copy = *generator_;
    if (default_generator().next() != want) note("", "the generator gave another key");
    default_generator().set_counter(copy.counter());
    if (stands.generator.key() != copy.key() || stands.lanes != lanes_) note("", "random_state() differs");
  }
  template <class Scope, class... Args> void within(int left, const char* name, Args&&... args) {
    const Scope on(std::forward<Args>(args)...);
    names_ += names_.empty() ? name : std::string(" > ") + name;
    run(left);
  }
  void scope(uint32_t kind, int left) {
    Generator* const generator = generator_;
    const std::vector<uint64_t> lanes = lanes_;
    struct Back {
      Nest& nest;
      Generator* generator;
      const std::vector<uint64_t>& lanes;
      const bool loops = nest.loops_;
      ~Back() { nest.generator_ = generator, nest.lanes_ = lanes, nest.loops_ = loops; }
    } const back{*this, generator, lanes};
    switch (kind) {
      case 0: {
        Generator own(draw_.word());
        generator_ = &own;
        return within<ScopedGenerator>(left, "ScopedGenerator", own);
      }
      case 1: lanes_.push_back(draw_.word()); return within<LaneScope>(left, "LaneScope", lanes_.back());
      case 2: {
        RandomState other{Generator(draw_.word()), {draw_.word(), draw_.word()}};
        other.lanes.resize(draw_.below(3));
        const ScopedRandomState on(other);
        generator_ = &default_generator(), lanes_ = other.lanes;
        if (generator_ == generator) note("in ScopedRandomState: ", "the same generator");
        names_ += " > ScopedRandomState";
        run(left);
        return;
      }
      case 3: return within<Excluding>(left, "Excluding", KeySet{uint64_t(draw_.word()) << 20});
      case 4: return within<ScopedTable>(left, "ScopedTable", &OpTable::current());
      case 5: return within<ScopedObserver>(left, "ScopedObserver", &observer_);
      case 6: return within<InferenceMode>(left, "InferenceMode", draw_.flag());
      case 7: return within<NoGrad>(left, "NoGrad");
      case 8: return within<NoGradLevels>(left, "NoGradLevels");
      case 9: {
        Thresholds other = thresholds();
        const ScopedThresholds on(other);
        if (&thresholds() != &other) note("in ScopedThresholds: ", "the thresholds from outside");
        run(left);
        return;
      }
      case 10: return within<EnableGrad>(left, "EnableGrad");
      case 11: loops_ = true; return within<ForceLoop>(left, "ForceLoop");
      case 13: return in_device(left, draw_.flag() ? Device::Reference : Device::Meta);
      default: {
        PassOn transform;
        return within<Level>(left, "Level", transform);
      }
    }
  }

  /// The innermost one says where results without arguments lie.
  void in_device(int left, Device device) {
    const DefaultDevice on(device);
    names_ += " > DefaultDevice";
    if (zeros({2}).device() != device) note("in DefaultDevice: ", "zeros lie elsewhere");
    run(left);
    if (zeros({2}).device() != device) note("in DefaultDevice: ", "zeros lie elsewhere after a scope inside");
  }

  struct Quiet final : Observer {
    void on_call(const Frame&, KeySet, int) override {}
    void on_return(const Frame&) override {}
  };
  Draw& draw_;
  const bool throws_;
  Quiet observer_;
  Generator* generator_ = &default_generator();
  std::vector<uint64_t> lanes_ = random_state().lanes;
  const uint64_t exclude_ = dispatch_state().exclude;
  bool loops_ = false;
  Finding wrong_;
  std::string names_;

 public:
  const std::string& names() const { return names_; }
};

/// Without a key the operator draws what it draws with the generator's next one, lanes included.
Finding draws_by_key(Case& c) {
  const uint64_t seed = c.draw.word(), lane = c.draw.word();
  Values args = c.args;
  Value& key = args[size_t(c.op.schema.find("key"))];
  Tensor got, want;
  {
    Generator own(seed);
    const ScopedGenerator on(own);
    const LaneScope in(lane);
    key = Value{};
    got = call_boxed(c.op, args)[0];
  }
  key = scalar_tensor(Scalar(fold_in(fold_in(seed, 0), lane)), DType::U64);
  want = call_boxed(c.op, args)[0];
  const Finding d = lamella::verify::differs(got, want);
  return d.empty() ? "" : "drawn in a lane, and by its key: " + d;
}

Verdict settings_nest(Case& c) {
  Generator own(c.draw.word());
  const ScopedGenerator on(own);
  const Seen before;
  Nest nest(c.draw, c.draw.flag());
  Finding wrong;
  try {
    wrong = nest.run(1 + int(c.draw.below(4)));
  } catch (const Interruption&) {}
  if (wrong.empty()) wrong = Seen().differs(before);
  if (wrong.empty()) wrong = draws_by_key(c);
  if (wrong.empty()) return Verdict::pass(1);
  wrong = nest.names() + ": " + wrong;
  return Verdict::fail(wrong, "  // " + wrong.text() + "\n", 1);
}

/// The n of the thread whose generator starts at fold_in(seed, n), from `first` on; 0: of none soon.
uint64_t thread_of(uint64_t key, uint64_t seed, uint64_t first) {
  for (uint64_t n = first; n < first + (1 << 18); ++n)
    if (fold_in(seed, n) == key) return n;
  return 0;
}

/// Threads that wait for each other in pairs, and then ask for their generators within some ten nanoseconds:
/// so many pairs cost less than one case.
void in_pairs(std::vector<uint64_t>& keys) {
  std::vector<std::atomic<int>> ready(keys.size() / 2);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < keys.size(); ++k)
    threads.emplace_back([&meet = ready[k / 2], &key = keys[k]] {
      meet.fetch_add(1, std::memory_order_relaxed);
      for (int n = 0; meet.load(std::memory_order_relaxed) < 2; ++n)
        if (n > 20'000) std::this_thread::yield();
      key = default_generator().key();
    });
  for (std::thread& t : threads) t.join();
}

/// One thread stops at its first question, before an instruction that is drawn, most of them early: there it
/// counts, and the rest computes a key. Another one asks meanwhile.
void one_inside_the_other(Draw& d, std::vector<uint64_t>& keys) {
  constexpr uint32_t kLongest = 400;  // about the instructions of a first question
  const uint32_t words[] = {d.word(), d.word()};
  uint64_t mine = 0, others = 0;
  const uint32_t within = 1 + words[0] % kLongest;
  run_interrupted([&] { mine = default_generator().key(); }, words[1] % within,
                  [&] { others = default_generator().key(); });
  keys.push_back(mine), keys.push_back(others);
}

/// What differs in one bit of a key, a place or a lane gives other numbers.
Finding streams_alike(Draw& d) {
  const uint64_t key = uint64_t(d.word()) << 32 | d.word(), place = uint64_t(d.word()) << 32 | d.word();
  const uint64_t bit = uint64_t{1} << d.below(64);
  const auto drawn = [](uint64_t of, uint64_t at, uint64_t in) {
    Generator g(of);
    g.set_counter(at);
    const ScopedRandomState on({g, {in}});
    return default_generator().next();
  };
  const uint64_t one = drawn(key, place, bit);
  if (drawn(key ^ bit, place, bit) == one) return format("keys {} and {} draw the same", key, key ^ bit);
  if (drawn(key, place ^ bit, bit) == one)
    return format("places {} and {} of a key are alike", place, place ^ bit);
  if (drawn(key, place, bit ^ place) == one && place != 0)
    return format("lanes {} and {} are alike", bit, bit ^ place);
  return "";
}

/// Who asks for the older stream draws from it: of two versions randn differs, and rand does not.
Finding versions_alike(uint64_t key) {
  const auto drawn = [key](bool older, const char* name) {
    Generator g(key);
    const ScopedGenerator on(g);
    std::optional<RandomStream> stream;
    if (older) stream.emplace(1);
    return call(name, Values{Dims{5}})[0];
  };
  if (differs(drawn(true, "randn"), drawn(false, "randn")).empty())
    return "randn of RandomStream(1) is the latest one";
  const Finding d = differs(drawn(true, "rand"), drawn(false, "rand"));
  return d.empty() ? d : "rand of RandomStream(1): " + d;
}

/// Lanes far apart, by which number the first one has, draw other numbers.
Finding far_lanes_alike(uint64_t key, int bit) {
  const auto drawn = [key](int64_t first) {
    Generator g(key);
    const ScopedGenerator on(g);
    const VmapOptions o{.in_dims = {}, .randomness = Randomness::Different, .size = 2, .first_lane = first};
    return vmap([](const Tensors&) { return Tensors{rand({3}, {}, DType::F64)}; }, o)({})[0];
  };
  const int64_t far = int64_t{1} << bit;
  return differs(drawn(0), drawn(far)).empty() ? format("lanes 0 and {} draw the same", far) : "";
}

/// Normal numbers, complex ones too, have the variance 1 and the mean 0: of 2048 within 8 standard deviations
/// of what these are by chance (of |z|^2: 1.41 / 45, and 1 / 45 of complex z).
Finding not_normal(uint64_t key, DType dtype) {
  Generator g(key);
  const ScopedGenerator on(g);
  const Tensor z = randn({2048}, {}, dtype);
  double squares = 0, sum = 0;  // of both parts of complex ones
  for (const f128 v : flatten({z})) squares += double(v * v), sum += double(v);
  if (std::abs(squares / 2048 - 1) < 0.25 && std::abs(sum / 2048) < 0.18) return "";
  return format("randn of {}: the variance of 2048 is {}, their mean {}", dtype, squares / 2048, sum / 2048);
}

/// Seeds this thread and those to come; what is seeded in a scope that has a generator of its own stays
/// there.
Finding seeds_elsewhere(uint64_t seed) {
  manual_seed(seed);
  const uint64_t key = default_generator().key();
  Generator own(0);
  {
    const ScopedGenerator on(own);
    manual_seed(~seed);
  }
  if (own.key() != Generator(~seed).key()) return "manual_seed in a scope leaves its generator as it was";
  return default_generator().key() == key ? ""
                                          : "manual_seed in a scope seeds the thread's own generator, too";
}

/// Threads that ask for their generator at once are the next ones of the seed given last, each another one.
Verdict streams_are_apart(Case& c) {
  static std::atomic<uint64_t> seen{1};  ///< of this process: what earlier cases found
  const uint64_t seed = c.draw.word();
  const auto key_of_thread = [](uint64_t& key) { key = default_generator().key(); };
  const auto alone = [](const std::function<void()>& f) { std::thread(f).join(); };
  std::vector<uint64_t> keys(2 + c.draw.below(3));
  Finding wrong;
  alone([&] { wrong = seeds_elsewhere(seed); });
  const Schedule schedule(c.draw.word(), false);
  std::vector<std::function<void()>> bodies;
  for (uint64_t& key : keys) bodies.push_back([&key, key_of_thread] { key_of_thread(key); });
  schedule.run(bodies);
  std::vector<uint64_t> paired(16);
  in_pairs(paired);
  keys.insert(keys.end(), paired.begin(), paired.end());
  for (int k = 0; k < 3; ++k) one_inside_the_other(c.draw, keys);
  alone([] { manual_seed(0); });
  std::set<uint64_t> places;
  for (const uint64_t key : keys) places.insert(thread_of(key, seed, seen));
  if (!wrong.empty()) seen += keys.size();  // and whose they are does not matter
  else if (*places.begin() == 0) wrong = "a generator is that of no thread after the seed";
  else if (places.size() != keys.size()) wrong = "two threads have one generator";
  else seen = *places.begin();
  if (wrong.empty() && call_boxed(c.op, c.args).size() != 1) wrong = "this thread draws no more";
  if (wrong.empty()) wrong = streams_alike(c.draw);
  if (wrong.empty()) wrong = versions_alike(seed);
  if (wrong.empty()) wrong = far_lanes_alike(seed, 1 + int(c.draw.below(61)));
  static constexpr DType kDrawn[] = {DType::F32, DType::F64, DType::C64, DType::C128};
  if (wrong.empty()) wrong = not_normal(seed, kDrawn[c.draw.below(4)]);
  if (wrong.empty()) return Verdict::pass(1);
  wrong = format("{} threads after manual_seed({}): ", keys.size(), seed) + wrong;
  return Verdict::fail(wrong, "  // " + wrong.text() + "\n", 1);
}

bool draws_numbers(const Op& op) { return op.has(kRandom) && op.schema.find("key") >= 0; }

}  // namespace

void add_setting_laws(std::vector<Law>& laws) {
  laws.push_back(
      {123,
       "settings_nest",
       "dispatch",
       "Scopes of all settings of a thread, nested in any order and ended by exceptions too, leave "
       "what was before; in them the innermost generator is asked, and the lanes, outermost first, and "
       "vmap loops where it is forced to; no other thread is in them.",
       {.tame = true, .max_numel = 4},
       false,
       draws_numbers,
       settings_nest});
  laws.push_back(
      {124,
       "streams_are_apart",
       "random",
       "Threads that draw for the first time have generators of their own, those that the seed given "
       "last names, also when they ask at once, or one between two instructions of another; keys, places and "
       "lanes that differ in any bit draw others.",
       {.tame = true, .max_numel = 4},
       false,
       draws_numbers,
       streams_are_apart});
}

}  // namespace lamella::verify
