// Verdicts: what a law finds, raises, leaves behind or keeps alive, and what a case cannot draw.
#include <stdexcept>

#include "lamella/core/allocation.h"
#include "lamella/mutate/calibration_parts.h"
#include "lamella/verify/case/heap.h"
#include "lamella/verify/case/lanes.h"
#include "lamella/verify/programs/drawn.h"

namespace lamella::verify {

namespace {

Verdict::Kind kind_of(Verdict (*check)(Case&)) {
  return run_check(law_that(check), *smooth_ones().at(0), {}).kind;
}

std::string verdicts_are_kept() {
  if (kind_of([](Case&) { return Verdict::fail("planted"); }) != Verdict::Fail) return "a failure is none";
  if (kind_of([](Case&) { return Verdict::discard(); }) != Verdict::Discard) return "a discarded case counts";
  if (kind_of([](Case&) { return Verdict::pass(); }) != Verdict::Pass) return "a case that passes does not";
  return "";
}

Verdict raises_error(Case&) { fail(ErrorCode::Value, "planted"); }
Verdict raises_refusal(Case&) { fail(ErrorCode::NoKernel, "planted"); }
Verdict raises_memory(Case&) { throw std::bad_alloc(); }
Verdict raises_standard(Case&) { throw std::out_of_range("planted"); }

std::string exceptions_are_failures() {
  for (const auto check : {raises_error, raises_refusal, raises_memory, raises_standard})
    if (kind_of(check) != Verdict::Fail) return "an exception is no failure";
  const auto cannot_be_drawn = [](Op& row) {
    row.samples = [](Draw&) -> Values { fail(ErrorCode::Shape, "planted"); };
  };
  const PlantedRow planted(*smooth_ones().at(0), cannot_be_drawn);
  const Law passes = law_that([](Case&) { return Verdict::pass(); });
  if (run_check(passes, planted.row(), {}).kind != Verdict::Fail)
    return "a case whose arguments cannot be drawn is no failure";
  return "";
}

std::string codes_are_told_apart() {
  for (const ErrorCode code : {ErrorCode::Shape, ErrorCode::DType, ErrorCode::Value}) {
    const Status s = status_of([code] { fail(code, "planted"); });
    if (!s.raised || s.code != code) return "got " + str(s).text() + format(", expected {}", name(code));
  }
  return status_of([] {}).raised ? "nothing was raised, and an error is reported" : "";
}

class Silent : public Observer {
  void on_call(const Frame&, KeySet, int) override {}
  void on_return(const Frame&) override {}
};

/// Ways to leave the state of a thread other than it was.
struct Leaving {
  const char* what;
  void (*leave)();
};
constexpr uint64_t kBit = uint64_t{1} << kFirstLevelKey;
const Leaving kLeavings[] = {
    {"a mask", [] { dispatch_state().exclude ^= kBit; }},
    {"a mode", [] { dispatch_state().modes ^= kBit; }},
    {"an ambient key", [] { dispatch_state().ambient ^= kBit; }},
    {"a mode and its ambient key", [] { dispatch_state().modes ^= kBit, dispatch_state().ambient ^= kBit; }},
    {"a level", [] { ++dispatch_state().depth; }},
    {"a default dtype", [] { dispatch_state().default_dtype = DType::F16; }},
    {"a default device", [] { dispatch_state().default_device = Device::Reference; }},
    {"determinism", [] { dispatch_state().determinism = Determinism::Required; }},
    {"a version of random streams", [] { dispatch_state().random_stream = 1; }},
    {"a pinned table", [] { dispatch_state().table = OpTable::current().with(*smooth_ones().at(0)); }},
    {"an observer",
     [] {
       static Silent silent;
       dispatch_state().observer = &silent;
     }},
};
const Leaving* leaving = nullptr;
/// What a law leaves in the simplest case; in others where a word says so.
bool fails_too = false;
Verdict leaves(Case& c) {
  leaving->leave();
  (void)c.draw.word();
  return fails_too ? Verdict::fail("got 1, expected 2") : Verdict::pass();
}
Verdict leaves_and_raises(Case& c) {
  (void)leaves(c);
  fail(ErrorCode::Value, "planted");
}

bool same(const DispatchState& a, const DispatchState& b) {
  return a.exclude == b.exclude && a.modes == b.modes && a.ambient == b.ambient && a.table == b.table &&
         a.observer == b.observer && a.depth == b.depth && a.settings() == b;
}

std::string state_left_is_seen() {
  fails_too = false;
  for (const Leaving& l : kLeavings) {
    leaving = &l;
    const DispatchState before = dispatch_state();
    const Verdict::Kind kind = kind_of(leaves);
    const bool restored = same(dispatch_state(), before);
    dispatch_state() = before;
    if (kind != Verdict::Fail) return format("{} left behind is not seen", l.what);
    if (!restored) return format("{} left behind stays for the next check", l.what);
  }
  return "";
}

std::string failures_leave_nothing() {
  const Op& op = *smooth_ones().at(0);
  fails_too = true;
  for (const Leaving& l : kLeavings)
    for (const auto check : {leaves, leaves_and_raises}) {
      leaving = &l;
      const DispatchState before = dispatch_state();
      const Law law = law_that(check);
      (void)run_check(law, op, {1, 2, 3});
      const bool checked = same(dispatch_state(), before);
      dispatch_state() = before;
      (void)shrink(law, op, {1, 2, 3}, {.executions = 20, .explaining = 8});
      const bool reduced = same(dispatch_state(), before);
      dispatch_state() = before;
      if (!checked || !reduced)
        return format("after a law that fails and leaves {} has been {}, it is still there", l.what,
                      checked ? "reduced" : "checked");
    }
  return "";
}

/// What a case kept alive.
std::vector<Tensor> kept;
std::vector<std::string> kept_texts;
int64_t kept_size = 1;
Verdict keeps_a_tensor(Case&) {
  kept.push_back(make_tensor(Dims{kept_size}, DType::F64));
  return Verdict::pass();
}
Verdict keeps_an_object(Case&) {
  kept_texts.emplace_back(100, 'x');
  return Verdict::pass();
}
Verdict frees_what_it_makes(Case&) {
  const Tensor t = make_tensor(Dims{kept_size}, DType::F64);
  return t.numel() == kept_size ? Verdict::pass() : Verdict::fail("planted");
}

std::string leaks_are_seen() {
  kept.reserve(1000), kept_texts.reserve(1000);
  for (const int64_t n : {1, 9, 100, 10000}) {
    kept_size = n;
    const Verdict::Kind kind = kind_of(keeps_a_tensor);
    kept.clear();
    if (kind != Verdict::Fail) return format("a case that keeps a tensor of {} elements passes", n);
    if (kind_of(frees_what_it_makes) != Verdict::Pass) return "a case that keeps nothing fails";
    const Snapshot before;
    if (!before.changed().empty()) return "nothing was done, and a snapshot says: " + before.changed().text();
    kept.push_back(make_tensor(Dims{n}, DType::F64));
    const bool seen = !before.changed().empty() && !before.changed_beside_heap().empty();
    kept.clear();
    if (!seen) return format("a snapshot does not see a tensor of {} elements that stays alive", n);
  }
  const int64_t before = heap_objects();
  kept_texts.emplace_back(200, 'x');
  const bool counted = heap_objects() != before;  // not where a sanitizer has an operator new of its own
  kept_texts.clear();
  if (!counted) return "";
  const Verdict::Kind kind = kind_of(keeps_an_object);
  kept_texts.clear();
  return kind == Verdict::Fail ? "" : "a case that keeps an object of operator new passes";
}

/// Beside a block, on either side, one byte.
std::string damage_is_seen() {
  for (const int64_t at : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{23}, int64_t{24}}) {
    const bool beside = at < 0 || at >= 24;
    {
      const MemoryTrial trial({});
      void* const block = allocate_raw(24);
      volatile char* const place = static_cast<volatile char*>(block) + at;
      *place = char(*place ^ 1);
      free_raw(block);
    }
    if (damaged_memory().empty() == beside)
      return format("a byte written at {} of a block of 24 is {}", at, beside ? "not seen" : "called damage");
  }
  return "";
}

}  // namespace

void add_verdict_calibrations(std::vector<Calibration>& all) {
  all.push_back({"verdicts_are_kept", "What a law says is its verdict.", verdicts_are_kept});
  all.push_back({"exceptions_are_failures", "Whatever a law or its drawing raises is a failure.",
                 exceptions_are_failures});
  all.push_back({"codes_are_told_apart", "An error keeps its code.", codes_are_told_apart});
  all.push_back({"state_left_is_seen", "A check that leaves any part of the thread's state changed fails.",
                 state_left_is_seen});
  all.push_back({"failures_leave_nothing",
                 "After a check that failed, and its reduction, the thread's state is what it was.",
                 failures_leave_nothing});
  all.push_back({"leaks_are_seen", "What stays alive is seen, however small it is.", leaks_are_seen});
  all.push_back(
      {"damage_is_seen", "A byte written beside a block is seen, one inside is none.", damage_is_seen});
}

}  // namespace lamella::verify
