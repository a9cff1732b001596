// Constants inside transforms: one value (stop_gradient), or all that a scope computes (NoGradLevels).
#pragma once

#include <cstdint>
#include <memory>

#include "lamella/ops/functions/copy.h"

LAMELLA_API_BEGIN
namespace lamella {

/// x as a constant: JAX's name of the operator `detach`. Of x's shape and dtype and in x's memory; without
/// derivatives in base autograd and at every live level of grad and jvp; mapped by vmap as x is. Error
/// undefined.
inline Tensor stop_gradient(const Tensor& x) { return detach(x); }

/// While alive on this thread, what is computed is constant for levels of grad and jvp (and others that act
/// where an argument carries them) that were open before: every operator gives its result without their
/// derivatives. Levels opened inside record as ever, so that grad inside of it works, and a function that
/// opens it for a part of its work means the same under any transform. A write in place inside the scope
/// changes values; derivatives stay those of what was there before, as for base autograd under NoGrad. What
/// computes nothing gives its argument itself, derivatives and all: contiguous(x), real(x) of a real x.
/// Costs nothing where no such level is open. Error level_limit beyond 48 nested levels.
class NoGradLevels {
 public:
  NoGradLevels();
  ~NoGradLevels();
  NoGradLevels(const NoGradLevels&) = delete;
  /// Keys of the scopes that are open on this thread; where they are excluded, all levels record.
  static uint64_t live();

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;  ///< null when no level is open that has derivatives
};

}  // namespace lamella
LAMELLA_API_END
