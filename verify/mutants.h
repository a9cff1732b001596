// Planted bugs: the operator table with one row replaced by a wrong one, and which laws notice.
#pragma once

#include "lamella/dispatch/table.h"
#include "lamella/verify/law.h"

namespace lamella::verify {

/// A way to get an operator wrong. Written once for all operators it can be planted in.
struct Mutant {
  std::string_view id;     ///< "vjp_negated"
  std::string_view group;  ///< rule, batch, dispatch, kernel
  std::string_view what;   ///< the bug, in one sentence
  bool (*fits)(const Op&);
  void (*plant)(Op& row);  ///< changes a copy of the row
  /// Where the bug must show for a difference to exist at all; None: `fits` knows.
  enum Probe : uint8_t { None, Forward, Vjp, Jvp, Second } probe = None;
  OpForm form = OpForm::Functional;  ///< of the row that is replaced
};
const std::vector<Mutant>& mutants();

void add_rule_mutants(std::vector<Mutant>&);
void add_batch_mutants(std::vector<Mutant>&);
void add_dispatch_mutants(std::vector<Mutant>&);
void add_kernel_mutants(std::vector<Mutant>&);

/// The right row of the operator a mutant is planted in: what wrong rules and kernels call. One bug lives at
/// a time.
extern const Op* right_row;

/// One bug in one operator.
struct Planted {
  const Mutant* mutant;
  const Op* op;  ///< the right functional row
  std::string id() const { return std::string(mutant->id) + ":" + op->name; }
};

struct MutantOptions {
  std::vector<std::string>
      ops;  ///< operators to plant in; empty: `per_mutant` for each mutant, of different shape classes
  int per_mutant = 2;
  int cases = 400;  ///< a law, at most
  int law_ms = 40, oracle_ms = 150;
  bool first_only = false;  ///< stop at the first law that notices
  uint64_t seed = 1;
};

struct MutantResult {
  std::string id, group, what;
  std::vector<std::string> caught_by;  ///< law ids
  std::vector<int> cases;              ///< checks each of them needed; -1: the process died, -2: it hung
  std::string reason;                  ///< why it survived
  bool killed() const { return !caught_by.empty(); }
};

/// What is going to be planted: where the bug makes a difference on drawn cases.
std::vector<Planted> choose_mutants(const MutantOptions& options);
/// Runs the laws against one planted bug, in a process of its own.
MutantResult run_mutant(const Planted& planted, const MutantOptions& options);

}  // namespace lamella::verify
