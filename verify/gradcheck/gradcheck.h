// gradcheck: are the derivatives of a function of mine right? Which entry is not, by how much, and why it is
// sure.
#pragma once

#include <optional>

#include "lamella/verify/oracle/real_function.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct GradcheckOptions {
  bool jvp = true, vjp = true;
  bool backward = true;       ///< base autograd, too: the function on leaves, and backward
  bool second_order = false;  ///< also the derivatives of the pullback and of the pushforward
  bool batched = false;       ///< also: vmap of the pullback is the loop, over cotangents and over inputs
  /// Compare every entry even when random directions agree (they see an entry of 2^-40 of its row's sum no
  /// more; docs/gradcheck.md).
  bool every_entry = false;
  std::optional<OracleKind> oracle = {};  ///< default: Reference where the function runs there
  uint64_t seed = 1;                      ///< of directions
  size_t most_findings = 8;
};

/// A real part of one element of one input or result.
struct GradcheckPart {
  int tensor = -1;  ///< position among the inputs or the results; -1: the whole direction
  Dims at;
  bool imaginary = false;
};

/// One entry: d result / d input.
struct GradcheckEntry {
  std::string check;  ///< "jvp", "vjp", "backward", "second order: jvp of the pullback", "batched", …
  GradcheckPart input, result;
  double got = 0, expected = 0, bound = 0;
  Kink kink = Kink::Smooth;
  std::string bound_from;  ///< what the bound is made of
  std::string raised;      ///< text of an exception where there should have been a number
  std::string text() const;
};

struct GradcheckReport {
  std::vector<GradcheckEntry> findings;  ///< the first few entries that are wrong
  std::vector<GradcheckEntry> kinks;     ///< the first few that are not smooth, with the slopes around them
  size_t wrong = 0, not_smooth = 0;      ///< how many there are
  size_t variables = 0, values = 0;      ///< size of the Jacobian
  OracleKind oracle = OracleKind::Reference;
  std::string why_not_reference;  ///< empty, or what the Reference column answered
  bool passed() const { return wrong == 0; }
  explicit operator bool() const { return passed(); }
  std::string text() const;
};

/// Checks jvp, vjp and backward of f at `inputs` (floating and complex ones; others and undefined ones are
/// passed on). Results that are neither floating nor complex do not count. The function must be one: two
/// calls must give equal bits, and it may not write to its inputs (it is given copies of the same strides).
/// Whatever derivatives raise is a finding. Errors: usage when nothing can be differentiated; whatever f
/// itself raises.
GradcheckReport gradcheck(const Function& f, const Tensors& inputs, const GradcheckOptions& options = {});
GradcheckReport gradcheck(const UnaryFunction& f, const Tensor& input, const GradcheckOptions& options = {});

}  // namespace lamella::verify
LAMELLA_API_END
