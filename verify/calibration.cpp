// The harness measured: comparisons with known answers, bugs of known size, counts of what is drawn.
#include "lamella/verify/calibration.h"

#include <cmath>
#include <limits>
#include <set>

#include "lamella/verify/compare.h"
#include "lamella/verify/lanes.h"
#include "lamella/verify/mutants.h"
#include "lamella/verify/worker.h"

namespace lamella::verify {

Fault planted_fault = Fault::None;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor row_of(std::initializer_list<double> values, DType dtype = DType::F64) {
  return tensor_of({int64_t(values.size())}, values, dtype);
}

std::string differences_are_seen() {
  struct Pair {
    Tensor got, want;
    bool differ;
  };
  const double next = std::nextafter(1.0, 2.0);
  const Tensor stepped = make_view_unchecked(row_of({1, 9, 2, 9}), Dims{2}, Dims{2}, 0);
  const Pair pairs[] = {
      {row_of({1, 2}), row_of({1, 2}), false},
      {stepped, row_of({1, 2}), false},
      {stepped, row_of({1, 9}), true},
      {row_of({kNan, 2}), row_of({kNan, 2}), false},
      {row_of({kNan, 2}), row_of({1, 2}), true},
      {row_of({1, 2}), row_of({1, kNan}), true},
      {row_of({1, 2}), row_of({next, 2}), true},
      {row_of({1, 2}), row_of({1, 3}), true},
      {row_of({0, 2}), row_of({-0.0, 2}), true},
      {row_of({kInf, 2}), row_of({-kInf, 2}), true},
      {row_of({1, 2}), row_of({1, 2}, DType::F32), true},
      {row_of({1, 2}), row_of({1}), true},
      {row_of({1, 2}), tensor_of({1, 2}, {1, 2}, DType::F64), true},
      {Tensor(), row_of({1}), true},
  };
  for (const Pair& p : pairs)
    if (differs(p.got, p.want).empty() == p.differ)
      return format("{} and {} are said to {}", p.got, p.want, p.differ ? "agree" : "differ");
  return "";
}

std::string bounds_are_tight() {
  const Tensor bound = row_of({0x1p-40});
  for (const double off : {0.0, 0.5, 0.99, 1.5, 2.0, 10.0, 1000.0}) {
    const bool seen = !outside(row_of({1 + off * 0x1p-40}), row_of({1}), bound).empty();
    if (seen != (off > 1))
      return format("an error of {} bounds is said to be {}", off, seen ? "outside" : "inside");
  }
  for (const double v : {kNan, kInf, -kInf})
    if (outside(row_of({v}), row_of({1}), bound).empty())
      return format("{} is said to be within bounds of 1", v);
  return "";
}

std::string roundings_are_few() {
  const double u = 0x1p-53;
  for (const double off : {0.0, 32.0, 256.0, 4096.0}) {
    const bool seen = !disagrees(row_of({1, 1 + off * u}), row_of({1, 1}), Agreement::Rounding).empty();
    if (seen != (off > 64)) return format("{} roundings are said to be {}", off, seen ? "too many" : "fine");
  }
  return "";
}

/// The first operators of the table with one smooth real result per element.
std::vector<const Op*> smooth_ones() {
  std::vector<const Op*> out;
  for (const Op* op : all_operators()) {
    const bool unary = op->shape == ShapeClass::Broadcast && op->schema.params.size() == 1;
    if (unary && op->kernel.cpu && !op->vjp.empty() && !op->properties && out.size() < 3) out.push_back(op);
  }
  return out;
}

/// The right results of `right_row()`, the first one off by a known part of itself.
double known_error = 0;
void slightly_wrong(const KernelCall& c) {
  right_row().kernel.cpu(c);
  const View& out = c.outs[0];
  if (out.dtype == DType::F64 && out.numel() > 0) out.as<double>()[0] *= 1 + known_error;
}

/// Cases of the law until it sees the error, at most 300; 0: it never did.
int cases_until_seen(const Law& law, const Op& op, double error) {
  const Op* const before = live_bug.right;
  live_bug.right = &op;
  known_error = error;
  static Op row;
  row = op;
  row.base = &row;
  row.kernel.cpu = slightly_wrong;
  row.kernel.lines = {};
  static const OpTable* table = nullptr;
  table = OpTable::current().with(row);
  const ScopedTable pinned(table);
  int seen = 0;
  for (int i = 0; i < 300 && !seen; ++i)
    if (run_check(law, row, choices_of(1, law, row, uint64_t(i))).kind == Verdict::Fail) seen = i + 1;
  live_bug.right = before;
  return seen;
}

std::string known_errors_are_seen() {
  const Law& law = *find_law("matches_reference");
  for (const Op* op : smooth_ones()) {
    if (!cases_until_seen(law, *op, 0x1p-45))
      return format("{}: no case of {} sees a relative error of 2^-45 in f64", op->name, law.id);
    if (cases_until_seen(law, *op, 0))
      return format("{}: {} sees an error where there is none", op->name, law.id);
  }
  return "";
}

std::string right_operators_pass() {
  for (const Op* op : smooth_ones())
    for (const Law& law : laws())
      for (uint64_t i = 0; law.applies(*op) && i < 12; ++i) {
        const Verdict v = run_check(law, *op, choices_of(2, law, *op, i));
        if (v.kind == Verdict::Fail) return format("{} breaks {}: {}", op->name, law.id, v.message);
      }
  return "";
}

std::string cases_vary() {
  const Law& law = laws().front();
  for (const Op* op : smooth_ones()) {
    std::set<std::string> texts;
    int empty = 0, scalars = 0, large = 0;
    for (uint64_t i = 0; i < 300; ++i) {
      const Case c(*op, choices_of(3, law, *op, i), law.options);
      texts.insert(cpp_declarations(c.args));
      const Tensor x = c.at(c.tensors()[0]);
      empty += x.numel() == 0, scalars += x.rank() == 0, large += x.numel() > 8;
    }
    if (texts.size() < 150) return format("{}: 300 cases are {} different ones", op->name, texts.size());
    if (!empty || !scalars || !large)
      return format("{}: of 300 cases {} are empty, {} scalars, {} of more than 8 elements", op->name, empty,
                    scalars, large);
  }
  return "";
}

/// What none of its cases shows is not drawn.
std::string census_has_its_floors() {
  const std::vector<std::string> missed = missed_floors(Census::usual(6));
  return missed.empty() ? "" : missed[0];
}

std::string batches_vary() {
  std::set<int64_t> sizes;
  std::set<std::vector<bool>> subsets;
  for (uint64_t i = 0; i < 500; ++i) {
    const Choices choices = choices_of(5, laws().front(), *smooth_ones().at(0), i);
    Draw d(choices);
    sizes.insert(draw_lanes(d));
    Draw e(choices);
    subsets.insert(draw_mapped(e, 2));
  }
  if (sizes != std::set<int64_t>{0, 1, 2, 3, 7})
    return format("{} different numbers of lanes are drawn", sizes.size());
  if (subsets.size() != 3) return format("{} of the 3 ways to map two arguments are drawn", subsets.size());
  return "";
}

bool every_op(const Op&) { return true; }
Law law_that(Verdict (*check)(Case&)) {
  return {0, "calibration", "value", "A law with a known verdict.", {}, false, every_op, check};
}

std::string verdicts_are_kept() {
  const Op& op = *smooth_ones().at(0);
  const Law raises = law_that([](Case&) -> Verdict { fail(ErrorCode::Value, "planted"); });
  const Law fails = law_that([](Case&) { return Verdict::fail("planted"); });
  const Law discards = law_that([](Case&) { return Verdict::discard(); });
  const Law masks = law_that([](Case&) {
    dispatch_state().exclude |= KeySet::of(kFirstLevelKey).bits;
    return Verdict::pass();
  });
  if (run_check(raises, op, {}).kind != Verdict::Fail) return "an exception is no failure";
  if (run_check(fails, op, {}).kind != Verdict::Fail) return "a failure is none";
  if (run_check(discards, op, {}).kind != Verdict::Discard) return "a discarded case counts";
  const uint64_t before = dispatch_state().exclude;
  const Verdict v = run_check(masks, op, {});
  dispatch_state().exclude = before;
  return v.kind == Verdict::Fail ? "" : "a mask left behind is not seen";
}

std::string codes_are_told_apart() {
  for (const ErrorCode code : {ErrorCode::Shape, ErrorCode::DType, ErrorCode::Value}) {
    const Status s = status_of([code] { fail(code, "planted"); });
    if (!s.raised || s.code != code) return "got " + str(s) + format(", expected {}", name(code));
  }
  return status_of([] {}).raised ? "nothing was raised, and an error is reported" : "";
}

/// What two workers of one run check, as hashes of texts: a case that keeps a text leaks.
std::vector<size_t> checked;
std::string processes_share_the_cases() {
  const Law notes = law_that([](Case& c) {
    std::string text = cpp_declarations(c.args);
    for (int k = 0; k < 8; ++k) text += format(" {}", c.draw.word());
    checked.push_back(std::hash<std::string>()(text));
    return Verdict::pass();
  });
  const volatile std::sig_atomic_t stop = 0;
  RunOptions o{{smooth_ones().at(0)}, {&notes}, 60, 1, 2};
  o.cases = 80;
  checked.clear();
  checked.reserve(1000);
  for (const int index : {0, 1}) Worker(o, index, nullptr).run(stop, {});
  const size_t n = checked.size(), different = std::set<size_t>(checked.begin(), checked.end()).size();
  if (n != 80) return format("two processes check {} of 80 cases", n);
  return different < 76 ? format("of 80 cases of two processes {} are different", different) : "";
}

std::string failures_are_counted() {
  const Law fails = law_that([](Case&) { return Verdict::fail("planted"); });
  const volatile std::sig_atomic_t stop = 0;
  const Report r = run_here({{smooth_ones().at(0)}, {&fails}, 0.02, 1, 1}, stop);
  if (r.total().failures == 0) return "a law that always fails has no failures in the report";
  return r.failures.empty() ? "the report shows no failure of a law that always fails" : "";
}

}  // namespace

