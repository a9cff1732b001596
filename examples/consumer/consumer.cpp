// A program of another project: per-example gradients, and the version that it is linked with.
#include <iostream>
#include <lamella/lamella.h>

int main() {
  using namespace lamella;
  const Tensor w = tensor_of({2}, {1, -1}, DType::F64);
  const Tensor x = tensor_of({3, 2}, {1, 2, 3, 4, 5, 6}, DType::F64);
  const ScalarFunction loss = [](const Tensors& a) { return pow(sum(a[0] * a[1]), 2); };
  std::cout << version() << ": " << str(vmap(grad(loss), InDims{kNone, 0})({w, x})[0]) << '\n';
}
