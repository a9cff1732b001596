// Laws of dispatch and of the thread's state: who is called, randomness, dead levels, threads.
#include <cstring>
#include <optional>
#include <thread>
#include <unordered_map>

#include "lamella/core/generator.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

bool random_op(const Op& op) { return op.has(kRandom) && op.schema.find("key") >= 0; }
bool any_op(const Op&) { return true; }
bool tensor_op(const Op& op) { return takes_tensors(op) && (!op.has(kRandom) || random_op(op)); }

// Law 49.

struct Lanes {
  int64_t size;
  Randomness mode;
};

/// The loop: every lane starts from the same counter; `different` levels are lane scopes.
void loop_lanes(std::span<const Lanes> levels, Generator& g, const std::function<void()>& f) {
  if (levels.empty()) {
    const uint64_t counter = g.counter();
    f();
    g.set_counter(counter);
    return;
  }
  for (int64_t i = 0; i < levels[0].size; ++i) {
    std::optional<LaneScope> scope;
    if (levels[0].mode == Randomness::Different) scope.emplace(uint64_t(i));
    loop_lanes(levels.subspan(1), g, f);
  }
}

std::string random_program(const Case& c, std::span<const Lanes> levels) {
  static constexpr const char* kModes[] = {"Error", "Same", "Different"};
  std::string call = "Function([=](const Tensors&) { return " + cpp_call(c.op, c.args) + "; })",
              out = cpp_declarations(c.args);
  for (size_t k = levels.size(); k-- > 0;)
    call = "vmap(" + call +
           format(", VmapOptions{InDims{0}, InDims{0}, Randomness::{}, {}})", kModes[int(levels[k].mode)],
                  levels[k].size);
  return out + "  std::cout << str(" + call +
         "({})[0]) << \"\\n\";  // expected: the loop over lanes in LaneScope\n";
}

Verdict ambient_lanes(Case& c) {
  c.args[size_t(c.op.schema.find("key"))] = Value{};
  std::vector<Lanes> levels;  // outermost first
  const int depth = 1 + int(c.draw.below(2));
  bool refused = false;
  for (int k = 0; k < depth; ++k) {
    levels.push_back({draw_lanes(c.draw) % 4, Randomness(2 - c.draw.below(3))});
    refused |= levels.back().mode == Randomness::Error;
  }
  Generator g(c.draw.word());
  g.set_counter(c.draw.below(5));
  const uint64_t start = g.counter();
  const ScopedGenerator scope(g);
  const Function plain = c.function({});
  Function f = plain;
  for (size_t k = levels.size(); k-- > 0;) f = vmap(f, {{0}, {0}, levels[k].mode, levels[k].size});
  Tensors ys;
  const Status s = status_of([&] { ys = f({}); });
  Finding wrong;
  if (refused) {
    if (!s.raised || s.code != ErrorCode::Randomness)
      wrong = "a level refuses random numbers; expected error randomness, got " + str(s);
  } else if (s.raised) {
    wrong = str(s);
  } else {
    if (g.counter() != start + 1)
      wrong = format("one call moved the counter from {} to {}", start, g.counter());
    g.set_counter(start);
    int64_t n = 0;
    const int64_t inner = depth > 1 ? levels[1].size : 1;
    loop_lanes(levels, g, [&] {
      const Tensor row = depth > 1 ? lane(lane(ys[0], 0, n / inner), 0, n % inner) : lane(ys[0], 0, n);
      const Finding d = differs(row, plain({})[0]);
      if (!d.empty() && wrong.empty()) wrong = format("lane {} of {}: ", n, ys[0]) + d;
      ++n;
    });
  }
  if (wrong.empty()) return Verdict::pass(depth);
  return Verdict::fail(wrong, random_program(c, levels), depth);
}

/// Keys given as values: mapped keys are the loop over keys, one key is one draw for all lanes.
Verdict keyed_lanes(Case& c) {
  const std::vector<Case::Slot>& slots = c.tensors();
  if (slots.empty()) return Verdict::discard();
  const int64_t size = draw_lanes(c.draw);
  const bool mapped = !c.draw.one_in(3);
  const Batch b = draw_batch(c, slots, std::vector<bool>(slots.size(), mapped), size);
  const Function f = c.function(slots);
  const uint64_t counter = default_generator().counter();
  const Tensor y = vmap(f, {b.in_dims, {0}, Randomness(c.draw.below(3)), size})(b.xs)[0];
  Finding wrong;
  if (default_generator().counter() != counter) wrong = "a call with keys moved the generator";
  for (int64_t i = 0; i < size && wrong.empty(); ++i) wrong = differs(lane(y, 0, i), f(lane(b, i))[0]);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      wrong,
      cpp_setting(c, slots, b.xs) + "  // vmap over " + cpp_dims(b.in_dims) + " against the loop over keys\n",
      1);
}

