// The program of the README: per-sample gradients of a small model, and a Hessian, by nesting transforms.
#include <iostream>

#include "lamella/lamella.h"

int main() {
  using namespace lamella;
  const Tensor w = tensor_of({3}, {0.5, -1, 2}, DType::F64);
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);

  // loss(w, x) for one example; grad differentiates with respect to w, vmap maps over the examples alone.
  const ScalarFunction loss = [](const Tensors& a) { return sum(tanh(a[0] * a[1])); };
  const Function per_sample = vmap(grad(loss), InDims{kNone, 0});
  std::cout << "per-sample gradients: " << str(per_sample({w, x})[0]) << '\n';

  const UnaryFunction f = [](const Tensor& t) { return sum(t * t * t); };
  std::cout << "hessian of sum(t^3):  " << str(hessian(f)(w)) << '\n';

  const Function wrong = vmap(Function([&](const Tensors& a) {
                                return Tensors{a[0] + tensor_of({2}, {1, 1})};
                              }),
                              VmapOptions{});
  try {
    wrong({x});
  } catch (const Error& e) { std::cout << e.what() << '\n'; }
}
