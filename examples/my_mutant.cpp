// A plug-in that plants bugs of its own: `lamella mutate --load build/release/plugins/my_mutant.so` plants
// them in every operator they fit, beside the built-in ones, and lists which law notices.
#include "lamella/dispatch/plugin.h"
#include "lamella/mutate/mutants.h"
#include "lamella/ops/functions.h"

namespace {
using namespace lamella;
using namespace lamella::verify;

/// A bug in a kernel: results of f32 lose their sign. Bugs are planted in a copy of an operator's row;
/// right_row() is the row without the bug.
void sign_lost(const KernelCall& call) {
  right_row().kernel.cpu(call);
  const View& out = call.outs[0];
  if (out.dtype != DType::F32 || out.rank > 1) return;
  for (int64_t i = 0; i < out.numel(); ++i) {
    float& y = out.as<float>()[i * (out.rank ? out.strides[0] : 1)];
    if (y < 0) y = -y;
  }
}

bool pointwise(const Op& op) {
  return op.shape == ShapeClass::Broadcast && op.kernel.cpu && op.vjp.size() == 1 && !op.launch;
}

/// A bug in a call that a derivative formula or a batch rule makes: the result is transposed. What it fits is
/// asked with what recorded calls were like.
Tensors transposed(const Op& called, const Values& args) {
  Tensors ys = call_boxed(called, args);
  for (Tensor& y : ys)
    if (y.defined() && y.rank() >= 2 && y.size(-1) == y.size(-2)) y = transpose(y, -1, -2);
  return ys;
}
bool of_matrices(const Op& called, const CallTraits& calls) {
  return called.shape == ShapeClass::Contract && calls.rank >= 2;
}
}  // namespace

LAMELLA_PLUGIN() {
  add_mutant({"my_sign_lost", "kernel", "Negative f32 results lose their sign.", pointwise, [](Op& row) {
                row.kernel.cpu = sign_lost;
                row.kernel.lines = {};  // small tensors take the kernel too
              }});
  add_perturbation({"my_transposed", "A square result is transposed.", of_matrices, transposed});
}