// Law 52.

thread_local int recorded_key = -1;
void recording_cell(Frame&, int key) { recorded_key = key; }

struct RecordingObserver final : Observer {
  int chosen = -1;
  uint64_t keys = 0;
  int open = 0;
  void on_call(const Frame&, KeySet k, int key) override {
    keys = k.bits;
    chosen = key;
    ++open;
  }
  void on_return(const Frame&) override { --open; }
};

/// Any keys, dense or sparse.
uint64_t draw_keys(Draw& d) {
  const uint64_t a = uint64_t(d.word()) << 32 | d.word(), b = uint64_t(d.word()) << 32 | d.word();
  return d.flag() ? a & b : d.flag() ? a : a & b & (a >> 7);
}

/// Puts odd keys on tensors and into the thread's state, and takes them back.
class OddKeys {
 public:
  OddKeys(Case& c)
      : state_(dispatch_state()), exclude_(state_.exclude), modes_(state_.modes), ambient_(state_.ambient) {
    for (Value& v : c.args) {
      if (auto* t = std::get_if<Tensor>(&v); t && t->defined()) put(*t, draw_keys(c.draw));
      if (auto* ts = std::get_if<Tensors>(&v))
        for (Tensor& t : *ts) put(t, draw_keys(c.draw));
    }
    modes = draw_keys(c.draw) & draw_keys(c.draw);
    ambient = modes | (draw_keys(c.draw) & draw_keys(c.draw));
    exclude = draw_keys(c.draw);
    state_.exclude = exclude;
    state_.modes = modes;
    state_.ambient = ambient;
  }
  ~OddKeys() {
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) it->first->keys = it->second;
    state_.exclude = exclude_;
    state_.modes = modes_;
    state_.ambient = ambient_;
  }
  uint64_t carried = 0, modes = 0, ambient = 0, exclude = 0;

 private:
  void put(const Tensor& t, uint64_t keys) {
    saved_.emplace_back(t.impl(), t.impl()->keys);
    t.impl()->keys = keys;
    carried = 0;
    for (const auto& entry : saved_)
      carried |= entry.first->keys;  // a tensor may be given twice: its last keys count
  }
  DispatchState& state_;
  uint64_t exclude_, modes_, ambient_;
  std::vector<std::pair<TensorImpl*, uint64_t>> saved_;
};

/// The operator's row with recording cells. Its texts and rules, which no call reads, are copied once for
/// each operator: that took as long as the rest of the law. What a call may read is that of `op`, each time.
const Op& recording_row(const Op& op) {
  static thread_local std::unordered_map<std::string, Op> rows;
  const auto [at, fresh] = rows.try_emplace(op.name, op);
  Op& row = at->second;
  if (fresh)
    for (Cell& cell : row.cells) cell = recording_cell;
  row.id = op.id, row.form = op.form, row.base = op.base, row.shape = op.shape;
  row.infer = op.infer, row.kernel = op.kernel, row.launch = op.launch, row.view = op.view;
  row.composite = op.composite, row.body = op.body, row.batch = op.batch, row.properties = op.properties;
  row.tensor_params = op.tensor_params, row.arity = op.arity, row.simple = op.simple;
  row.takes_functions = op.takes_functions, row.straight = op.straight;
  return row;
}

Verdict dispatch_model(Case& c) {
  const Op& row = recording_row(c.op);
  RecordingObserver observer;
  const bool observed = c.draw.flag();
  const BoxedArgs args(c.op, c.args);
  Tensor results[8];
  Tensors list;
  Frame frame{&row, args.data(), results, &list};
  Finding wrong;
  {
    const OddKeys odd(c);
    const uint64_t seen =
        (odd.carried | odd.modes | (c.op.properties & (kRandom | kAmbient) ? odd.ambient : 0)) & ~odd.exclude;
    const int at = c.op.device_param;  // where no key says anything
    const Device named = at < 0 || frame.none(at) ? Device::CPU : frame.arg<Device>(at);
    const int want = seen ? KeySet(seen).highest() : int(named);
    recorded_key = -1;
    {
      const ScopedObserver scope(observed ? &observer : nullptr);
      call(frame);
    }
    if (recorded_key != want)
      wrong = format("keys {}, exclude {}: cell {} was called, expected {}", seen, odd.exclude, recorded_key,
                     want);
    if (observed && (observer.chosen != want || observer.open != 0))
      wrong += format(" (the observer saw {})", observer.chosen);
  }
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(wrong, "  // " + c.op.name + ": " + wrong.text() + "\n", 1);
}

// Law 56.

