// A plug-in that gives the CPU a layer_norm of its own, in one pass over each row; the library's is composed
// of nine operators. `lamella verify --load my_backend_override.so` holds it to the composite's definition,
// and to all other laws.
#include <cmath>

#include "lamella/plugin.h"

namespace {
using namespace lamella;

bool fits(const Tensor& t, DType d) { return !t.defined() || (t.dtype() == d && t.is_contiguous()); }

/// Sums in f64 and rounds once.
template <class T> void normalise(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                                  int64_t n, const Tensor& out) {
  const T* from = x.data<T>();
  T* to = out.data<T>();
  for (int64_t row = 0; row < x.numel() / n; ++row, from += n, to += n) {
    double mean = 0, rest = 0, var = 0;
    for (int64_t i = 0; i < n; ++i) mean += double(from[i]);
    mean /= double(n);
    for (int64_t i = 0; i < n; ++i) rest += double(from[i]) - mean;
    rest /= double(n);  // what the rounded mean is off by: much, where all numbers are far from 0
    for (int64_t i = 0; i < n; ++i) var += (double(from[i]) - mean - rest) * (double(from[i]) - mean - rest);
    const double scale = 1 / std::sqrt(var / double(n) + eps);
    for (int64_t i = 0; i < n; ++i) {
      const double w = weight.defined() ? double(weight.data<T>()[i]) : 1;
      const double b = bias.defined() ? double(bias.data<T>()[i]) : 0;
      to[i] = T((double(from[i]) - mean - rest) * scale * w + b);
    }
  }
}

/// What is refused the composite refuses, in its words.
bool is_valid(const Frame& f) {
  Inferred shapes;
  f.op->infer(f, shapes);
  return !shapes.refused;
}

/// What it does not take is composed as before.
void fused_layer_norm(Frame& f, int key) {
  const Tensor &x = f.tensor(0), &weight = f.tensor(2), &bias = f.tensor(3);
  const bool is_taken = (x.dtype() == DType::F32 || x.dtype() == DType::F64) && x.numel() > 0 &&
                        fits(x, x.dtype()) && fits(weight, x.dtype()) && fits(bias, x.dtype()) && is_valid(f);
  if (!is_taken) return call_built_in(f, key);
  int64_t n = 1;
  for (const int64_t size : f.ints(1)) n *= size;
  f.results[0] = make_tensor(x.sizes(), x.dtype());
  const auto run = x.dtype() == DType::F32 ? normalise<float> : normalise<double>;
  run(x, weight, bias, f.arg<double>(4), n, f.results[0]);
}
}  // namespace

LAMELLA_PLUGIN() { OpTable::set("layer_norm", int(Device::CPU), {"fused", fused_layer_norm}); }
