// A plug-in with a kernel that is fast and wrong: it forgets what is left over behind whole blocks of 64.
// Sizes that people time are such blocks; `lamella bench sum --load my_kernel_wrong.so` shows WRONG all the
// same, with a sum that it gets wrong, and no time.
#include "lamella/plugin.h"

namespace {
using namespace lamella;

[[gnu::target_clones("avx512f", "avx2", "default")]] double added(const float* x, int64_t n) {
  constexpr int64_t kWide = 64;
  double acc[kWide] = {}, sum = 0;
  for (int64_t i = 0; i + kWide <= n; i += kWide)
    for (int64_t j = 0; j < kWide; ++j) acc[j] += double(x[i + j]);
  for (int64_t j = 0; j < kWide; ++j) sum += acc[j];
  return sum;
}

bool is_dense(const View& v) {
  int64_t step = 1;
  for (int d = v.rank - 1; d >= 0; step *= v.sizes[d--])
    if (v.sizes[d] != 1 && v.strides[d] != step) return false;
  return true;
}

void sum_of_blocks(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const bool taken = out.numel() == 1 && in.dtype == DType::F32 && out.dtype == DType::F32 &&
                     call.compute == DType::F32 && is_dense(in);
  if (!taken) return OpTable::current().find("sum")->library->cpu(call);
  *out.as<float>() = float(added(in.as<float>(), in.numel()));
}
}  // namespace

LAMELLA_PLUGIN() { OpTable::set("sum", int(Device::CPU), {"blocks", nullptr, sum_of_blocks}); }
