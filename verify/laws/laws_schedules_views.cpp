// The law of views that die anywhere: other threads make and drop views of memory that a level takes.
#include <atomic>
#include <thread>

#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/pointwise_binary.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/tapes/reasons.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/case/thread_schedule.h"

namespace lamella::verify {

namespace {

struct ViewPlan {
  uint32_t given;  ///< views that the level's thread makes and another drops
  uint32_t made;   ///< views that the other makes and drops
  Schedule schedule;
};

/// Tells other threads at its end that a step is over, also by an exception.
struct Announced {
  std::atomic<bool>& over;
  ~Announced() { over.store(true, std::memory_order_release); }
};

/// Fresh memory full of 2 x, written while another thread drops views of it. Both make views at once, but
/// none while it is written: that would be a read beside a write (docs/autograd.md). `refused`: the write,
/// for views of the memory.
Function twice_by_write(const Case& c, const ViewPlan& plan, Finding& raised, bool& refused) {
  return [&c, plan, &raised, &refused](const Tensors& xs) {
    const Tensor z = zeros(xs[0].sizes(), xs[0].dtype());
    const auto view_of_z = [&] { return call_boxed(c.op, c.with({c.tensors()[0]}, {z}))[0]; };
    Tensors given;
    for (uint32_t k = 0; k < plan.given; ++k) given.push_back(view_of_z());
    const DispatchState::Captured captured = DispatchState::capture();
    std::atomic<bool> all_made{false};
    const auto other = [&] {
      const ScopedState state(captured);
      Tensors views = std::move(given);
      {
        const Announced announced{all_made};
        for (uint32_t k = 0; k < plan.made; ++k) {
          Schedule::yield();
          views.push_back(view_of_z());
        }
      }
      while (!views.empty()) {
        Schedule::yield();
        views.pop_back();
      }
    };
    const auto here = [&] {
      Schedule::yield();
      if (plan.made > 0) view_of_z();
      const Tensor twice = xs[0] * 2;
      do Schedule::yield();
      while (!all_made.load(std::memory_order_acquire));
      try {
        copy_(z, twice);
      } catch (const Error& e) {
        refused = std::any_cast<HasViews>(&e.reason());
        throw;
      }
    };
    const std::vector<Finding> said = plan.schedule.run({other}, here);
    for (const Finding& s : said)
      if (raised.empty()) raised = s;
    view_of_z();  // a view of what was written, and a call behind it, are the level's, too
    return Tensors{clone(z)};
  };
}

/// Lets go of memory here while a view that another thread has made shows it still, and takes as much again.
Verdict views_keep_memory(Case& c, const Tensor& x) {
  Tensor whole = plain_copy(x), view;
  const DispatchState::Captured captured = DispatchState::capture();
  Finding raised;
  std::thread([&] {
    const ScopedState state(captured);
    const Status s = status_of([&] { view = call_boxed(c.op, c.with({c.tensors()[0]}, {whole}))[0]; });
    if (s.raised) raised = str(s);
  }).join();
  Finding wrong = raised.empty() ? "" : "raised: " + raised;
  if (wrong.empty()) {
    const Tensor want = plain_copy(view);
    whole = {};
    Tensors others;
    for (int k = 0; k < 4; ++k) others.push_back(plain_copy(c.direction(x)));
    wrong = disagrees(view, want, Agreement::Bitwise);
  }
  if (wrong.empty()) return Verdict::pass();
  return Verdict::fail("a view that another thread has made outlives what was viewed: " + wrong,
                       cpp_tensor("a0", x) + "  // a view of it by " + c.op.name +
                           ", made on another thread; a0 = {}; then others of its sizes are made\n");
}

Verdict views_die_anywhere(Case& c) {
  if (c.tensors().size() != 1) return Verdict::discard();
  const Tensor x = plain_copy(c.at(c.tensors()[0]));
  Tensors views;
  if (x.numel() == 0 || !is_inexact(x.dtype()) ||
      status_of([&] { views = call_boxed(c.op, c.with({c.tensors()[0]}, {x})); }).raised ||
      views.size() != 1 || !views[0].shares_storage(x))
    return Verdict::discard();
  // Views of parts of complex numbers are no strided parts of what was viewed: their memory stays plain.
  const bool stays_plain = views[0].dtype() != x.dtype();
  views.clear();
  if (c.draw.one_in(3)) return views_keep_memory(c, x);
  const uint32_t given = c.draw.below(3), made = c.draw.below(3);
  const ViewPlan plan{given, made, Schedule(c.draw.word(), c.draw.flag())};
  const Tensor u = plain_copy(c.direction(x));
  Finding raised;
  bool refused = false;
  Tensors got;
  const Function f = twice_by_write(c, plan, raised, refused);
  const Status s = status_of([&] { got = vjp(f, {x}).pullback({u}); });
  // Whether another thread lets go of a view that it has made just now cannot be told: it may be refused.
  Finding wrong;
  if (refused && (made > 0 || (stays_plain && given > 0))) return Verdict::pass(1);
  if (!raised.empty()) wrong = "raised: " + raised;
  else if (s.raised) wrong = str(s);
  else wrong = disagrees(got[0], mul(u, 2.0), Agreement::Bitwise);
  if (wrong.empty()) return Verdict::pass(1);
  return Verdict::fail(
      format("{} views given away and {} made by another thread, all dropped there: ", given, made) + wrong,
      cpp_tensor("a0", x) + "  // z = zeros, views of it by " + c.op.name +
          ", dropped on another thread; copy_(z, x * 2) inside vjp\n",
      1);
}

bool views_one(const Op& op) { return is_view(op) && has_vjp(op) && op.tensor_params.size() == 1; }

}  // namespace

void add_schedule_view_laws(std::vector<Law>& laws) {
  laws.push_back(
      {122,
       "views_die_anywhere",
       "dispatch",
       "A level may write its values to fresh memory while another thread drops views of it; those "
       "that the other has made itself may make it refuse, and nothing else may. A view made on another "
       "thread keeps its memory.",
       {.dtypes = kInexact, .tame = true, .max_numel = 12},
       false,
       views_one,
       views_die_anywhere});
}

}  // namespace lamella::verify
