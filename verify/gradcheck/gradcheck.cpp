// The public function: first order, then what the options ask for; and the report in words.
#include "lamella/verify/gradcheck/gradcheck.h"

#include <algorithm>

#include "lamella/dispatch/given.h"
#include "lamella/dispatch/state.h"
#include "lamella/transforms/machine/interpreter.h"
#include "lamella/verify/case/compare.h"
#include "lamella/verify/case/tolerances.h"
#include "lamella/verify/gradcheck/checker.h"

namespace lamella::verify {

namespace {

/// f without results that carry no derivative.
struct Inexact {
  Function f;
  Tensors operator()(const Tensors& xs) const {
    Tensors ys = f(xs);
    for (const Tensor& y : ys) LAMELLA_CHECK(y.defined(), Undefined, "gradcheck: a result is undefined");
    std::erase_if(ys, [](const Tensor& y) { return !is_inexact(y.dtype()); });
    return ys;
  }
};

/// It reads values and takes steps from them, and a level shows neither.
void refuse_wrapped(const Tensors& inputs) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int level = inputs[k].defined() ? last_level(*inputs[k].impl()) : 0;
    LAMELLA_CHECK(level == 0, Usage, "gradcheck: input {} is wrapped by {}; expected a plain tensor", k,
                  live_key_name(level));
  }
}

std::string part_text(const char* what, const GradcheckPart& p) {
  if (p.tensor < 0) return format("{} along a random direction", what);
  return format("{} {} {}{}", what, p.tensor, p.at, p.imaginary ? " (imaginary part)" : "");
}

std::string number(double v) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}

}  // namespace

GradcheckReport gradcheck(const Function& f, const Tensors& inputs, const GradcheckOptions& options) {
  given(f, "gradcheck");
  LAMELLA_CHECK(options.jvp || options.vjp, Usage, "gradcheck: neither jvp nor vjp is to be checked");
  refuse_wrapped(inputs);
  const Function g = Inexact{f};
  Tensors copies;
  for (const Tensor& x : inputs) copies.push_back(x.defined() ? strided_copy(x) : x);
  GradcheckReport report;
  Checker first(g, copies, options, kDefaultTolerance.derivative, "", report);
  for (size_t k = 0; k < inputs.size(); ++k)
    LAMELLA_CHECK(differs(copies[k], inputs[k]).empty(), Usage, "gradcheck: the function writes to input {}",
                  k);
  report.variables = first.variables(), report.values = first.values();
  const bool any =
      std::ranges::any_of(inputs, [](const Tensor& x) { return x.defined() && is_inexact(x.dtype()); });
  LAMELLA_CHECK(any, Usage, "gradcheck: no input is floating or complex");
  LAMELLA_CHECK(report.variables > 0, Usage, "gradcheck: the floating and complex inputs have no elements");
  LAMELLA_CHECK(!first.results().empty(), Usage, "gradcheck: no result is floating or complex");
  LAMELLA_CHECK(report.values > 0, Usage, "gradcheck: the floating and complex results have no elements");
  first.run();
  if (options.batched && first.ran()) check_batched(g, copies, first, options, report);
  if (options.second_order && report.passed()) check_second_order(g, copies, options, report);
  return report;
}

GradcheckReport gradcheck(const UnaryFunction& f, const Tensor& input, const GradcheckOptions& options) {
  return gradcheck([&](const Tensors& xs) { return Tensors{f(xs[0])}; }, Tensors{input}, options);
}

void add_finding(GradcheckReport& report, const GradcheckOptions& options, GradcheckEntry e) {
  if (report.wrong++ < options.most_findings) report.findings.push_back(std::move(e));
}

GradcheckEntry raised_entry(const std::string& label, const DerivativeRaised& r) {
  GradcheckEntry e;
  e.check = label + r.check;
  e.raised = r.text;
  return e;
}

std::string GradcheckEntry::text() const {
  if (!raised.empty()) return check + " raised: " + raised;
  std::string out = format("{}: d({}) / d({}): got {}, expected {}, {}", check, part_text("result", result),
                           part_text("input", input), number(got), number(expected), name(kink));
  if (bound > 0) out += ", bound " + number(bound);
  if (!bound_from.empty()) out += "\n    " + bound_from;
  return out;
}

std::string GradcheckReport::text() const {
  std::string out = format("gradcheck {}: Jacobian of {} values in {} variables; oracle: {}",
                           passed() ? "passed" : "FAILED", values, variables, name(oracle));
  if (!why_not_reference.empty()) out += format(" (the Reference column: {})", why_not_reference);
  out += "\n";
  for (const GradcheckEntry& e : findings) out += "  " + e.text() + "\n";
  if (wrong > findings.size()) out += format("  and {} more\n", wrong - findings.size());
  if (not_smooth > 0) out += format("  {} entries are not smooth here:\n", not_smooth);
  for (const GradcheckEntry& e : kinks) out += "  " + e.text() + "\n";
  return out;
}

}  // namespace lamella::verify
