// The program of the README: gradients for each example, and a Hessian, by nesting transforms.
#include <iostream>

#include "lamella/lamella.h"

int main() {
  using namespace lamella;
  const Tensor w = tensor_of({3}, {0.5, -1, 2}, DType::F64);
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::F64);
  const ScalarFunction loss = [](const Tensors& a) { return pow(sum(a[0] * a[1]), 2); };
  const Function each = vmap(grad(loss), InDims{kNone, 0});  // grad by w, for each row of x alone
  std::cout << str(each({w, x})[0]) << '\n';

  const UnaryFunction cubes = [](const Tensor& t) { return sum(t * t * t); };
  std::cout << str(hessian(cubes)(w)) << '\n';
  try {
    each({w, zeros({2, 4})});
  } catch (const Error& e) { std::cout << e.what() << '\n'; }
}
