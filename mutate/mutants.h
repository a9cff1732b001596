// Planted bugs: the operator table with one row replaced by a wrong one, and which laws notice.
#pragma once

#include <atomic>
#include <csignal>

#include "lamella/dispatch/table.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [mutants] Sites times perturbations, from the registry alone. A site is a row (dispatcher, kernel,
/// batch rule as a whole), an operand of a kernel or of its loop plan, a derivative formula, a call that a
/// formula or a batch rule makes, or a part of the harness. Nothing is planted by name, and nothing is taken
/// out by hand: a mutant counts as equivalent only when 10^5 drawn cases give the same bits.
///
/// A plug-in brings its own: `LAMELLA_PLUGIN() { ... }` calls add_mutant or add_perturbation
/// (examples/my_mutant.cpp).

/// A way to get an operator wrong as a whole. Written once for all operators it can be planted in.
struct Mutant {
  std::string_view id;     ///< "lanes_reversed"
  std::string_view group;  ///< rule, batch, dispatch, kernel
  std::string_view what;   ///< the bug, in one sentence
  bool (*fits)(const Op&);
  void (*plant)(Op& row);  ///< changes a copy of the row
  /// The row's sites, if not one: operands, a bit each. `live_bug.operand` says which is meant.
  uint32_t (*sites)(const Op&) = nullptr;
  OpForm form = OpForm::Functional;  ///< of the row that is replaced
};

/// What calls that were recorded at one site were like, taken together.
struct CallTraits {
  bool nonzero = false;     ///< a floating or complex result had an element that is not 0
  bool imaginary = false;   ///< a result had an imaginary part that is not 0
  bool like_first = false;  ///< a result had the type of the first tensor argument, and other elements
  bool pair = false;        ///< two tensors were given
  bool spread = false;      ///< elements differed along the last dim
  bool typed = false;       ///< a result went to an operator that asks for its sizes and dtype
  bool read = false;        ///< a result went elsewhere, or was the rule's
  bool followed = false;    ///< an outer level of grad or jvp followed a result
  int rank = 0;             ///< the highest of the first tensor argument
};
/// A call that a formula or a batch rule makes: its n-th to this operator.
struct CallSite {
  std::string op;
  int nth = 0;
  CallTraits traits;
};
/// A way to get one call of a rule wrong.
struct Perturbation {
  std::string_view id;    ///< "swapped"
  std::string_view what;  ///< the bug, in one sentence
  bool (*fits)(const Op& called, const CallTraits&);
  Tensors (*call)(const Op& called, const Values& args);  ///< in the place of call_boxed(called, args)
  bool of_derivatives =
      false;               ///< changes what outer derivatives see alone: for rules of operators that have one
  bool of_values = false;  ///< changes elements alone, no sizes: not for what is looked at for its sizes
};
/// A way to get a formula as a whole wrong.
struct FormulaPerturbation {
  std::string_view id, what;
  bool (*fits)(const Op& op, const BoundFormula& right, const CallTraits& result);
  /// Takes the right formula's place; null: the formula is left out.
  Tensors (*run)(const BoundFormula& right, const RuleArgs& args);
  bool each_save = false;  ///< a site for each tensor the formula saves
};

const std::vector<Mutant>& mutants();
const std::vector<Perturbation>& perturbations();
void add_mutant(const Mutant& m);
void add_perturbation(const Perturbation& p);

/// Declared: the result does not depend on any element. Its tensors say of what sizes and dtype to make
/// something (zeros_like), or of what dtype alone (new_zeros).
bool takes_type(const Op& op);
bool takes_type_alone(const Op& op);

std::vector<Mutant> batch_mutants();
std::vector<Mutant> dispatch_mutants();
std::vector<Mutant> kernel_mutants();
std::vector<Mutant> plan_mutants();
std::vector<Perturbation> call_perturbations();
const std::vector<FormulaPerturbation>& formula_perturbations();