const std::vector<FaultInfo>& faults() {
  static const std::vector<FaultInfo> all = {
      {Fault::NanIgnored, "nan_ignored", "A NaN equals everything."},
      {Fault::SignOfZeroIgnored, "sign_of_zero_ignored", "-0 equals 0 bit by bit."},
      {Fault::DTypeIgnored, "dtype_ignored", "Results of different dtypes may be equal."},
      {Fault::LastEntryIgnored, "last_entry_ignored", "The last entry is not compared."},
      {Fault::NanWithinBounds, "nan_within_bounds", "A NaN lies within every bound."},
      {Fault::BoundsTooWide, "bounds_too_wide", "Bounds are a thousand times what was computed."},
      {Fault::RoundingTooWide, "rounding_too_wide", "A thousand times as many roundings are let pass."},
      {Fault::OracleOnCpu, "oracle_on_cpu", "The oracle asks the kernels under test."},
      {Fault::OracleStepTooLong, "oracle_step_too_long", "The oracle's differences are taken too far apart."},
      {Fault::GeneratorConstant, "generator_constant", "Every case is the first."},
      {Fault::LanesConstant, "lanes_constant", "Every batch has two lanes."},
      {Fault::AlwaysAllMapped, "always_all_mapped", "All arguments are mapped, always."},
      {Fault::ExceptionsPass, "exceptions_pass", "A law that raises passes."},
      {Fault::ErrorsDiscard, "errors_discard", "A law that raises discards its case."},
      {Fault::DiscardsPass, "discards_pass", "A discarded case counts as passed."},
      {Fault::StateNotCompared, "state_not_compared", "Nobody looks what a check leaves behind."},
      {Fault::CodesIgnored, "codes_ignored", "All errors are the same error."},
      {Fault::FailuresNotCounted, "failures_not_counted", "Failures are not counted."},
      {Fault::ProcessesAlike, "processes_alike", "All processes check the same cases."},
      {Fault::OutDimsNotNegative, "out_dims_not_negative", "Dims of results are never counted from the end."},
  };
  return all;
}

