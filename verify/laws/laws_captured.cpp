// The law of workers: what a thread makes while it acts for another one's levels is theirs; nothing else is.
#include <thread>

#include "lamella/dispatch/state.h"
#include "lamella/ops/functions/copy.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/reduce.h"
#include "lamella/transforms/grad.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/case/laws_shared.h"
#include "lamella/verify/oracle/subject.h"

namespace lamella::verify {

namespace {

/// Where memory is made that the worker then fills with values of the level.
enum Place : uint32_t {
  Outside,
  InOuterLevel,
  ByOwner,
  BeforeCapture,
  InOwnLevel,
  ByWorker,
  InNestedLevel,
  kPlaces
};
constexpr std::string_view kPlaceNames[] = {
    "before the level was opened",
    "in a level around it, before it was opened",
    "by the thread that opened it",
    "by the worker, before it acted for the level",
    "by the worker in a level of its own, before it acted for the other",
    "by the worker, for the level",
    "by the worker in a level of its own, while it acted for the other",
};
bool is_inside(Place p) { return p == ByOwner || p == ByWorker || p == InNestedLevel; }

void in_level(const std::function<void()>& body) {
  grad(UnaryFunction([&](const Tensor& t) {
    body();
    return sum(t);
  }))(ones({1}));
}

/// The operator, whose result a worker with the captured state writes to memory made at `place`; what is made
/// before, now.
Function by_worker(const Function& f, const Tensor& like, Place place) {
  const auto make = [like] { return zeros(like.sizes(), like.dtype()); };
  const Tensor outside = make();
  return [f, make, outside, place](const Tensors& xs) {
    Tensor z = outside;
    if (place == ByOwner) z = make();
    const DispatchState::Captured captured = DispatchState::capture();
    std::exception_ptr raised;
    const auto write = [&] { copy_(z, f(xs)[0]); };
    const auto act = [&] {
      if (place == BeforeCapture) z = make();
      const auto captured_scope = [&] {
        const ScopedState on(captured);
        if (place == ByWorker) z = make();
        if (place != InNestedLevel) return write();
        in_level([&] {
          z = make();
          write();
        });
      };
      if (place != InOwnLevel) return captured_scope();
      in_level([&] {
        z = make();
        captured_scope();
      });
    };
    std::thread([&] {
      try {
        act();
      } catch (...) { raised = std::current_exception(); }
    }).join();
    if (raised) std::rethrow_exception(raised);
    return Tensors{z};
  };
}

bool has_one_result(const Op& op) {
  return has_vjp(op) && op.schema.n_results == 1 && op.schema.result_kind != ResultKind::TensorList;
}

Verdict workers_make_for_levels(Case& c) {
  Subject s;
  if (!prepare(c, s) || s.ys[0].numel() == 0) return Verdict::discard();
  const auto place = Place(c.draw.below(kPlaces));
  const Tensors us = directions(c, s.ys);
  const Tensors want = vjp(s.f, s.xs).pullback(us);
  Tensors got;
  const auto run = [&] { got = vjp(by_worker(s.f, s.ys[0], place), s.xs).pullback(us); };
  const Status status = status_of([&] { place == InOuterLevel ? in_level(run) : run(); });
  const std::string where = format("memory made {}: ", kPlaceNames[place]);
  const std::string program = vjp_program(c, s, us, want);
  if (!is_inside(place)) {
    if (status.raised && status.code == ErrorCode::Level) return Verdict::pass(1);
    return Verdict::fail(
        where + "a value of the level was written to it; expected error level, got " + str(status), program,
        1);
  }
  // Whether another thread's memory is shown by one handle alone cannot always be told: it may be refused.
  if (place == ByOwner && status.raised && status.code == ErrorCode::Level) return Verdict::discard();
  if (status.raised) return Verdict::fail(where + str(status), program, 1);
  const Finding d = differs(got, want);
  return d.empty() ? Verdict::pass(1) : Verdict::fail(where + d, program, 1);
}

}  // namespace

void add_captured_laws(std::vector<Law>& laws) {
  laws.push_back(
      {96,
       "workers_make_for_levels",
       "dispatch",
       "Memory that a thread makes while it acts for another one's level may be written with values "
       "of that level, and what it made before, or in a level of its own, may not.",
       {.dtypes = mask(DType::F64), .tame = true, .max_numel = 4},
       false,
       has_one_result,
       workers_make_for_levels});
}

}  // namespace lamella::verify
