// A plug-in that gives the CPU a layer_norm of its own, in one pass over each row; the library's is composed
// of nine operators. `lamella verify --load build/release/plugins/my_backend_override.so --law
// matches_reference` holds it to the composite's definition.
#include <cmath>

#include "lamella/dispatch/plugin.h"
#include "lamella/dispatch/table.h"
#include "lamella/ops/functions.h"

namespace {
using namespace lamella;

bool fits(const Tensor& t, DType d) { return !t.defined() || (t.dtype() == d && t.is_contiguous()); }

/// Sums in f64 and rounds once.
template <class T> void normalise(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                                  int64_t n, const Tensor& out) {
  const T* from = x.data<T>();
  T* to = out.data<T>();
  for (int64_t row = 0; row < x.numel() / n; ++row, from += n, to += n) {
    double mean = 0, var = 0;
    for (int64_t i = 0; i < n; ++i) mean += double(from[i]);
    mean /= double(n);
    for (int64_t i = 0; i < n; ++i) var += (double(from[i]) - mean) * (double(from[i]) - mean);
    const double scale = 1 / std::sqrt(var / double(n) + eps);
    for (int64_t i = 0; i < n; ++i) {
      const double w = weight.defined() ? double(weight.data<T>()[i]) : 1;
      const double b = bias.defined() ? double(bias.data<T>()[i]) : 0;
      to[i] = T((double(from[i]) - mean) * scale * w + b);
    }
  }
}

/// What it does not take is composed as before: the same checks, the same errors.
void fused_layer_norm(Frame& f, int) {
  const Tensor x = f.tensor(0).defined() ? contiguous(f.tensor(0)) : Tensor();
  const auto valid = [&] {  // what is refused the composite refuses, in its words
    try {
      Inferred shapes;
      f.op->infer(f, shapes);
      return true;
    } catch (const Error&) { return false; }
  };
  const bool taken = x.defined() && x.numel() > 0 && valid() &&
                     (x.dtype() == DType::F32 || x.dtype() == DType::F64) && fits(f.tensor(2), x.dtype()) &&
                     fits(f.tensor(3), x.dtype());
  if (!taken) return f.op->composite(f);
  int64_t n = 1;
  for (const int64_t size : f.ints(1)) n *= size;
  const Tensor out = make_tensor(x.sizes(), x.dtype());
  const auto run = x.dtype() == DType::F32 ? normalise<float> : normalise<double>;
  run(x, f.tensor(2), f.tensor(3), f.arg<double>(4), n, out);
  f.results[0] = out;
}
}  // namespace

LAMELLA_PLUGIN() {
  OpTable::set("layer_norm", int(Device::CPU), {"fused", fused_layer_norm, nullptr, "my_backend_override"});
}