static std::vector<Calibration>& all_calibrations() {
  static std::vector<Calibration> all = {
      {"differences_are_seen", "Pairs that differ in one thing differ, and others do not.",
       differences_are_seen},
      {"bounds_are_tight", "An error of twice the bound is outside, one of half of it is not.",
       bounds_are_tight},
      {"roundings_are_few", "256 roundings are too many, 32 are not.", roundings_are_few},
      {"verdicts_are_kept", "What a law finds, raises or leaves behind is its verdict.", verdicts_are_kept},
      {"codes_are_told_apart", "An error keeps its code.", codes_are_told_apart},
      {"processes_share_the_cases", "Two processes check different cases of one run.",
       processes_share_the_cases},
      {"failures_are_counted", "A law that fails is in the report.", failures_are_counted},
      {"cases_vary", "Drawn cases differ, and are empty, scalar and large.", cases_vary},
      {"census_has_its_floors", "Drawn cases show every feature of the census often enough.",
       census_has_its_floors},
      {"batches_vary", "All numbers of lanes and all subsets of arguments are drawn.", batches_vary},
      {"known_errors_are_seen", "A relative error of 2^-45 is seen, and none where there is none.",
       known_errors_are_seen},
      {"right_operators_pass", "Right operators pass all laws.", right_operators_pass, true},
  };
  return all;
}

const std::vector<Calibration>& calibrations() { return all_calibrations(); }

void add_calibrations(const std::vector<Calibration>& of_leaf) {
  all_calibrations().insert(all_calibrations().end(), of_leaf.begin(), of_leaf.end());
}

}  // namespace lamella::verify
