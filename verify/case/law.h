// Laws as data: a statement every operator (or every case) obeys, and how one case is checked.
#pragma once

#include "lamella/verify/case/answers.h"
#include "lamella/verify/case/case.h"
#include "lamella/verify/case/context.h"
#include "lamella/verify/case/finding.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// What one check found.
struct Verdict {
  enum Kind : uint8_t { Pass, Discard, Fail } kind = Pass;
  std::string message;  ///< entry, both numbers, bound
  std::string program;  ///< body of main() of a C++ program that shows the failure; built only for Fail
  int depth = 0;        ///< transforms nested in this check
  size_t used = 0;      ///< words of the choices that were read; set by run_check
  std::vector<std::string> partners = {};  ///< operators that the case drew from the table; set by run_check
  FailureKind failure = {};                ///< of Fail
  static Verdict pass(int depth = 0) { return {Pass, {}, {}, depth}; }
  static Verdict discard() { return {Discard, {}, {}}; }
  static Verdict fail(const Finding& wrong, std::string program = {}, int depth = 0) {
    return {Fail, wrong.text(), std::move(program), depth, 0, {}, wrong.kind()};
  }
  /// Fails for another reason, of the same case.
  void fail_by(const Finding& wrong) { kind = Fail, message = wrong.text(), failure = wrong.kind(); }
  /// Passes where nothing is wrong; no program shows more than `wrong` says.
  static Verdict of(const Finding& wrong) {
    return wrong.empty() ? pass() : fail(wrong, "  // " + wrong.text() + "\n");
  }
};

struct Law {
  int number;                  ///< of the law table in docs/laws.md
  std::string_view id;         ///< "vmap_equals_loop"
  std::string_view group;      ///< value, layout, shape, forms, derivative, vmap, compose, random, dispatch
  std::string_view statement;  ///< one sentence that can be false
  DrawOptions options = {};
  bool oracle = false;  ///< evaluates in f128: slow
  bool (*applies)(const Op&);
  Verdict (*check)(Case&);
  /// Times the share of another law, see NOTE: [rounds of a run]: for cheap laws about what is rare.
  int share = 1;
  /// NOTE: [numbered cases] Of a law that asks a fixed list of questions, one a case: how many there are (law
  /// 131: the calibrations). Chance would ask some often and others never: all words of its case `n` are n,
  /// so that a run goes through them in order, and before anything is asked at length. Null: cases are drawn.
  size_t (*numbered)() = nullptr;
};

/// All laws, by number. Each file of verify/laws/laws_*.cpp contributes its list (laws_list.h), rooms and
/// plug-ins above add theirs (add_law).
const std::vector<Law>& laws();
const Law* find_law(std::string_view id_or_number);
/// Adds the law of a plug-in (examples/my_law.cpp) or of a room above (mutate/laws_harness.cpp); its texts
/// must outlive the program. Call it before laws are used: pointers into laws() end. Errors usage: something
/// is missing; schema: a number or an id that another law has (then both origins are named).
void add_law(const Law& law);

/// A kept case that is played, and what of it did not fit: then no verdict says anything.
struct Played {
  const Answers& answers;
  std::string wrong = {};
};

/// All that gives a vector of choices its meaning, beside the law and the operator.
struct Decoding {
  int depth = run_context().depth;
  std::vector<std::string> partners =
      {};                      ///< as Case::partner drew them; the words decide where none is left
  Tail tail = {};              ///< words behind the choices
  AnswerSink* sink = nullptr;  ///< told what the case is given
  Played* played = nullptr;    ///< where its answers come from; then no word is read
};

/// Calls f; the thread's dispatch state is afterwards what it was, whatever f leaves or raises.
void keeping_state(const std::function<void()>& f);

/// Decodes and checks one case. An exception that is not part of the law's subject is a failure.
Verdict run_check(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding = {});

/// The side on which memory of a case of these choices is guarded: see NOTE: [guarded cases].
GuardSide guard_of(const Choices& choices, const Decoding& decoding = {});
/// The side that the choices alone ask for, whatever LAMELLA_GUARD says.
GuardSide guard_drawn(const Choices& choices);
/// The plain call in C++, behind declarations of its arguments. Raises what drawing these does.
std::string cpp_plain_call(const Law& law, const Op& op, const Choices& choices, const Decoding& decoding);

/// A failing vector made shorter and smaller while it fails the same law in the same way.
struct Shrunk {
  Choices choices;
  Verdict verdict;
  int executions = 0;
  double milliseconds = 0;
  bool flaky = false;              ///< running it again gave another answer; nothing was shrunk
  std::vector<std::string> free;   ///< parts of the case that may be anything: "values of a1"
  std::vector<std::string> fixed;  ///< parts that had to stay
};
struct ShrinkLimits {
  int milliseconds = 2000, executions = 160, explaining = 40;
};
/// For choices that failed.
Shrunk shrink(const Law& law, const Op& op, Choices choices, ShrinkLimits limits = {},
              const Decoding& decoding = {});

/// Has derivative rules in this direction, or gets them from the operators it calls.
bool has_jvp(const Op& op);
bool has_vjp(const Op& op);
/// Takes at least one tensor, so that arguments decide where it runs.
bool takes_tensors(const Op& op);
inline bool is_view(const Op& op) { return op.is_view(); }
/// Likewise, and the results stay there: the oracle can run it.
bool stays_on_device(const Op& op);
/// The most floating and complex tensors that a case of it has.
size_t inexact_arguments(const Op& op);

/// Program text: "declarations; got = …; want = …;" and both printed. `more` follows the declarations of the
/// arguments.
std::string cpp_got_want(const Case& c, const std::string& more, const std::string& got,
                         const std::string& want);
/// Passes where both agree bit by bit; else fails, and the plain call is its program.
Verdict agree(const Case& c, const Tensors& got, const Tensors& want);
/// Declares prefix0, prefix1, …; undefined tensors too.
std::string cpp_tensors(const std::string& prefix, const Tensors& ts);
/// "{prefix0, prefix1}"
std::string cpp_names(const std::string& prefix, size_t n);

}  // namespace lamella::verify
LAMELLA_API_END
