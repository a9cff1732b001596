// What a graph keeps for its backward, kept elsewhere: in a file, or in half precision. The gradients, and
// the memory that is held between forward and backward.
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include "lamella/lamella.h"

using namespace lamella;

namespace {
constexpr int64_t kRows = 512, kWidth = 256, kLayers = 8;

/// A file without a name, which goes with the last tensor in it.
class SpillFile {
 public:
  SpillFile() : file_(std::tmpfile()) {
    if (!file_) throw std::runtime_error("no temporary file");
  }
  ~SpillFile() { std::fclose(file_); }
  SpillFile(const SpillFile&) = delete;

  /// Where the elements of t lie from now on.
  off_t write(const Tensor& t) {
    const off_t at = end_;
    end_ += bytes(t);
    check(pwrite(fileno(file_), t.raw_data(), size_t(bytes(t)), at) == bytes(t));
    return at;
  }
  void read(const Tensor& to, off_t at) const {
    check(pread(fileno(file_), to.raw_data(), size_t(bytes(to)), at) == bytes(to));
  }
  double megabytes() const { return double(end_) / 1e6; }

 private:
  static int64_t bytes(const Tensor& t) { return t.numel() * itemsize(t.dtype()); }
  static void check(bool worked) {
    if (!worked) throw std::runtime_error("the temporary file is full");
  }
  std::FILE* file_;
  off_t end_ = 0;
};

Pack to_file(const std::shared_ptr<SpillFile>& file) {
  return [file](const Tensor& t) -> Unpack {
    const Tensor dense = contiguous(t);
    return [file, at = file->write(dense), sizes = Dims(t.sizes()), dtype = t.dtype()] {
      const Tensor back = make_tensor(sizes, dtype);
      file->read(back, at);
      return back;
    };
  };
}

Unpack in_half(const Tensor& t) {
  return [half = to(t, DType::BF16), dtype = t.dtype()] { return to(half, dtype); };
}

/// Leaves alone what is small, and the parameters, which are in memory anyway. The next operator often saves
/// the very value that the last one did: they share what was made of it.
Pack sharing(Pack store, Tensors parameters) {
  struct Last {
    Tensor value;
    uint32_t version;
    Unpack unpack;
  };
  return [store = std::move(store), parameters = std::move(parameters),
          last = std::make_shared<Last>()](const Tensor& t) -> Unpack {
    if (t.numel() < 1024) return {};
    for (const Tensor& p : parameters)
      if (p.shares_storage(t)) return {};
    const bool same = last->value.defined() && overlap(last->value, t) == Overlap::Same;
    if (!same || last->version != version_of(t)) *last = {t, version_of(t), store(t)};
    return last->unpack;
  };
}

Tensor loss(const Tensor& x, const Tensors& weights) {
  Tensor h = x;
  for (const Tensor& w : weights) h = tanh(matmul(h, w));
  return mean(h * h);
}

struct Outcome {
  Tensors gradients;
  double held;  ///< megabytes, between forward and backward
};

Outcome run(const Tensor& x, const Tensors& weights, const Pack& pack) {
  for (const Tensor& w : weights) clear_grad(w);
  const int64_t before = memory_stats().bytes;
  Tensor value;
  if (pack) {
    const SavedTensorHooks elsewhere(sharing(pack, weights));
    value = loss(x, weights);
  } else {
    value = loss(x, weights);
  }
  Outcome out{{}, double(memory_stats().bytes - before) / 1e6};
  backward(value);
  for (const Tensor& w : weights) out.gradients.push_back(grad_of(w));
  return out;
}

/// The largest difference, in parts of the gradient's norm.
double difference(const Tensors& got, const Tensors& want) {
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor d = got[i] - want[i];
    const double of_norm = std::sqrt(sum(d * d).item<float>() / sum(want[i] * want[i]).item<float>());
    largest = std::max(largest, of_norm);
  }
  return largest;
}
}  // namespace

int main() {
  manual_seed(1);
  const Tensor x = randn({kRows, kWidth});
  Tensors weights;
  for (int64_t i = 0; i < kLayers; ++i)
    weights.push_back(requires_grad(randn({kWidth, kWidth}) / std::sqrt(double(kWidth))));
  const Outcome plain = run(x, weights, {});
  const auto file = std::make_shared<SpillFile>();
  const Outcome spilled = run(x, weights, to_file(file)), halved = run(x, weights, in_half);
  const double exact = difference(spilled.gradients, plain.gradients);
  const double rounded = difference(halved.gradients, plain.gradients);
  std::printf("kept as it is:  %4.1f MB between forward and backward\n", plain.held);
  std::printf("in a file:      %4.1f MB, and %.1f MB in the file; gradients differ by %.2g\n", spilled.held,
              file->megabytes(), exact);
  std::printf("as bf16:        %4.1f MB; gradients differ by %.2g\n", halved.held, rounded);
  const bool right =
      exact == 0 && rounded < 0.02 && spilled.held < 0.3 * plain.held && halved.held < 0.7 * plain.held;
  return right ? 0 : 1;
}
