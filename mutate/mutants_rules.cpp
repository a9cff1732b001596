// Wrong derivative formulas, as a whole.
#include "lamella/mutate/mutant_changes.h"
#include "lamella/mutate/mutant_level.h"
#include "lamella/ops/functions/factory.h"
#include "lamella/ops/functions/view.h"

namespace lamella::verify {

namespace {

template <Change C> Tensors result_changed(const BoundFormula& right, const RuleArgs& args) {
  return changed<C>(run_formula(right, args));
}

Tensor one_dim_more(const Tensor& t) { return unsqueeze(t, 0); }
/// Right the first time alone, as if the rule had consumed what it saved.
Tensor right_once(const Tensor& t) {
  static std::atomic<int> calls{0};
  return calls++ % 2 ? t * 2 : t;
}

/// The formula without the direction it is given: a cotangent taken as ones.
Tensors direction_as_ones(const BoundFormula& right, const RuleArgs& args) {
  Tensors ones;
  for (const Tensor& t : args.directions) ones.push_back(t.defined() ? ones_like(t) : t);
  return run_formula(right, {ones, args.saved});
}

bool is_tensor_save(const Op& op, const BoundSave& s) {
  if (s.kind == BoundSave::Result) return true;
  return s.kind == BoundSave::Argument && op.schema.params[s.index].kind == ParamKind::Tensor;
}

/// Another saved tensor in the place of one; the direction where only one is saved.
Tensors save_replaced(const BoundFormula& right, const RuleArgs& args) {
  const size_t n = right.saves.size(), at = size_t(live_bug.operand);
  std::vector<const void*> saved(args.saved, args.saved + n);
  saved[at] = &args.directions[0];
  for (size_t k = 1; k < n; ++k)
    if (is_tensor_save(right_row(), right.saves[(at + k) % n]) && args.saved[(at + k) % n]) {
      saved[at] = args.saved[(at + k) % n];
      break;
    }
  return run_formula(right, {args.directions, saved.data()});
}

bool any(const Op&, const BoundFormula&, const CallTraits&) { return true; }
bool imaginary(const Op&, const BoundFormula&, const CallTraits& t) { return t.imaginary; }
bool nonzero(const Op&, const BoundFormula&, const CallTraits& t) { return t.nonzero; }
bool saves_tensors(const Op&, const BoundFormula& f, const CallTraits&) { return !f.linear; }

}  // namespace

const std::vector<FormulaPerturbation>& formula_perturbations() {
  static const std::vector<FormulaPerturbation> all = {
      {"negated", "The formula has the wrong sign.", nonzero, result_changed<negated>},
      {"percent", "The formula's result is one percent too large.", nonzero,
       result_changed<one_percent_more>},
      {"conjugated", "The formula's result is the complex conjugate.", imaginary, result_changed<conjugated>},
      {"wrong_shape", "The formula's result has a dim too many.", any, result_changed<one_dim_more>},
      {"consumed", "The formula is right every other time.", nonzero, result_changed<right_once>},
      {"direction_as_ones", "The formula takes ones for the tangent or cotangent.", nonzero,
       direction_as_ones},
      {"missing", "There is no formula for this input.", nonzero, nullptr},
      {"save_replaced", "Another tensor stands for one that was saved.", saves_tensors, save_replaced, true},
  };
  return all;
}

}  // namespace lamella::verify
