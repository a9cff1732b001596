// How much memory does backward hold at its peak, beside the same program written by hand?
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "lamella/core/generator.h"
#include "lamella/core/storage.h"
#include "lamella/lamella.h"

namespace {
using namespace lamella;

constexpr double kMost = 1.05;  // of the program by hand
constexpr int kLayers = 6;
constexpr int64_t kBatch = 512, kWidth = 256;

/// The most bytes that storages and blocks hold at any call's begin, result or end: between those nothing is
/// allocated but what a kernel uses inside, which is the same kernel's in both programs.
class Meter final : public Observer {
 public:
  Meter() : scope_(this) {}
  void on_call(const Frame&, KeySet, int) override { look(); }
  void on_result(const Frame&) override { look(); }
  void on_return(const Frame&) override { look(); }
  int64_t peak() const { return most_ - before_; }
  int calls() const { return looks_ / 3; }

 private:
  void look() { most_ = std::max(most_, memory_stats().bytes), ++looks_; }
  const int64_t before_ = memory_stats().bytes;
  int64_t most_ = before_;
  int looks_ = 0;
  const ScopedObserver scope_;
};

/// tanh of layers, and the sum of squares of what is left to y.
struct Mlp {
  Tensor x = randn({kBatch, kWidth}), y = randn({kBatch, kWidth});
  Tensors weights, biases;
  Mlp() {
    for (int i = 0; i < kLayers; ++i) {
      weights.push_back(div(randn({kWidth, kWidth}), Scalar(16.0)));
      biases.push_back(randn({kWidth}));
    }
  }
};

Tensor loss_of(const Tensor& x, const Tensor& y, const Tensors& weights, const Tensors& biases) {
  Tensor h = x;
  for (size_t i = 0; i < weights.size(); ++i) h = tanh(add(mm(h, weights[i]), biases[i]));
  const Tensor d = sub(h, y);
  return sum(mul(d, d));
}

struct Measured {
  Tensors gradients;
  int64_t peak;
};

/// What a person writes who keeps the arguments of tanh and its results (the next layer's input), and lets go
/// of each once it has been used: decision 0025.
Measured by_hand(const Mlp& m) {
  const Meter meter;
  Tensors h{m.x}, sums, of_weights(kLayers), of_biases(kLayers);
  for (size_t i = 0; i < kLayers; ++i) {
    sums.push_back(add(mm(h[i], m.weights[i]), m.biases[i]));
    h.push_back(tanh(sums[i]));
  }
  Tensor d = sub(h[kLayers], m.y);
  h[kLayers] = Tensor();
  const Tensor loss = sum(mul(d, d)), ones_of_d = expand(ones_like(loss), d.sizes());
  Tensor g = mul(ones_of_d, d);
  g = add(g, mul(ones_of_d, d));
  d = Tensor();
  for (size_t i = kLayers; i-- > 0;) {
    const Tensor slope = sech_squared(std::exchange(sums[i], Tensor()));
    g = mul(g, slope);
    of_biases[i] = sum(g, IntArg({0}));
    of_weights[i] = mm(transpose(h[i], 0, 1), g);
    h[i] = Tensor();
    if (i > 0) g = mm(g, transpose(m.weights[i], 0, 1));
  }
  Tensors all = of_weights;
  all.insert(all.end(), of_biases.begin(), of_biases.end());
  return {all, meter.peak()};
}

Measured by_backward(const Mlp& m) {
  Tensors weights, biases, all;
  for (const Tensor& w : m.weights) weights.push_back(requires_grad(w));
  for (const Tensor& b : m.biases) biases.push_back(requires_grad(b));
  const Meter meter;
  backward(loss_of(m.x, m.y, weights, biases));
  for (const Tensor& w : weights) all.push_back(grad_of(w));
  for (const Tensor& b : biases) all.push_back(grad_of(b));
  return {all, meter.peak()};
}

Measured by_grad(const Mlp& m) {
  Tensors args = m.weights;
  args.insert(args.end(), m.biases.begin(), m.biases.end());
  std::vector<int> which;
  for (int i = 0; i < 2 * kLayers; ++i) which.push_back(i);
  const ScalarFunction f = [&m](const Tensors& a) {
    return loss_of(m.x, m.y, Tensors(a.begin(), a.begin() + kLayers), Tensors(a.begin() + kLayers, a.end()));
  };
  const Function g = grad(f, which);
  const Meter meter;
  const Tensors all = g(args);
  return {all, meter.peak()};
}

bool same_bits(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor p = clone(a[i]), q = clone(b[i]);
    const size_t bytes = size_t(p.numel() * itemsize(p.dtype()));
    if (p.numel() != q.numel() || std::memcmp(p.raw_data(), q.raw_data(), bytes) != 0) return false;
  }
  return true;
}

/// 1 when a ratio is above kMost, or gradients differ in a bit: then it is another program.
int report() {
  manual_seed(1);
  const Mlp m;
  (void)by_hand(m);  // what stays is made by the first run
  const Measured hand = by_hand(m), tape = by_backward(m), level = by_grad(m);
  std::printf("%d layers of tanh(h W + b), %lld by %lld f32: most MiB at once\n", kLayers,
              static_cast<long long>(kBatch), static_cast<long long>(kWidth));
  int wrong = 0;
  const auto line = [&](const char* name, const Measured& run) {
    const double ratio = double(run.peak) / double(hand.peak);
    const bool same = same_bits(run.gradients, hand.gradients);
    std::printf("  %-12s %8.3f  %6.3f%s%s\n", name, double(run.peak) / (1 << 20), ratio,
                ratio > kMost ? "  more than 1.05" : "", same ? "" : "  other gradients");
    wrong += ratio > kMost || !same;
  };
  line("by hand", hand), line("backward", tape), line("grad", level);
  return wrong ? 1 : 0;
}
}  // namespace

int main() { return report(); }
