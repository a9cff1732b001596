// Any function of a case: the operator, one of its forms, or a drawn stack of transforms over it.
#pragma once

#include <optional>

#include "lamella/verify/case/heap.h"
#include "lamella/verify/case/law.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

struct DrawnFunction {
  Function f;
  Tensors xs;
  std::string program;  ///< body of main()
  int depth = 0;
};

/// None when the operator has nothing to act on. The case must outlive the function.
std::optional<DrawnFunction> draw_function(Case& c);

/// Lets go of results made in a trial: their blocks go back to malloc, not to a pool, while pools stand
/// aside.
void release(Tensors& results);

/// What a call may not leave changed, whether it returns or raises.
class Snapshot {
 public:
  Snapshot();
  /// What differs now; empty when nothing does. Of operator new only what is more counts: lists that are kept
  /// for the next call may be given up.
  Finding changed() const;
  /// Likewise without operator new: where the caller keeps objects of its own.
  Finding changed_beside_heap() const;

 private:
  DispatchState state_;
  uint64_t birth_;
  Alive alive_;
};

}  // namespace lamella::verify
LAMELLA_API_END
