// Learns to read handwritten digits; every step knows the gradient of every example, by vmap(grad).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>

#include "lamella/core/generator.h"
#include "lamella/ops/functions.h"
#include "lamella/transforms/grad.h"

using namespace lamella;

namespace {
constexpr int64_t kPixels = 64, kHidden = 32, kDigits = 10, kBatch = 64;
constexpr int kEpochs = 40;
constexpr double kRate = 0.1, kMomentum = 0.9;

struct Digits {
  Tensor images;   ///< f32[n, 64] in [0, 1]
  Tensor answers;  ///< f32[n, 10], one-hot
  std::vector<int> labels;
};

Digits read_digits(const std::string& path) {
  std::ifstream in(path);
  LAMELLA_CHECK(in, Usage, "digits: cannot open \"{}\"", path);
  std::vector<int> cells;
  char comma = ',';
  for (int v; in >> v; in.get(comma)) cells.push_back(v);
  const int64_t n = int64_t(cells.size()) / (kPixels + 1);
  LAMELLA_CHECK(n > 0 && int64_t(cells.size()) == n * (kPixels + 1), Value,
                "digits: \"{}\" has {} numbers, expected a multiple of {}", path, cells.size(), kPixels + 1);
  Digits out{zeros({n, kPixels}), zeros({n, kDigits}), {}};
  const Accessor<float, 2> image(out.images), answer(out.answers);
  for (int64_t i = 0; i < n; ++i) {
    const int* row = &cells[size_t(i * (kPixels + 1))];
    for (int64_t p = 0; p < kPixels; ++p) image(i, p) = float(row[p]) / 16;
    out.labels.push_back(row[kPixels]);
    answer(i, row[kPixels]) = 1;
  }
  return out;
}

/// weights: [64, 32], [32], [32, 10], [10]; x: [64] or [n, 64].
Tensor scores(const Tensors& weights, const Tensor& x) {
  return matmul(tanh(matmul(x, weights[0]) + weights[1]), weights[2]) + weights[3];
}

/// Cross entropy of one example, or the mean over a batch. Arguments: the weights, x, the one-hot answer.
Tensor loss(const Tensors& a) {
  const Tensor per_example = -sum(log_softmax(scores(a, a[4]), -1) * a[5], IntArg({-1}));
  return mean(per_example);
}

const std::vector<int> kWeights = {0, 1, 2, 3};

Tensors with(Tensors weights, const Tensor& x, const Tensor& answers) {
  weights.push_back(x);
  weights.push_back(answers);
  return weights;
}

/// One gradient per example: results [n, sizes of the weight].
Tensors per_example_gradients(const Tensors& weights, const Tensor& x, const Tensor& answers) {
  static const Function f = vmap(grad(loss, kWeights), {kNone, kNone, kNone, kNone, 0, 0});
  return f(with(weights, x, answers));
}

/// |mean of the per-example gradients - gradient of the batch| / |gradient of the batch|, over all weights.
double disagreement(const Tensors& weights, const Tensor& x, const Tensor& answers) {
  const Tensors each = per_example_gradients(weights, x, answers);
  const Tensors whole = grad(loss, kWeights)(with(weights, x, answers));
  double apart = 0, size = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    const Tensor difference = mean(each[i], IntArg({0})) - whole[i];
    apart += sum(to(difference * difference, DType::F64)).item<double>();
    size += sum(to(whole[i] * whole[i], DType::F64)).item<double>();
  }
  return std::sqrt(apart / size);
}

Tensors cast(const Tensors& ts, DType dtype) {
  Tensors out;
  for (const Tensor& t : ts) out.push_back(to(t, dtype));
  return out;
}

Tensor index_of(std::span<const int64_t> which) {
  const Tensor index = make_tensor(Dims{int64_t(which.size())}, DType::I64);
  std::copy(which.begin(), which.end(), index.data<int64_t>());
  return index;
}

Tensors first_weights() {
  return {randn({kPixels, kHidden}) / std::sqrt(double(kPixels)), zeros({kHidden}),
          randn({kHidden, kDigits}) / std::sqrt(double(kHidden)), zeros({kDigits})};
}

