// check_custom_rule: is the rule that a user gave to custom_vjp or custom_jvp a derivative, at every level?
#pragma once

#include "lamella/verify/gradcheck/gradcheck.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct CustomRuleOptions {
  /// The rule is the derivative: it is held to differences of the function, to second order. False for rules
  /// that are meant to be something else: straight-through estimates, clipped gradients.
  bool differences = true;
  /// jvp and vjp are each other's transpose, which a rule that is not linear in its directions breaks.
  bool transposition = true;
  uint64_t seed = 1;
};

struct CustomRuleReport {
  std::optional<GradcheckReport> differences;
  std::vector<std::string> findings;  ///< of transposition and batching: law, entry, both numbers, bound
  bool passed() const { return findings.empty() && (!differences || differences->passed()); }
  explicit operator bool() const { return passed(); }
  std::string text() const;
};

/// `f` calls what custom_vjp or custom_jvp made (and maybe more). Checks, with lanes at three points and for
/// every subset of the floating and complex inputs that is mapped: vjp, and jvp, of vmap(f) are the loop over
/// lanes; so is vmap of vjp(f). Whatever raises is a finding. Errors: usage as gradcheck.
CustomRuleReport check_custom_rule(const Function& f, const Tensors& inputs,
                                   const CustomRuleOptions& options = {});

}  // namespace lamella::verify
LAMELLA_API_END
