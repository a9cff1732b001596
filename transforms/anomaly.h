// Anomaly mode: which forward call gave the first NaN, or saved the value that was written later.
#pragma once

#include <memory>
#include <string>

#include "lamella/transforms/call_site.h"
#include "lamella/transforms/first_nan.h"

LAMELLA_API_BEGIN
namespace lamella {

struct AnomalyOptions {
  /// Also look at the results of forward calls, tangents of jvp included; false for programs that hide NaN
  /// on purpose: where(x > 0, log(x), 0).
  bool forward = true;
};

/// What anomaly mode has found: Error::reason() of its errors.
struct FoundNaN {
  enum Where : uint8_t {
    Result,    ///< of a call; the element says if in a tangent
    Formula,   ///< of the operator, for `input`
    Cotangent  ///< that came to the operator's formula
  } where;
  std::string op;     ///< the program's call, or the one whose formula it is; empty: a leaf's cotangent
  std::string input;  ///< of Formula: the parameter
  Element element;
  std::string type;                      ///< of the tensor: "f32[2,3]"
  std::shared_ptr<const CallSite> site;  ///< of the forward call; null where none was noted
};

/// While alive on this thread, each node of a tape, of base autograd and of levels, notes where the call that
/// made it came from, and three things raise error value that say so:
/// - a call outside formulas whose result has a NaN, value or tangent, while no argument has: operator,
///   element, lanes of mapped dims, and the kernel that gave it first;
/// - in backward, a formula that gives a NaN while no cotangent that came to it has one: operator, input,
///   element, lanes and the level that recorded it; also sums of cotangents where inf meets -inf, and NaN
///   that callers or hooks put in;
/// - the version error, and what else formulas raise: also where the value was saved and, if that was in this
///   scope, where it was written first.
/// Places are lines of source, where the program has them (call_site.h). Values and derivatives are those of
/// the program without. Slows each call down (some microseconds, and a look at each element); costs nothing
/// while off. Backward on other threads is not watched. The innermost one is in force.
class AnomalyMode {
 public:
  explicit AnomalyMode(AnomalyOptions options = {});
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lamella
LAMELLA_API_END
