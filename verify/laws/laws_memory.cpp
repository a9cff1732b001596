// Laws of failure and memory: exceptions at every call, memory that runs out, what fresh memory held.
#include <new>

#include "lamella/core/allocation.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

bool repeats(const Op& op) { return !op.has(kRandom) && (takes_tensors(op) || !op.has(kUnspecified)); }

/// A sweep of more steps than this takes as many of them, evenly, from a drawn first one.
constexpr int64_t kMostSteps = 32;

/// Calls step(k) for k in [0, n) until it says what is wrong.
template <class F> Finding sweep(int64_t n, uint32_t word, F&& step) {
  const int64_t stride = (n + kMostSteps - 1) / kMostSteps;
  Finding wrong;
  for (int64_t k = stride > 1 ? word % stride : 0; k < n && wrong.empty(); k += stride) wrong = step(k);
  return wrong;
}

// Law 53: exceptions.

struct Planted {};

/// Counts calls; raises at the one it is told to.
struct Thrower final : Observer {
  int64_t calls = 0, at = -1;
  void on_call(const Frame&, KeySet, int) override {
    if (calls++ == at) throw Planted{};
  }
  void on_return(const Frame&) override {}
};

Finding raise_at(const DrawnFunction& s, int64_t k, const Snapshot& before) {
  Thrower thrower;
  thrower.at = k;
  bool raised = false;
  try {
    const ScopedObserver scope(&thrower);
    s.f(s.xs);
  } catch (const Planted&) { raised = true; }
  const Finding wrong = raised ? before.changed() : "the exception did not reach the caller";
  return wrong.empty() ? "" : format("after an exception at call {}: ", k) + wrong;
}

Verdict state_restored(Case& c) {
  const std::optional<DrawnFunction> s = draw_function(c);
  if (!s) return Verdict::discard();
  const uint32_t word = c.draw.word();
  Tensors first;
  if (status_of([&] { first = s->f(s->xs); }).raised)
    return Verdict::discard();  // other laws' subject; also warms caches
  const Snapshot before;
  Thrower counter;
  {
    const ScopedObserver scope(&counter);
    s->f(s->xs);
  }
  Finding wrong = before.changed();
  if (!wrong.empty()) return Verdict::fail("after a return: " + wrong, s->program, s->depth);
  wrong = sweep(counter.calls, word, [&](int64_t k) { return raise_at(*s, k, before); });
  if (wrong.empty()) wrong = disagrees(s->f(s->xs), first, Agreement::Bitwise);
  if (wrong.empty()) return Verdict::pass(s->depth);
  return Verdict::fail(wrong, s->program, s->depth);
}

// Law 53: memory that runs out.

Finding refuse_at(const DrawnFunction& s, MemoryTrial::Options options, const Tensors& want,
                  const Snapshot& before) {
  Finding wrong;
  Tensors ys;
  bool raised = false;
  int64_t refused = 0;
  {
    const MemoryTrial trial(options);
    try {
      ys = s.f(s.xs);
    } catch (const std::bad_alloc&) { raised = true; } catch (const Error& e) {
      raised = true;
      if (e.code() != ErrorCode::OutOfMemory) wrong = raised_by(e, "");
    }
    refused = trial.refused();
  }
  if (raised && wrong.empty() && refused == 0) wrong = "out of memory, though nothing was refused";
  if (!raised) wrong = disagrees(ys, want, Agreement::Bitwise);
  release(ys);
  if (wrong.empty()) wrong = before.changed();
  if (wrong.empty()) wrong = {What::Memory, damaged_memory()};
  if (wrong.empty()) return "";
  return format("with allocation {} refused{}: ", options.fail_at,
                options.sticky ? " and all later ones" : "") +
         wrong;
}

Verdict out_of_memory(Case& c) {
  const std::optional<DrawnFunction> s = draw_function(c);
  if (!s) return Verdict::discard();
  const uint32_t word = c.draw.word();
  const bool sticky = c.draw.one_in(3);
  Tensors want;
  if (status_of([&] { want = s->f(s->xs); }).raised) return Verdict::discard();
  const Snapshot before;
  int64_t asked = 0;
  {
    const MemoryTrial trial({});
    s->f(s->xs);
    asked = trial.asked();
  }
  Finding wrong = before.changed();
  if (wrong.empty())
    wrong = sweep(asked, word,
                  [&](int64_t k) { return refuse_at(*s, {.fail_at = k, .sticky = sticky}, want, before); });
  if (wrong.empty()) wrong = disagrees(s->f(s->xs), want, Agreement::Bitwise);
  if (wrong.empty()) return Verdict::pass(s->depth);
  return Verdict::fail(wrong, s->program, s->depth);
}

// Law 4.

Finding differs_in_poison(const DrawnFunction& s, uint8_t poison, const Tensors& want) {
  const MemoryTrial trial({.poison = poison});
  const Finding wrong = disagrees(s.f(s.xs), want, Agreement::Bitwise);
  return wrong.empty() ? "" : format("fresh memory full of {}: ", int(poison)) + wrong;
}

Verdict poison_is_invisible(Case& c) {
  const std::optional<DrawnFunction> s = draw_function(c);
  if (!s) return Verdict::discard();
  Tensors want;
  if (status_of([&] { want = s->f(s->xs); }).raised) return Verdict::discard();
  const Snapshot before;
  Finding wrong;
  for (const uint8_t poison : {uint8_t{0xA5}, uint8_t{0xFF}}) {
    wrong = differs_in_poison(*s, poison, want);
    if (wrong.empty()) wrong = {What::Memory, damaged_memory()};
    if (wrong.empty()) wrong = before.changed();
    if (!wrong.empty()) return Verdict::fail(wrong, s->program, s->depth);
  }
  return Verdict::pass(s->depth);
}

}  // namespace

void add_memory_laws(std::vector<Law>& laws) {
  const DrawOptions wide{.dtypes = mask(DType::F64) | mask(DType::F32) | mask(DType::C128),
                         .tame = true,
                         .max_numel = 8,
                         .one_large = true};
  // Results beyond the 64 bytes that a header's own block holds have a storage of their own.
  const DrawOptions large{.tame = true, .max_numel = 64};
  // Each allocation is refused once: lists of thousands of entries would be, too.
  const DrawOptions few{.tame = true, .max_numel = 64, .largest = -1, .one_large = true};
  laws.push_back({4, "poison_is_invisible", "layout",
                  "What fresh memory held never shows in a result, and nothing beside a block is written.",
                  large, false, repeats, poison_is_invisible});
  laws.push_back({53, "state_restored", "dispatch",
                  "Return, and an exception at any call, leave levels, masks and memory as they were.", wide,
                  false, repeats, state_restored});
  laws.push_back({53, "out_of_memory", "dispatch",
                  "Whichever allocation is refused, a call works or raises out_of_memory, and leaks nothing.",
                  few, false, repeats, out_of_memory});
}

}  // namespace lamella::verify
