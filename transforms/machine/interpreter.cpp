// How a call goes through a level.
#include "lamella/transforms/machine/interpreter.h"

namespace lamella {

void Interpreter::call(Frame& frame, int key) {
  LAMELLA_ASSERT(key == key_);
  if (frame.op->form == OpForm::Functional) [[likely]] {
    const Below below(key);
    return functional(frame);
  }
  written(frame);
}

}  // namespace lamella
