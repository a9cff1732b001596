// All laws of one operator in this process.
#include "lamella/verify/run/check_operator.h"

#include <algorithm>

#include "lamella/dispatch/table.h"
#include "lamella/verify/run/record.h"

namespace lamella::verify {

namespace {

/// gradcheck of the case of a failure; nothing where the operator is meant for inputs of one kind alone (see
/// NOTE: [input spaces]), or where the case cannot be checked so.
std::optional<GradcheckReport> derivatives_of(const Op& op, const Failure& failure) {
  const Law* law = find_law(failure.law);
  if (!law || law->group != "derivative" || failure.blob.empty() || op.has(kSymmetricInput)) return {};
  try {
    const Record record = from_blob(failure.blob);
    DrawOptions options = law->options;
    options.depth = record.decoding.depth;
    const Case c(op, record.choices, options);
    return gradcheck(c.smooth_function(c.inexact()), c.values(c.inexact()),
                     {.jvp = has_jvp(op), .vjp = has_vjp(op), .second_order = true});
  } catch (const std::exception&) { return {}; }  // the failure has its own message
}

}  // namespace

OperatorReport check_operator(const Op& op, const CheckOptions& options) {
  LAMELLA_CHECK(op.base->samples, Usage, "check_operator: {} has no samples to draw arguments from", op.name);
  OperatorReport out;
  out.op = op.base->name;
  RunOptions run{{op.base}, {}, options.seconds, options.seed, 1};
  for (const Law& law : laws())
    if (law.group != "harness" && law.applies(*op.base)) run.laws.push_back(&law);
  out.laws = run.laws.size();
  run.cases = uint64_t(std::max(0, options.cases));
  static const volatile std::sig_atomic_t kGoOn = 0;
  out.report = run_here(run, kGoOn);
  for (const Failure& f : out.report.failures) out.derivatives.push_back(derivatives_of(*op.base, f));
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
  if (total.cases == 0) out += "  no case was executed: nothing is known\n";
  for (size_t k = 0; k < report.failures.size(); ++k) {
    const Failure& f = report.failures[k];
    out += format("---- {} breaks {}\n{}\n", f.op, f.law, f.message);
    if (k < derivatives.size() && derivatives[k] && !derivatives[k]->passed()) out += derivatives[k]->text();
    out += format("case {}\n\n{}", f.blob, cpp_program(f.program));
  }
  return out;
}

}  // namespace lamella::verify