/// The bug that lives in this process, one at a time: what wrong rules and kernels read.
struct LiveBug {
  const Op* right = nullptr;  ///< the right row of the operator it is planted in
  const BoundFormula* formula = nullptr;
  const FormulaPerturbation* spoil = nullptr;
  const Perturbation* perturbation = nullptr;
  CallSite site;
  int operand = 0;
  bool counted = false;                     ///< `reached` says something
  std::atomic<uint64_t> reached{};          ///< times the wrong part ran
  std::vector<CallSite>* record = nullptr;  ///< instead of a bug: calls are noted here
};
extern LiveBug live_bug;
/// live_bug.right, for the many who want only that.
inline const Op& right_row() { return *live_bug.right; }
/// For wrong parts that are counted: this one runs.
inline void reached() { live_bug.reached.fetch_add(1, std::memory_order_relaxed); }

/// Declared: a kernel of its own that takes tensors.
inline bool may_have_kernel(const Op& op) { return op.kernel.cpu && !op.composite && takes_tensors(op); }
/// A bit for each tensor parameter.
inline uint32_t tensor_bits(const Op& op) { return (1u << op.tensor_params.size()) - 1; }

/// One bug at one site.
struct Planted {
  std::string id;     ///< "mul.vjp(a)/conj#0:dropped", "lanes_reversed:sum", "harness:nan_ignored"
  std::string group;  ///< rule, batch, dispatch, kernel, harness
  std::string what;
  const Op* op = nullptr;  ///< the right functional row; null for the harness
  OpForm form = OpForm::Functional;
  std::function<void(Op& row)> plant;  ///< changes a copy of the row of that form, and sets live_bug
};

/// All of them, in a fixed order; of the operators named, if any are. Those of fewer operators once `stop` is
/// set.
std::vector<Planted> all_planted(const std::vector<std::string>& ops = {},
                                 const volatile std::sig_atomic_t* stop = nullptr);
/// `n` of them, chosen by a hash of seed and id: the same on every machine. 0: all.
std::vector<Planted> sample_of(std::vector<Planted> all, size_t n, uint64_t seed);
/// A table of its own in which the bug lives; sets live_bug.
const OpTable* plant(const Planted& p);
/// Whether a perturbation changes no bit of an operator's results in 10^5 drawn cases. Asked once each.
bool inert(std::string_view perturbation, const Op& op);
/// Perturbations that change no bit of these operators' results in 10^5 cases, and so were not planted:
/// "swapped in mul". Grows as mutants are listed.
const std::vector<std::string>& inert_pairs();

struct MutantOptions {
  int processes = 2;
  double cpu_ms = 1000;            ///< of processor time for the laws, a mutant
  double equivalence_ms = 8000;    ///< likewise for the comparison with the right operator
  int equivalence_cases = 100000;  ///< bitwise equal ones that make an equivalent mutant
  bool first_only = false;         ///< stop at the first law that notices; else every law gets a few cases
  std::vector<std::string> laws;   ///< ids; empty: all
  uint64_t seed = 1;
  const volatile std::sig_atomic_t* stop = nullptr;  ///< once set, what runs is given up
};

struct Kill {
  std::string law;
  int cases = 0;        ///< of this law, until it noticed
  std::string how;      ///< "crash", "hangs", or empty
  std::string message;  ///< what the law said
};
struct MutantResult {
  std::string id, group, what;
  std::vector<Kill> kills;
  int64_t checks = 0;  ///< of all laws, until the first one noticed
  double cpu_ms = 0;
  bool equivalent = false;
  std::string reason;  ///< why it survived, or why it is equivalent
  bool killed() const { return !kills.empty(); }
};

/// Runs the laws against planted bugs, each in a process of its own, `options.processes` at once; results in
/// the order of `planted`, fewer when `options.stop` was set. `done` is told of each as it ends.
std::vector<MutantResult> run_mutants(const std::vector<Planted>& planted, const MutantOptions& options,
                                      const std::function<void(const MutantResult&)>& done = {});

/// In this process, with the bug planted: whether right and wrong operator differ in a drawn case.
struct Equivalence {
  int cases = 0;           ///< compared, all equal up to the difference
  std::string difference;  ///< of the next one; empty: none found
};
Equivalence compare_with_right(const Planted& p, const OpTable* table, const MutantOptions& options);

}  // namespace lamella::verify
LAMELLA_API_END
