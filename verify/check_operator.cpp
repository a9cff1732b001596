// All laws of one operator in this process.
#include "lamella/verify/check_operator.h"

#include <algorithm>
#include <chrono>

#include "lamella/dispatch/table.h"

namespace lamella::verify {

namespace {

/// `cases` of one law; the first failure is shrunk and ends it.
void check_law(const Law& law, const Op& op, const CheckOptions& o, Report& report) {
  Tally& tally = report.tallies[{op.name, std::string(law.id)}];
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < o.cases; ++i) {
    const Choices choices = choices_of(o.seed, law, op, uint64_t(i));
    const Verdict v = run_check(law, op, choices);
    if (v.kind == Verdict::Discard) {
      ++tally.discards;
      continue;
    }
    ++tally.cases;
    tally.deep += v.depth >= 2;
    if (v.kind != Verdict::Fail) continue;
    ++tally.failures;
    const Shrunk s = shrink(law, op, choices);
    Failure& f = report.failures.emplace_back();
    f.op = op.name;
    f.law = law.id;
    f.message = s.verdict.message;
    f.program = s.verdict.program;
    f.depth = s.verdict.depth;
    break;
  }
  tally.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.seconds += tally.seconds;
}

}  // namespace

OperatorReport check_operator(const Op& op, const CheckOptions& options) {
  LAMELLA_CHECK(op.base->samples, Usage, "check_operator: {} has no samples to draw arguments from", op.name);
  OperatorReport out;
  out.op = op.base->name;
  RunOptions run{{op.base}, {}, options.seconds, options.seed, 1};
  for (const Law& law : laws())
    if (law.applies(*op.base)) run.laws.push_back(&law);
  out.laws = run.laws.size();
  if (options.cases > 0) {
    for (const Law* law : run.laws) check_law(*law, *op.base, options, out.report);
    return out;
  }
  static const volatile std::sig_atomic_t kGoOn = 0;
  out.report = run_here(run, kGoOn);
  return out;
}

OperatorReport check_operator(std::string_view name, const CheckOptions& options) {
  const Op* op = OpTable::current().find(name);
  LAMELLA_CHECK(op, UnknownOperator, "check_operator: there is no operator \"{}\"", name);
  return check_operator(*op, options);
}

std::string OperatorReport::text() const {
  const Tally total = report.total();
  std::string out = format("{}: {}, {} laws, {} cases, {} discarded, {} s\n", op,
                           passed() ? "passed" : "FAILED", laws, total.cases, total.discards, report.seconds);
  for (const auto& [key, t] : report.tallies)
    out += format("  {} {}: {} cases, {} discarded, {} failures\n", find_law(key.second)->number, key.second,
                  t.cases, t.discards, t.failures);
  for (const Failure& f : report.failures)
    out += format("---- {} breaks {}\n{}\n\n{}", f.op, f.law, f.message, cpp_program(f.program));
  return out;
}

}  // namespace lamella::verify
