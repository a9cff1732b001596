// layer_norm of gapless rows: the row text of the instruction set.
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels::cpu {
namespace {

void layer_norm(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0];
  const LayerNormRowFn row = isa().layer_norm(x.dtype);
  if (!row) fail_dtype("layer_norm", x.dtype);
  const int64_t lead = x.rank - call.ints[0];
  int64_t n = 1, rows = 1;
  for (int d = 0; d < x.rank; ++d) (d < lead ? rows : n) *= x.sizes[d];
  if (n == 0) return;
  const void* const weight = call.ints[1] ? call.ins[1].data : nullptr;
  const void* const bias = call.ints[2] ? call.ins[call.ints[1] ? 2 : 1].data : nullptr;
  const double eps = call.scalars[0].to<double>();
  const int64_t bytes = n * itemsize(x.dtype);
  const bool past = n > thresholds().tile && passes_caches(2 * rows * bytes);
  for_each_range(rows, cost::of(n, kCosts.normalised), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t ahead = past && i + 1 < last ? bytes : 0;  // the next row
      row({out.as<char>() + i * bytes, x.as<char>() + i * bytes, weight, bias, eps, n, past, ahead});
    }
    if (past) end_streams();  // of this thread
  });
}
}  // namespace

Texts norm_kernels() {
  static constexpr Text kTexts[] = {{"layer_norm", layer_norm}};
  return kTexts;
}

}  // namespace lamella::kernels::cpu
