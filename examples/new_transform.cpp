// A transform of one's own: a mode that counts floating-point operations, below vmap and grad as well.
#include <cstdio>

#include "lamella/core/generator.h"
#include "lamella/dispatch/call.h"
#include "lamella/ops/functions.h"
#include "lamella/transforms/grad.h"

using namespace lamella;

/// While its level lives, sees every operator that reaches it: what the transforms inside it turned calls
/// into.
class FlopCounter : public Transform {
 public:
  TransformKind kind() const override { return TransformKind::Mode; }
  std::string_view name() const override { return "flops"; }
  void call(Frame& frame, int key) override {
    const Below below(key);  // the next level down computes
    lamella::call(frame);
    count_ += cost(frame);
  }
  int64_t count() const { return count_; }

 private:
  static int64_t cost(const Frame& frame) {
    const Op& op = *frame.op;
    if (op.schema.result_kind == ResultKind::TensorList || op.tensor_params.empty()) return 0;
    const Tensor &x = frame.tensor(op.tensor_params[0]), &y = frame.results[0];
    if (!x.defined() || !is_inexact(y.dtype())) return 0;
    switch (op.shape) {
      case ShapeClass::Broadcast: return y.numel();
      case ShapeClass::Reduce:
      case ShapeClass::AlongDim: return x.numel();
      case ShapeClass::Contract: return 2 * y.numel() * (x.rank() ? x.size(-1) : 1);  // a multiply and an add
      default: return 0;  // views, indexing: nothing is computed
    }
  }
  int64_t count_ = 0;
};

template <class F> int64_t flops(F&& f) {
  FlopCounter counter;
  const Level level(counter);
  f();
  return counter.count();
}

int main() {
  manual_seed(1);
  const Tensor w = randn({64, 10}), xs = randn({8, 64});
  const auto loss = [](const Tensors& a) { return sum(tanh(matmul(a[1], a[0]))); };
  const Function gradient = grad(loss);
  const int64_t forward = flops([&] { loss({w, select(xs, 0, 0)}); });
  const int64_t one = flops([&] { gradient({w, select(xs, 0, 0)}); });
  const int64_t all = flops([&] { vmap(gradient, {kNone, 0})({w, xs}); });
  std::printf("forward %lld, grad %lld, vmap(grad) over 8 samples %lld\n", (long long)forward, (long long)one,
              (long long)all);
  return forward == 2 * 64 * 10 + 10 + 10 && one > forward && all == 8 * one ? 0 : 1;
}
