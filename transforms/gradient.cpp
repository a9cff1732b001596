// Gradients of functions with one value: a pullback of one.
#include "lamella/ops/functions/factory.h"
#include "lamella/transforms/argnums.h"
#include "lamella/transforms/grad.h"

namespace lamella {

namespace {
struct GradResult {
  Tensor value;
  Tensors grads, aux;
};

GradResult grad_at(const AuxFunction& f, const std::vector<int>& argnums, const Tensors& inputs) {
  const std::vector<size_t> at = positions(argnums, inputs.size(), "grad");
  const Tensors chosen = taken(inputs, at);
  check_inputs(chosen, "grad");
  VjpResult r = vjp_has_aux([&](const Tensors& xs) { return f(replaced(inputs, at, xs)); }, chosen);
  LAMELLA_CHECK(r.values.size() == 1 && r.values[0].numel() == 1, Shape,
                "grad: the function returned {}, expected one element", str(Value(r.values)));
  LAMELLA_CHECK(is_floating(r.values[0].dtype()), DType,
                "grad: the function returned {}, expected real floating point", r.values[0]);
  return {r.values[0], std::move(r.pullback)({ones_like(r.values[0])}), r.aux};
}

AuxFunction without_aux(ScalarFunction f) {
  return [f = std::move(f)](const Tensors& xs) { return std::pair(Tensors{f(xs)}, Tensors{}); };
}
}  // namespace

Function grad(ScalarFunction f, std::vector<int> argnums) {
  return [f = without_aux(given(std::move(f), "grad")), argnums](const Tensors& xs) {
    return grad_at(f, argnums, xs).grads;
  };
}

UnaryFunction grad(UnaryFunction f) {
  Function g =
      grad([f = given(std::move(f), "grad")](const Tensors& xs) { return f(xs[0]); }, std::vector<int>{0});
  return [g = std::move(g)](const Tensor& x) { return g({x})[0]; };
}

namespace {
Tensors joined(GradResult r, bool value) {
  Tensors out;
  if (value) out.push_back(r.value);
  out.insert(out.end(), r.grads.begin(), r.grads.end());
  out.insert(out.end(), r.aux.begin(), r.aux.end());
  return out;
}
}  // namespace

Function value_and_grad(ScalarFunction f, std::vector<int> argnums) {
  return value_and_grad_has_aux(without_aux(given(std::move(f), "value_and_grad")), std::move(argnums));
}

Function grad_has_aux(AuxFunction f, std::vector<int> argnums) {
  return [f = given(std::move(f), "grad_has_aux"), argnums](const Tensors& xs) {
    return joined(grad_at(f, argnums, xs), false);
  };
}

Function value_and_grad_has_aux(AuxFunction f, std::vector<int> argnums) {
  return [f = given(std::move(f), "value_and_grad_has_aux"), argnums](const Tensors& xs) {
    return joined(grad_at(f, argnums, xs), true);
  };
}

}  // namespace lamella
