// Spike 0001: who acts on a call? The keys its arguments carry, or one thread-local current trace.
#include "lamella/dispatch/key.h"

#include "timing.h"

namespace {
using lamella::KeySet;

struct Trace {
  const Trace* parent;
};
struct Tensor {
  uint64_t keys = 1;             // what the first world looks at
  const Trace* owner = nullptr;  // what the second does
  const Tensor* below = nullptr;
};
struct Op {
  bool ambient = false;
  void (*cells[64])(const Op&, const Tensor* const*, int key) = {};
};
int levels_met = 0;
void kernel(const Op&, const Tensor* const* args, int) { spike::keep(args[0]); }

// Data: mask, highest bit, table load, indirect call.
thread_local constinit struct { uint64_t exclude = 0, ambient = 0; } state;
[[gnu::noinline]] void call_by_keys(const Op& op, const Tensor* const* args) {
  uint64_t bits = args[0]->keys | args[1]->keys;
  if (op.ambient) bits |= state.ambient;
  const int key = KeySet(bits & ~state.exclude).highest();
  op.cells[key](op, args, key);
}
void level_cell(const Op& op, const Tensor* const* args, int key) {
  const Tensor* lower[2];
  for (int i = 0; i < 2; ++i) lower[i] = args[i]->keys >> key & 1 ? args[i]->below : args[i];
  ++levels_met;
  const uint64_t saved = state.exclude;
  state.exclude |= KeySet::from(key).bits;
  call_by_keys(op, lower);
  state.exclude = saved;
}

// Context: every call meets the innermost trace, which passes on what is not its own.
thread_local constinit const Trace* current = nullptr;
[[gnu::noinline]] void call_by_context(const Op& op, const Tensor* const* args) {
  const Trace* t = current;
  if (!t) return op.cells[0](op, args, 0);
  const Tensor* lower[2];
  for (int i = 0; i < 2; ++i) lower[i] = args[i]->owner == t ? args[i]->below : args[i];
  ++levels_met;
  current = t->parent;
  call_by_context(op, lower);
  current = t;
}

/// `live` levels are open; the tensors carry the outermost `carried` of them.
void compare(int live, int carried) {
  Op op;
  for (int k = 0; k < 64; ++k) op.cells[k] = k < 16 ? kernel : level_cell;
  std::vector<Trace> traces(size_t(live) + 1, Trace{nullptr});
  std::vector<Tensor> chain(size_t(carried) + 1);
  for (int i = 1; i <= live; ++i) traces[size_t(i)].parent = i > 1 ? &traces[size_t(i - 1)] : nullptr;
  for (int i = 1; i <= carried; ++i)
    chain[size_t(i)] = {chain[size_t(i - 1)].keys | KeySet::of(15 + i).bits, &traces[size_t(i)],
                        &chain[size_t(i - 1)]};
  const Tensor* const args[] = {&chain.back(), &chain.back()};
  char title[80];
  std::snprintf(title, sizeof title, "%d live levels, %d carried by the arguments", live, carried);
  spike::Contest contest(title);
  contest.add("keys of the arguments", 200000, [&](int64_t n) {
    while (n--) call_by_keys(op, args);
  });
  contest.add("current trace", 200000, [&](int64_t n) {
    current = live ? &traces.back() : nullptr;
    while (n--) call_by_context(op, args);
    current = nullptr;
  });
  contest.run();
}

/// JAX's bugs 5515 and 7047: an operator whose arguments carry nothing must still meet the live level.
void meets(const char* what, bool ambient_op) {
  Op op{ambient_op, {}};
  for (int k = 0; k < 64; ++k) op.cells[k] = k < 16 ? kernel : level_cell;
  const Tensor plain;
  const Tensor* const args[] = {&plain, &plain};
  levels_met = 0;
  state.ambient = KeySet::of(16).bits;
  call_by_keys(op, args);
  state.ambient = 0;
  std::printf("%-58s meets %d level\n", what, levels_met);
}
}  // namespace

int main() {
  const int cases[][2] = {{0, 0}, {1, 0}, {4, 0}, {16, 0}, {1, 1}, {4, 1}, {4, 4}, {16, 16}};
  for (const auto& c : cases) compare(c[0], c[1]);
  meets("operator on constants under a live level, by keys alone", false);
  meets("the same, declared ambient (random numbers, callables)", true);
}
