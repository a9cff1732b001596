// Jacobian and Hessian of a small map, one thread: what bench/jacobians_jax.py times under jax.jit.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "lamella/lamella.h"

namespace lamella {
namespace {

struct TanhMap {
  Tensor w = div(randn({64, 64}), Scalar(8.0)), v = div(randn({64, 64}), Scalar(8.0));
  Tensor operator()(const Tensor& x) const { return tanh(mv(v, tanh(mv(w, x)))); }
};

void measure(std::string_view name, const std::function<void()>& call) {
  constexpr int kSamples = 21, kCalls = 300;
  std::vector<double> us;
  call();
  for (int k = 0; k < kSamples; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
                 kCalls);
  }
  std::ranges::sort(us);
  std::printf("%-16s least %6.1f us, median %6.1f us\n", std::string(name).c_str(), us[0], us[kSamples / 2]);
}

}  // namespace
}  // namespace lamella

int main() {
  using namespace lamella;
  set_threads(1);
  const TanhMap f;
  const Tensor x = randn({64});
  const auto j = jacrev(UnaryFunction(f));
  const auto h = hessian(UnaryFunction([&](const Tensor& at) { return sum(f(at)); }));
  measure("jacrev", [&] { (void)j(x); });
  measure("hessian of sum", [&] { (void)h(x); });
}
