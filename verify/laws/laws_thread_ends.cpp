// The law of threads that end: what they made, hold and give away outlives them, and nothing is kept for
// ever.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "lamella/core/allocation.h"
#include "lamella/core/family.h"
#include "lamella/core/generator.h"
#include "lamella/core/rng.h"
#include "lamella/core/yield.h"
#include "lamella/ops/functions/random.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

/// A tensor full of one number, a view of one, or a result of the case.
struct Thing {
  Tensor t;
  double number = 0;
  int result = -1;
};

constexpr int kMany = 1000;         ///< things at once, now and then
constexpr int64_t kMostKept = 512;  ///< families of views that wait in one thread for their next life

/// What the threads of a case share.
class Stage {
 public:
  Stage(Function call, Tensors inputs, Tensors results)
      : f(std::move(call)), xs(std::move(inputs)), want(std::move(results)), table(dispatch_state().table) {}

  void put(Thing thing) {
    const std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
  }
  bool take(Thing& thing, uint32_t word) {
    const std::lock_guard lock(mutex_);
    if (things_.empty()) return false;
    std::swap(things_[word % things_.size()], things_.back());
    thing = std::move(things_.back());
    things_.pop_back();
    return true;
  }
  void note(const Finding& what) {
    const std::lock_guard lock(mutex_);
    if (wrong_.empty()) wrong_ = what;
  }
  Finding wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }
  /// Whether the thing is still what it was.
  void check(const Thing& thing, const char* where) {
    Finding d;
    if (thing.result >= 0) d = disagrees(thing.t, want[size_t(thing.result)], Agreement::Bitwise);
    else
      each_element(thing.t, [&](int64_t at) {
        const double x = thing.t.data<double>()[at];
        if (d.empty() && x != thing.number) d = format("a tensor full of {} holds {}", thing.number, x);
      });
    if (!d.empty()) note(where + d);
  }
  void called(const char* where) {
    const ScopedTable pinned(table);
    const Tensors got = f(xs);
    if (const Finding d = disagrees(got, want, Agreement::Bitwise); !d.empty()) note(where + d);
  }

  const Function f;
  const Tensors xs, want;
  const OpTable* const table;

 private:
  mutable std::mutex mutex_;
  std::vector<Thing> things_;
  Finding wrong_;
};

/// Where a thread waits for the one that runs the law, a moment at most: in its steps and in its end.
class Meeting {
 public:
  void stop() {
    if (stops_++ >= kMostStops) return;
    const int mine = arrived_.fetch_add(1, std::memory_order_acq_rel) + 1;
    wait_until([&] { return left_.load(std::memory_order_acquire) >= mine; });
  }
  /// Runs `f` while the thread stands still, as often as it does.
  void meet(const std::function<void()>& f) {
    for (int n = 1; n <= kMostStops; ++n) {
      if (!wait_until([&] { return arrived_.load(std::memory_order_acquire) >= n; })) break;
      f();
      left_.store(n, std::memory_order_release);
    }
    left_.store(kMostStops, std::memory_order_release);
  }

