// Questions about expressions: what they mean does not depend on how sparingly they are bracketed.
#include <cmath>

#include "lamella/dispatch/state.h"
#include "lamella/verify/text/expression.h"

#include "calibration_aids.h"
#include "calibrations.h"

namespace lamella::tools {

namespace {

/// A text and what it means; how loosely it binds: 0 number, name or bracket, 1 minus sign, 2 product, 3 sum.
struct Meaning {
  std::string text;
  double value;
  int binds = 0;
  enum Kind { Computed, Fraction, Whole } kind = Computed;  ///< of numbers, integers have one zero
};

std::string blanks(Dice& dice) { return std::string(dice.below(3), ' '); }

Meaning drawn_leaf(Dice& dice) {
  static const std::vector<Meaning> leaves = {{"0", 0, 0, Meaning::Whole},
                                              {"1", 1, 0, Meaning::Whole},
                                              {"2", 2, 0, Meaning::Whole},
                                              {"12", 12, 0, Meaning::Whole},
                                              {"007", 7, 0, Meaning::Whole},
                                              {"0.5", 0.5, 0, Meaning::Fraction},
                                              {"2.5", 2.5, 0, Meaning::Fraction},
                                              {"3.", 3, 0, Meaning::Fraction},
                                              {".25", 0.25, 0, Meaning::Fraction},
                                              {"1e2", 100, 0, Meaning::Fraction},
                                              {"25e-2", 0.25, 0, Meaning::Fraction},
                                              {"1.5e1", 15, 0, Meaning::Fraction},
                                              {"x", 3},
                                              {"y", -0.5},
                                              {"x", 3}};
  return dice.of(leaves);
}

/// In brackets where it binds more loosely than that, and now and then where it need not be.
std::string within(Dice& dice, const Meaning& m, int binds) {
  const bool brackets = m.binds > binds || dice.one_in(8);
  return brackets ? "(" + blanks(dice) + m.text + blanks(dice) + ")" : m.text;
}

Meaning drawn_meaning(Dice& dice, int depth) {
  if (depth == 0 || dice.one_in(6)) return drawn_leaf(dice);
  const Meaning a = drawn_meaning(dice, depth - 1);
  if (dice.one_in(6))
    return {"-" + blanks(dice) + within(dice, a, 1), a.kind == Meaning::Whole ? 0 - a.value : -a.value, 1,
            a.kind};
  if (dice.one_in(8)) return {"mul(" + a.text + ", x)", a.value * 3};
  Meaning b = drawn_meaning(dice, depth - 1);
  if (a.kind && b.kind) b = {"y", -0.5};  // an operator takes a tensor at least
  const char op = dice.of({'+', '-', '*', '/'});
  const bool is_sum = op == '+' || op == '-';
  const int binds = is_sum ? 3 : 2;  // the right operand of its like needs brackets, the left one does not
  const std::string text =
      within(dice, a, binds) + blanks(dice) + op + blanks(dice) + within(dice, b, binds - 1);
  const double value = op == '+'   ? a.value + b.value
                       : op == '-' ? a.value - b.value
                       : op == '*' ? a.value * b.value
                                   : a.value / b.value;
  return {text, value, binds};
}

std::string expressions_mean_what_they_say() {
  Dice dice(17);
  verify::Bindings variables = {{"x", scalar_tensor(3.0, DType::F64)},
                                {"y", scalar_tensor(-0.5, DType::F64)}};
  const DType before = dispatch_state().default_dtype;
  dispatch_state().default_dtype = DType::F64;
  std::string wrong;
  for (int round = 0; round < 400 && wrong.empty(); ++round) {
    const Meaning m = drawn_meaning(dice, int(dice.below(4)));
    wrong = raised_by([&] {
      const double got = verify::evaluate(m.text, variables).item<double>();
      const bool same = got == m.value || (std::isnan(got) && std::isnan(m.value));
      if (!same) fail(ErrorCode::Value, "{} is {}, expected {}", m.text, got, m.value);
    });
  }
  dispatch_state().default_dtype = before;
  return wrong;
}
}  // namespace

Calibrations calibrations_of_expressions() {
  return {{"expressions_mean_what_they_say",
           "Sums, differences, products, quotients and numbers of an expression are those that the same "
           "brackets give in C++.",
           guarded<expressions_mean_what_they_say>}};
}

}  // namespace lamella::tools
