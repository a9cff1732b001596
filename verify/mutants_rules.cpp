// Wrong derivative rules.
#include "lamella/ops/functions.h"
#include "lamella/verify/mutants.h"

namespace lamella::verify {

namespace {

/// What happens to the result of a right formula.
using Spoil = Tensor (*)(const Tensor&);

template <Spoil S, bool Forward, size_t I> struct Spoilt {
  static const BoundFormula& right() { return (Forward ? right_row->jvp : right_row->vjp)[I]; }
  static Tensor one(const RuleArgs& a) {
    const Tensor t = right().one(a);
    return t.defined() ? S(t) : t;
  }
  static Tensors many(const RuleArgs& a) {
    Tensors ts = right().many(a);
    for (Tensor& t : ts)
      if (t.defined()) t = S(t);
    return ts;
  }
};

template <Spoil S, bool Forward, size_t I = 0> void spoil(std::vector<BoundFormula>& rules) {
  if constexpr (I < 6) {
    if (I >= rules.size()) return;
    if (rules[I].one) rules[I].one = Spoilt<S, Forward, I>::one;
    if (rules[I].many) rules[I].many = Spoilt<S, Forward, I>::many;
    spoil<S, Forward, I + 1>(rules);
  }
}

Tensor negated(const Tensor& t) { return neg(t); }
Tensor one_percent_more(const Tensor& t) { return t * 1.01; }
Tensor conjugated(const Tensor& t) { return conj(t); }

/// Right the first time alone, as if the rule had consumed what it saved.
Tensor right_once(const Tensor& t) {
  static int calls = 0;
  return calls++ % 2 ? t * 2 : t;
}
Tensor one_dim_more(const Tensor& t) { return unsqueeze(t, 0); }

/// The value without what outer levels of grad and jvp know of it.
Tensor detached(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  if (!impl->extra || !(impl->keys >> kFirstLevelKey)) return t;
  const auto* w = static_cast<const Wrapper*>(impl->extra);
  const Transform* transform = dispatch_state().levels[w->key - kFirstLevelKey].transform;
  return transform && transform->name() != "vmap" ? detached(w->value) : t;
}

bool has_vjp_formula(const Op& op) { return !op.vjp.empty(); }
bool has_saving_vjp(const Op& op) {
  for (const BoundFormula& f : op.vjp)
    if (!f.saves.empty()) return true;
  return false;
}
bool has_two_vjps(const Op& op) { return op.vjp.size() >= 2; }
bool has_two_jvps(const Op& op) { return op.jvp.size() >= 2; }
bool has_jvp_formula(const Op& op) {
  for (const BoundFormula& f : op.jvp)
    if (!f.linear) return true;
  return false;
}

}  // namespace

void add_rule_mutants(std::vector<Mutant>& list) {
  list.push_back({"vjp_negated", "rule", "The vjp has the wrong sign.", has_vjp_formula,
                  [](Op& r) { spoil<negated, false>(r.vjp); }, Mutant::Vjp});
  list.push_back({"vjp_partial_dropped", "rule", "The last input has no vjp formula.", has_two_vjps,
                  [](Op& r) { r.vjp.pop_back(); }, Mutant::Vjp});
  list.push_back({"vjp_conjugated", "rule", "The vjp is the complex conjugate of what it should be.",
                  has_vjp_formula, [](Op& r) { spoil<conjugated, false>(r.vjp); }, Mutant::Vjp});
  list.push_back({"vjp_detached", "rule", "The vjp hides from outer levels what it depends on.",
                  has_saving_vjp, [](Op& r) { spoil<detached, false>(r.vjp); }, Mutant::Second});
  list.push_back({"jvp_scaled", "rule", "The tangent is one percent too large.", has_jvp_formula,
                  [](Op& r) { spoil<one_percent_more, true>(r.jvp); }, Mutant::Jvp});
  list.push_back({"jvp_partial_dropped", "rule", "The last input's tangent is ignored.", has_two_jvps,
                  [](Op& r) { r.jvp.pop_back(); }, Mutant::Jvp});
  list.push_back({"vjp_consumed", "rule", "The pullback is right once.", has_vjp_formula,
                  [](Op& r) { spoil<right_once, false>(r.vjp); }, Mutant::Vjp});
  list.push_back({"vjp_wrong_shape", "rule", "The gradient has a dim too many.", has_vjp_formula,
                  [](Op& r) { spoil<one_dim_more, false>(r.vjp); }, Mutant::Vjp});
}

}  // namespace lamella::verify