 private:
  static constexpr int kMostStops = 4;
  template <class Condition> static bool wait_until(Condition&& is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
    while (!is_so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::atomic<int> arrived_{0}, left_{0};
  int stops_ = 0;  ///< of the thread that stops
};
/// Of a thread in its end: the library's yield points stop there.
thread_local constinit Meeting* ending = nullptr;
void stop_in_end() {
  if (ending) ending->stop();
}

/// What a thread holds until its end, when it is destroyed behind what was constructed after it, or before
/// what was constructed first: the library's own parts of a thread.
class Keeper {
 public:
  ~Keeper() {
    if (!stage) return;
    try {
      in_end();
    } catch (const std::exception& e) { stage->note(raised_by(e, "in the thread's end: raised ")); }
    held.clear();
  }
  Stage* stage = nullptr;
  std::vector<Thing> held;
  bool calls = false, views = false, draws = false;

 private:
  void in_end() {
    for (const Thing& thing : held) stage->check(thing, "held in a thread's end: ");
    if (views)
      for (size_t k = held.size(); k-- > 0;)
        if (held[k].result < 0) held.push_back({make_alias_view(held[k].t), held[k].number});
    if (calls) stage->called("in a thread's end: ");
    if (!draws) return;
    Generator g(3);
    const ScopedGenerator on(g);
    const LaneScope in(5);
    if (default_generator().next() != fold_in(fold_in(3, 0), 5)) stage->note("a thread's end: another key");
  }

 public:
  static Tensor make_alias_view(const Tensor& t) {
    return make_view(t, t.sizes(), t.strides(), t.impl()->offset);
  }
};
thread_local Keeper keeper;

enum class Act : uint32_t { Make, Take, View, Give, Share, Drop, Call, Draw, Trial, Keep, Result };
constexpr uint32_t kActs = 11;
constexpr std::string_view kNames[] = {"makes",      "takes",          "views",
                                       "gives away", "shares",         "drops",
                                       "calls",      "draws a number", "makes and drops in a trial",
                                       "keeps",      "calls and holds"};

/// One thread.
struct Life {
  std::vector<uint32_t> words;  ///< an act each
  bool early, many, meets, keeps_rest, calls, views, draws;

  explicit Life(Draw& d) : words(2 + d.below(8)) {
    const uint32_t w = d.word();
    early = w & 1, many = w / 2 % 32 == 31, meets = w & 64, keeps_rest = w & 128;
    calls = w & 256, views = w & 512, draws = w & 1024;
    for (uint32_t& word : words) word = d.word();
  }

  void run(Stage& stage, Meeting& meeting) const {
    if (early) keeper.stage = &stage;
    std::vector<Thing> hands;
    for (const uint32_t w : words) step(stage, hands, Act(w % kActs), w / kActs);
    if (meets) {
      meeting.stop();
      hands.push_back({numbered(1, 7), 7});  // making one takes back what others gave back
    }
    keeper.stage = &stage;
    keeper.calls = calls, keeper.views = views, keeper.draws = draws;
    for (Thing& thing : hands) {
      stage.check(thing, "held by a thread: ");
      if (keeps_rest) keeper.held.push_back(std::move(thing));
    }
    hands.clear();
    if (many) drop_many(stage);
  }

 private:
  static Tensor numbered(uint32_t w, double number) {
    static constexpr int64_t kSizes[] = {1, 4, 7, 16, 60, 130, 200, 300, 500, 600};  // of all kinds of blocks
    const Tensor t = make_tensor(Dims{kSizes[w % std::size(kSizes)]}, DType::F64);
    std::fill_n(t.data<double>(), t.numel(), number);
    return t;
  }
  void step(Stage& stage, std::vector<Thing>& hands, Act act, uint32_t w) const {
    const auto at = [&]() -> Thing& { return hands[w % hands.size()]; };
    const bool none = hands.empty();
    switch (act) {
      case Act::Make: {
        const double number = 1 + double(w % 1000);
        hands.push_back({numbered(w, number), number});
        break;
      }
      case Act::Take: {
        Thing thing;
        if (!stage.take(thing, w)) break;
        stage.check(thing, "taken from another thread: ");
        hands.push_back(std::move(thing));
        break;
      }
      case Act::View:
        if (!none && at().result < 0) hands.push_back({Keeper::make_alias_view(at().t), at().number});
        break;
      case Act::Give:
        if (!none) stage.put(std::move(at())), hands.erase(hands.begin() + w % hands.size());
        break;
      case Act::Share:
        if (!none) stage.put(at());
        break;
      case Act::Drop:
        if (!none) stage.check(at(), "dropped by a thread: "), hands.erase(hands.begin() + w % hands.size());
        break;
      case Act::Call: stage.called("on a thread: "); break;
      case Act::Draw: default_generator().next(); break;
      case Act::Trial: {
        const MemoryTrial trial({});
        const Tensor t = numbered(w, 5), view = Keeper::make_alias_view(t);
        stage.check({view, 5}, "in a trial: ");
        break;
      }
      case Act::Keep:
        if (!none) keeper.held.push_back(std::move(at())), hands.erase(hands.begin() + w % hands.size());
        break;
      case Act::Result: {
        const ScopedTable pinned(stage.table);
        const Tensors ys = stage.f(stage.xs);
        for (size_t k = 0; k < std::min(ys.size(), stage.want.size()); ++k)
          hands.push_back({ys[k], 0, int(k)});
        break;
      }
    }
  }
  static int64_t families_seen_from_outside() {
    int64_t families = 0;
    std::thread([&] { families = Family::alive(); }).join();
    return families;
  }
  /// Lets go of what another thread, which is gone, has made: most of it may not wait here for a next life.
  static void drop_many(Stage& stage) {
    const int64_t before = families_seen_from_outside();
    Tensors all;
    std::thread([&] {
      try {
        for (int k = 0; k < kMany; ++k) {
          all.push_back(make_tensor(Dims{2}, DType::F64));
          all.push_back(Keeper::make_alias_view(all.back()));
        }
      } catch (const std::exception& e) { stage.note(raised_by(e, "")); }
    }).join();
    all.clear();
    const int64_t kept = families_seen_from_outside() - before;
    if (kept > kMostKept) stage.note(format("a thread keeps {} families of views that it let go", kept));
  }
};

std::string text_of(const std::vector<Life>& lives, bool at_once) {
  std::string out = at_once ? "  // at once:\n" : "  // one after the other:\n";
  for (const Life& life : lives) {
    out += "  // a thread";
    for (const uint32_t w : life.words) out += format(" {},", kNames[w % kActs]);
    if (life.many) out += " lets go of 1,000 views of another's,";
    if (life.calls) out += " calls in its end,";
    if (life.views) out += " views in its end,";
    out +=
        format(" {} its own parts of the library\n", life.early ? "holds things longer than" : "ends before");
  }
  return out;
}

/// All lives, and what is alive afterwards that was not before.
Finding lived(Stage& stage, const std::vector<Life>& lives, bool at_once) {
  const Alive before = Alive::now();
  {
    std::vector<Meeting> meetings(lives.size());
    std::vector<std::thread> threads(lives.size());
    const auto begin = [&](size_t k) {
      threads[k] = std::thread([&stage, &life = lives[k], &meeting = meetings[k]] {
        try {
          life.run(stage, meeting);
        } catch (const std::exception& e) { stage.note(raised_by(e, "a thread raised ")); }
        if (life.meets) ending = &meeting;
      });
    };
    const auto drop_one = [&] {
      Thing thing;
      if (stage.take(thing, 0)) stage.check(thing, "taken from a thread that is ending: ");
    };
    for (size_t k = 0; at_once && k < lives.size(); ++k) begin(k);
    for (size_t k = 0; k < lives.size(); ++k) {
      if (!at_once) begin(k);
      if (lives[k].meets) meetings[k].meet(drop_one);
      threads[k].join();
    }
    for (Thing thing; stage.take(thing, 0);) stage.check(thing, "left by a thread that is gone: ");
  }
  return {What::Leak, Alive::now().beyond(before)};
}

Verdict threads_end_anywhere(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (draws_anew(c)) return Verdict::discard();
  const Function f = c.function(slots);
  const Tensors xs = c.values(slots);
  Tensors want;
  if (status_of([&] { want = f(xs); }).raised) return Verdict::discard();
  std::vector<Life> lives;
  for (uint32_t k = 1 + c.draw.below(3); k > 0; --k) lives.emplace_back(c.draw);
  const bool at_once = c.draw.flag();
  for (Life& life : lives) life.many &= !at_once;  // the others' families would count, too
  Stage stage(f, xs, want);
  Finding left;
  {
    const detail::ScopedYield stops(stop_in_end);
    left = lived(stage, lives, at_once);
    if (!left.empty()) left = lived(stage, lives, at_once);  // what is made once is there now
  }
  Finding wrong = stage.wrong();
  if (wrong.empty() && !left.empty()) wrong = "when threads are gone, and all they made: " + left;
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      wrong, cpp_declarations(c.args) + text_of(lives, at_once) + "  " + cpp_call(c.op, c.args) + ";\n", 1);
}

bool runs_anywhere(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified); }

}  // namespace

void add_thread_end_laws(std::vector<Law>& laws) {
  laws.push_back(
      {125,
       "threads_end_anywhere",
       "dispatch",
       "Threads may end while others hold, view and drop what they have made, and let go of others' "
       "things in their very end: values stay, and when all is dropped nothing is alive.",
       {.tame = true, .max_numel = 4},
       false,
       runs_anywhere,
       threads_end_anywhere});
}

}  // namespace lamella::verify
