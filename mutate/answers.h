// Wrong answers: one call below a law gives something wrong, and the law's verdict must refuse it.
#pragma once

#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// NOTE: [wrong answers] All laws are asked in one way, whatever they compute: in a process of its own every
/// operator's cell for plain CPU tensors is wrapped, a case is checked once while the calls that could be
/// answered wrongly are counted, and again with one of them answered wrongly. A law refuses a kind of wrong
/// answer when some case of a fixed set fails then and passes without. Views are left alone where a copy of
/// their elements would be a second wrong.
enum class Wrong : uint8_t { Nan, Off, Swapped, Dropped, DType, Strides, Raises, Silent, Leaks };
struct WrongAnswer {
  Wrong kind;
  std::string_view id, what;
};
const std::vector<WrongAnswer>& wrong_answers();

/// What a law said to one kind.
struct Heard {
  enum Kind : uint8_t {
    Refused,  ///< it failed, or its process ended
    NoCall,   ///< no call of its cases can be answered so
    Unseen    ///< it passed
  } kind = NoCall;
  std::string op;       ///< of the case that was refused
  std::string message;  ///< what the law said
  int checks = 0;       ///< with a wrong answer in them
};
/// What is made of the law's verdicts on wrong answers: a law whose verdicts all pass is one that law 130
/// must refuse.
enum class Verdicts : uint8_t { AsGiven, AllPass };
/// Checks a fixed set of cases of the law, of operators of different shape classes, until it refuses.
Heard hear(const Law& law, Wrong kind, Verdicts verdicts = Verdicts::AsGiven);

/// Whether the law is known to refuse the kind: docs/answers.md as a table (mutate/answers_seen.inc).
bool is_refused(const Law& law, Wrong kind);

}  // namespace lamella::verify
LAMELLA_API_END
