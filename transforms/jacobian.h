// Full first and second derivatives: jacrev, jacfwd, hessian.
#pragma once

#include "lamella/transforms/grad.h"

LAMELLA_API_BEGIN
namespace lamella {

struct JacobianOptions {
  std::vector<int> argnums = {0};  ///< arguments to differentiate in; negative ones count from the end
  bool holomorphic = false;        ///< f is a complex function of complex arguments with a derivative df/dz
  /// Rows of the basis mapped at a time, to save memory; 0: all. For jacfwd f runs once for each group; what
  /// it draws is as without groups.
  int64_t chunk = 0;
  Randomness randomness = Randomness::Error;  ///< of what is drawn while rows are mapped: in jacfwd, by f
};

/// A function of f's arguments that gives the blocks d f_i / d x_j, of sizes f_i.sizes ++ x_j.sizes: all j of
/// `argnums` for the first result, then all for the next.
///
/// jacrev takes one pullback for each element of the results, jacfwd one pushforward for each element of the
/// arguments; both map over a basis. A block is of the dtype of x_j (jacrev), of f_i (jacfwd).
///
/// Complex numbers: real arguments may have complex results; a block is then complex, d Re f + i d Im f, and
/// jacrev takes two pullbacks for an element. Complex arguments need `holomorphic`: blocks are df/dz, by
/// either direction. What is no holomorphic function gives no error, but no derivative either.
///
/// Errors: dtype when a chosen argument is neither floating nor complex, is complex without `holomorphic` or
/// real with it, and when a result is neither floating nor complex, or real with `holomorphic`; undefined;
/// usage when argnums names no argument, or one twice; value when chunk < 0; randomness.
Function jacrev(Function f, JacobianOptions options = {});
Function jacfwd(Function f, JacobianOptions options = {});
/// jacfwd(jacrev(f)): blocks d (d f_i / d x_j) / d x_k, of sizes f_i.sizes ++ x_j.sizes ++ x_k.sizes, i
/// first, k last.
Function hessian(Function f, JacobianOptions options = {});

/// f returns (values, aux). Blocks, and aux. For jacfwd, aux must not depend on the row: draw with randomness
/// same.
AuxFunction jacrev_has_aux(AuxFunction f, JacobianOptions options = {});
AuxFunction jacfwd_has_aux(AuxFunction f, JacobianOptions options = {});
AuxFunction hessian_has_aux(AuxFunction f, JacobianOptions options = {});

/// Of one argument and one result.
UnaryFunction jacrev(UnaryFunction f, JacobianOptions options = {});
UnaryFunction jacfwd(UnaryFunction f, JacobianOptions options = {});
UnaryFunction hessian(UnaryFunction f, JacobianOptions options = {});

}  // namespace lamella
LAMELLA_API_END