/// Stochastic gradient descent with momentum; the batch's gradient is the mean of its examples'.
void train(Tensors& weights, const Digits& data, std::vector<int64_t> order) {
  Tensors speed;
  for (const Tensor& w : weights) speed.push_back(zeros_like(w));
  std::mt19937 shuffler(1);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), shuffler);
    for (size_t begin = 0; begin < order.size(); begin += kBatch) {
      const size_t count = std::min(size_t(kBatch), order.size() - begin);
      const Tensor index = index_of({&order[begin], count});
      const Tensors gradients = per_example_gradients(weights, index_select(data.images, 0, index),
                                                      index_select(data.answers, 0, index));
      for (size_t i = 0; i < weights.size(); ++i) {
        speed[i] = speed[i] * kMomentum + mean(gradients[i], IntArg({0}));
        weights[i] = weights[i] - speed[i] * kRate;
      }
    }
  }
}

double accuracy(const Tensors& weights, const Digits& data, const Tensor& index) {
  const Tensor guesses = argmax(scores(weights, index_select(data.images, 0, index)), -1);
  const Tensor answers = argmax(index_select(data.answers, 0, index), -1);
  return mean(to(eq(guesses, answers), DType::F64)).item<double>();
}

/// |gradient| of each example, over all weights.
std::vector<double> gradient_norms(const Tensors& weights, const Digits& data) {
  std::vector<double> squares(data.labels.size(), 0);
  for (const Tensor& g : per_example_gradients(weights, data.images, data.answers)) {
    const Tensor flat = reshape(g, {g.size(0), -1});
    const std::vector<double> part = sum(flat * flat, IntArg({1})).to_vector();
    for (size_t i = 0; i < squares.size(); ++i) squares[i] += part[i];
  }
  for (double& s : squares) s = std::sqrt(s);
  return squares;
}

void print_hardest(const Tensors& weights, const Digits& data) {
  const std::vector<double> norms = gradient_norms(weights, data);
  std::vector<size_t> order(norms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(order.begin(), order.begin() + 5, order.end(),
                    [&](size_t a, size_t b) { return norms[a] > norms[b]; });
  const std::vector<double> guesses = argmax(scores(weights, data.images), -1).to_vector();
  std::printf("the five digits with the largest gradient norm\n");
  for (int k = 0; k < 5; ++k) {
    const size_t i = order[size_t(k)];
    std::printf("  #%-4zu %d read as %d ", i, data.labels[i], int(guesses[i]));
  }
  std::printf("\n");
  for (int k = 0; k < 5; ++k) std::printf("  |g| = %-11.3g", norms[order[size_t(k)]]);
  std::printf("\n");
  const Accessor<float, 2> image(data.images);
  for (int64_t row = 0; row < 8; ++row) {
    for (int k = 0; k < 5; ++k) {
      std::printf("  ");
      for (int64_t column = 0; column < 8; ++column) {
        const float shade = image(int64_t(order[size_t(k)]), row * 8 + column);
        std::printf("%c", " .:-=+*#%@"[int(shade * 9)]);
      }
      std::printf("%9s", "");
    }
    std::printf("\n");
  }
}
}  // namespace

int main() try {
  const auto start = std::chrono::steady_clock::now();
  const Digits data = read_digits(std::string(LAMELLA_EXAMPLE_DATA) + "/digits.csv");
  std::vector<int64_t> order(data.labels.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(0));
  const size_t n_train = order.size() * 4 / 5;
  const std::vector<int64_t> training(order.begin(), order.begin() + std::ptrdiff_t(n_train));
  const Tensor held_out = index_of({&order[n_train], order.size() - n_train});

  manual_seed(0);
  Tensors weights = first_weights();
  const Tensor batch = index_of({training.data(), size_t(kBatch)});
  const Tensor x = index_select(data.images, 0, batch), answers = index_select(data.answers, 0, batch);
  const double apart32 = disagreement(weights, x, answers);
  const double apart64 = disagreement(cast(weights, DType::F64), to(x, DType::F64), to(answers, DType::F64));
  std::printf(
      "mean of per-example gradients and batch gradient differ by %.2g (f32, at most 1e-05), %.2g (f64, at "
      "most 1e-12)\n",
      apart32, apart64);

  train(weights, data, training);
  const double right = accuracy(weights, data, held_out);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%d epochs of %zu digits in %.1f s; %.1f %% of %lld held-out digits are read right\n", kEpochs,
              n_train, seconds, 100 * right, (long long)held_out.numel());
  print_hardest(weights, data);
  return right >= 0.95 && apart32 <= 1e-5 && apart64 <= 1e-12 ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "digits: %s\n", e.what());
  return 2;
}
