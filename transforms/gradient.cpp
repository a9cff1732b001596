// Gradients of functions with one value: a pullback of one.
#include "lamella/ops/functions.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/grad.h"

namespace lamella {

namespace {
struct GradResult {
  Tensor value;
  Tensors grads, aux;
};

GradResult grad_at(const AuxFunction& f, const std::vector<int>& argnums, const Tensors& inputs) {
  Tensors chosen;
  for (const int i : argnums) {
    LAMELLA_CHECK(i >= 0 && size_t(i) < inputs.size(), Usage,
                  "grad: argnums names argument {}; expected 0 <= argnum < {}", i, inputs.size());
    chosen.push_back(inputs[size_t(i)]);
  }
  check_inputs(chosen, "grad");
  VjpResult r = vjp_has_aux(
      [&](const Tensors& xs) {
        Tensors full = inputs;
        for (size_t k = 0; k < xs.size(); ++k) full[size_t(argnums[k])] = xs[k];
        return f(full);
      },
      chosen);
  LAMELLA_CHECK(r.values.size() == 1 && r.values[0].numel() == 1, Shape,
                "grad: the function returned {}, expected one element", str(Value(r.values)));
  LAMELLA_CHECK(is_floating(r.values[0].dtype()), DType,
                "grad: the function returned {}, expected real floating point", r.values[0]);
  return {r.values[0], r.pullback({ones_like(r.values[0])}), r.aux};
}

AuxFunction without_aux(ScalarFunction f) {
  return [f = std::move(f)](const Tensors& xs) { return std::pair(Tensors{f(xs)}, Tensors{}); };
}
}  // namespace

Function grad(ScalarFunction f, std::vector<int> argnums) {
  return
      [f = without_aux(std::move(f)), argnums](const Tensors& xs) { return grad_at(f, argnums, xs).grads; };
}

UnaryFunction grad(UnaryFunction f) {
  Function g = grad([f = std::move(f)](const Tensors& xs) { return f(xs[0]); }, std::vector<int>{0});
  return [g = std::move(g)](const Tensor& x) { return g({x})[0]; };
}

Function value_and_grad(ScalarFunction f, std::vector<int> argnums) {
  return [f = without_aux(std::move(f)), argnums](const Tensors& xs) {
    GradResult r = grad_at(f, argnums, xs);
    r.grads.insert(r.grads.begin(), r.value);
    return r.grads;
  };
}

Function grad_has_aux(AuxFunction f, std::vector<int> argnums) {
  return [f = std::move(f), argnums](const Tensors& xs) {
    GradResult r = grad_at(f, argnums, xs);
    r.grads.insert(r.grads.end(), r.aux.begin(), r.aux.end());
    return r.grads;
  };
}

}  // namespace lamella
