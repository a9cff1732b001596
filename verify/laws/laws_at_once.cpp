// The law of calls at once: threads share nothing but what they are given.
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/thread_schedule.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

/// Small calls are over before another thread has begun: of three rounds hardly one met another's.
constexpr uint32_t kRounds = 3, kRoundsOfSmall = 24;
constexpr int64_t kSmall = 64;

/// A call, and what it gives alone.
struct Alone {
  Function f;
  Tensors xs, want;
};

/// False when it raises.
bool ask(Alone& a) {
  return !status_of([&] {
            a.want = a.f(a.xs);
            for (Tensor& y : a.want)
              if (y.defined() && y.device() == Device::CPU) y = plain_copy(y);  // a view of what others read
          }).raised;
}

Verdict calls_at_once(Case& c) {
  if (draws_anew(c)) return Verdict::discard();
  std::vector<Alone> calls(1);
  calls[0] = {c.function(c.tensors()), c.values(c.tensors()), {}};
  std::string program = cpp_declarations(c.args) + "  " + cpp_call(c.op, c.args) + ";\n";
  if (c.draw.one_in(4)) {
    const std::optional<DrawnFunction> d = draw_function(c);
    if (d) calls[0] = {d->f, d->xs, {}}, program = d->program;
  }
  if (!ask(calls[0])) return Verdict::discard();
  // Another call of the operator, of other sizes, beside it.
  Case other(c.op, c.draw);
  Alone beside{other.function(other.tensors()), other.values(other.tensors()), {}};
  if (!draws_anew(other) && ask(beside)) calls.push_back(std::move(beside));
  int64_t elements = 0;
  for (const Alone& a : calls)
    for (const Tensors* ts : {&a.xs, &a.want})
      for (const Tensor& t : *ts) elements += t.defined() ? t.numel() : 0;
  const uint32_t rounds = elements <= kSmall ? kRoundsOfSmall : kRounds;
  const Schedule schedule(c.draw.word(), false);
  const OpTable* const table = dispatch_state().table;
  std::vector<Finding> wrong(2 + c.draw.below(2));
  std::vector<std::function<void()>> bodies;
  for (size_t k = 0; k < wrong.size(); ++k)
    bodies.push_back([&, k] {
      const ScopedTable pinned(table);
      for (size_t round = 0; round < rounds && wrong[k].empty(); ++round) {
        const size_t which = (k + round) % (calls.size() + 1) % calls.size();
        const Alone& a = calls[which];
        const Tensors got = a.f(a.xs);
        wrong[k] = disagrees(got, a.want, Agreement::Bitwise);
        if (!wrong[k].empty() && which == 1) wrong[k] = "the call beside it: " + wrong[k];
      }
    });
  const std::vector<Finding> raised = schedule.run(bodies);
  for (size_t k = 0; k < wrong.size(); ++k) {
    if (wrong[k].empty() && !raised[k].empty()) wrong[k] = "raised: " + raised[k];
    if (!wrong[k].empty())
      return Verdict::fail(format("at once on {} threads: ", wrong.size()) + wrong[k], program, 1);
  }
  return Verdict::pass(1);
}

bool gives_values(const Op& op) { return takes_tensors(op) && !op.has(kUnspecified); }

}  // namespace

void add_at_once_laws(std::vector<Law>& laws) {
  laws.push_back(
      {129,
       "calls_at_once",
       "dispatch",
       "One call made by several threads at once, with calls of other sizes beside it, gives each of "
       "them the bits that it gives alone.",
       {},
       false,
       gives_values,
       calls_at_once});
}

}  // namespace lamella::verify
