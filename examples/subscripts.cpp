// Parts of tensors by x[{...}]: read, written, and differentiated inside vmap, with a mask for each lane.
#include <iostream>

#include "lamella/lamella.h"

int main() {
  using namespace lamella;
  const Tensor x = reshape(to(arange(12), DType::F64), {3, 4});
  std::cout << str(x[{1, Slice{0, -1, 2}}]) << '\n'  // row 1, every second entry without the last
            << str(x[{Ellipsis, None, -1}]) << '\n'  // the last column, with a dim of size 1 before it
            << str(x[{Slice{1}, gt(x[0], 1)}]) << "\n\n";

  // Steps of a walk; each lane clips its own entries, and gradients know of it.
  const UnaryFunction loss = [](const Tensor& steps) {
    const Tensor path = zeros({5}, DType::F64);
    for (int64_t i = 0; i < 4; ++i) path[i + 1] = path[i] + steps[i];
    path[gt(path, 10)] = 10.0;
    path[{Slice{None, 2}}] *= 0.5;
    return sum(path * path);
  };
  std::cout << str(vmap(loss)(x)) << '\n' << str(vmap(grad(loss))(x)) << '\n';
}
