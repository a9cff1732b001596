// A plug-in that brings another kernel for an operator the library has: sums of f32, added in f64.
// `lamella bench sum --load my_kernel.so` checks it and times it beside the library's own.
#include "lamella/plugin.h"

namespace {
using namespace lamella;

/// Side by side, so that vectors do it; the processor's width is chosen at the first call.
[[gnu::target_clones("avx512f", "avx2", "default")]] double added(const float* x, int64_t n) {
  constexpr int64_t kWide = 64;
  double acc[kWide] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide)
    for (int64_t j = 0; j < kWide; ++j) acc[j] += double(x[i + j]);
  for (; i < n; ++i) acc[0] += double(x[i]);
  for (int64_t j = 0; j < kWide; ++j) sum += acc[j];
  return sum;
}

bool is_dense(const View& v) {
  int64_t step = 1;
  for (int d = v.rank - 1; d >= 0; step *= v.sizes[d--])
    if (v.sizes[d] != 1 && v.strides[d] != step) return false;
  return true;
}

/// What is not a whole sum of neighbours in f32 is left to the library's kernel.
void sum_in_f64(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const bool taken = out.numel() == 1 && in.dtype == DType::F32 && out.dtype == DType::F32 &&
                     call.compute == DType::F32 && is_dense(in);
  if (!taken) return OpTable::current().find("sum")->library->cpu(call);
  *out.as<float>() = float(added(in.as<float>(), in.numel()));
}
}  // namespace

LAMELLA_PLUGIN() { OpTable::set("sum", int(Device::CPU), {"mine", nullptr, sum_in_f64}); }