/// A wrapper of the tensor in `x`, let out of its transform.
Tensor escaped(const Tensor& x, uint32_t kind) {
  Tensor out;
  const Function keep = [&](const Tensors& ts) {
    out = ts[0];
    return ts;
  };
  if (kind == 0) vmap(keep, {{0}, {0}, Randomness::Error, -1})({stacked({x, x}, 0)});
  else if (kind == 1) jvp(keep, {x}, {x});
  else vjp(keep, {x});
  return out;
}

Verdict dead_levels(Case& c) {
  if (c.tensors().empty() || draws_anew(c)) return Verdict::discard();
  const Case::Slot slot = c.tensors()[c.draw.below(uint32_t(c.tensors().size()))];
  const Tensor x = c.at(slot);
  const uint32_t kind = is_inexact(x.dtype()) ? c.draw.below(3) : 0;
  const Tensor dead = escaped(x, kind);
  if (str(dead).empty()) return Verdict::fail("an escaped wrapper does not print");
  const bool reused = c.draw.flag();  // another level holds the key now
  const Function f = c.function({slot});
  Tensors ys;
  const Status s = status_of([&] {
    const Function call = [&](const Tensors& ts) {
      ys = f({dead});
      return ts;
    };
    if (!reused) call({});
    else if (c.draw.flag()) vmap(call, {{0}, {0}, Randomness::Error, -1})({stacked({x, x}, 0)});
    else if (is_inexact(x.dtype())) vjp(call, {x});
    else call({});
  });
  const bool handed_on = c.op.composite && !s.raised && ys.size() == 1 && ys[0].is_same(dead);
  if (s.code == ErrorCode::EscapedWrapper && s.raised) return Verdict::pass(1);
  if (handed_on || (c.op.composite && s.raised && s.code == ErrorCode::NoKernel)) return Verdict::pass(1);
  static constexpr const char* kKinds[] = {"vmap", "jvp", "vjp"};
  return Verdict::fail(
      format("an argument is wrapped by a {} that has ended{}; expected error escaped_wrapper, got ",
             kKinds[kind], reused ? ", and its key is in use again" : "") +
          str(s),
      cpp_declarations(c.args) + "  // tensor " + std::to_string(slot.param) + " kept from inside " +
          kKinds[kind] + ", then: " + cpp_call(c.op, c.args) + "\n",
      1);
}

// Law 57.

Verdict threads_are_apart(Case& c) {
  std::vector<DrawnFunction> subjects;
  std::vector<Tensors> want;
  for (int k = 0; k < 3; ++k) {
    std::optional<DrawnFunction> s = draw_function(c);
    Tensors ys;
    if (!s || status_of([&] { ys = s->f(s->xs); }).raised) continue;
    subjects.push_back(*s);
    want.push_back(ys);
  }
  if (subjects.size() < 2) return Verdict::discard();
  const OpTable* table = dispatch_state().table;
  std::vector<Finding> wrong(subjects.size());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < subjects.size(); ++k)
    threads.emplace_back([&, k] {
      const ScopedTable pinned(table);
      try {
        for (int round = 0; round < 3 && wrong[k].empty(); ++round)
          wrong[k] = disagrees(subjects[k].f(subjects[k].xs), want[k], Agreement::Bitwise);
      } catch (const std::exception& e) { wrong[k] = raised_by(e, ""); }
    });
  for (std::thread& t : threads) t.join();
  for (size_t k = 0; k < wrong.size(); ++k)
    if (!wrong[k].empty())
      return Verdict::fail(format("thread {} of {}: ", k, wrong.size()) + wrong[k], subjects[k].program, 1);
  return Verdict::pass(subjects[0].depth);
}

}  // namespace

void add_state_laws(std::vector<Law>& laws) {
  const DrawOptions small{.tame = true, .max_numel = 8, .one_large = true}, plain{};
  const DrawOptions wide{.dtypes = mask(DType::F64) | mask(DType::F32) | mask(DType::C128),
                         .tame = true,
                         .max_numel = 8,
                         .one_large = true};
  laws.push_back({49, "random_lanes", "random",
                  "Random operators under vmap draw what the loop draws in its lane scopes.", plain, false,
                  random_op, ambient_lanes});
  laws.push_back({49, "random_keys", "random", "vmap over keys is the loop over keys.", plain, false,
                  random_op, keyed_lanes});
  laws.push_back({52, "dispatch_model", "dispatch",
                  "The highest key of arguments and modes that is not masked is called.", small, false,
                  any_op, dispatch_model});
  laws.push_back({56, "dead_levels", "dispatch", "A wrapper whose level has ended raises escaped_wrapper.",
                  small, false, tensor_op, dead_levels});
  laws.push_back({57, "threads_are_apart", "dispatch",
                  "Stacks on several threads at once compute what they compute one by one.", wide, false,
                  tensor_op, threads_are_apart});
}

}  // namespace lamella::verify
