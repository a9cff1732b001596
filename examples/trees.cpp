// Learns a circle with a network whose parameters are a struct: gradients of trees, and one for each example.
#include <cmath>
#include <cstdio>

#include "lamella/lamella.h"

using namespace lamella;

namespace {
struct Layer {
  Tensor weight, bias;
  LAMELLA_FIELDS(weight, bias)
};

struct Params {
  std::vector<Layer> layers;
  Tensor scale;
  LAMELLA_FIELDS(layers, scale)
};

Params first_params() {
  const auto layer = [](int64_t in, int64_t out) {
    return Layer{randn({in, out}) / std::sqrt(double(in)), zeros({out})};
  };
  return {{layer(2, 16), layer(16, 16), layer(16, 1)}, ones({})};
}

/// x: [2] or [n, 2]; the result without its last dim.
Tensor predict(const Params& p, const Tensor& x) {
  Tensor h = x;
  for (const Layer& layer : p.layers) {
    h = matmul(h, layer.weight) + layer.bias;
    if (&layer != &p.layers.back()) h = tanh(h);
  }
  return squeeze(h * p.scale, IntArg({-1}));
}

Tensor loss(const Params& p, const Tensor& x, const Tensor& answer) {
  const Tensor error = predict(p, x) - answer;
  return mean(error * error);
}
}  // namespace

int main() {
  manual_seed(1);
  const Tensor x = rand({256, 2}) * 2.0 - 1.0, answers = to(lt(sum(x * x, IntArg({1})), 0.5), DType::F32);
  Params p = first_params();
  const auto step = value_and_grad(loss);
  for (int i = 0; i <= 900; ++i) {
    const auto [value, slope] = step(p, x, answers);
    if (i % 300 == 0) std::printf("step %3d: loss %.4f\n", i, value.item<double>());
    p = tree_map([](const Tensor& w, const Tensor& g) { return w - g * 0.1; }, p, slope);
  }
  const Params each = vmap(grad(loss), {kNone, 0, 0})(p, x, answers);
  std::printf("gradients of the examples:\n%s", tree_str(each).c_str());
}
