// Checks of the arguments a derivative is taken in.
#include "lamella/transforms/argnums.h"

namespace lamella {

void check_inputs(const Tensors& inputs, std::string_view what) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    LAMELLA_CHECK(inputs[i].defined(), Undefined,
                  "{}: input {} is an undefined tensor; expected a defined one", what, i);
    LAMELLA_CHECK(is_inexact(inputs[i].dtype()), DType,
                  "{}: input {} is {}, expected floating point or complex", what, i, inputs[i]);
  }
}

}  // namespace lamella
