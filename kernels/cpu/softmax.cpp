// softmax and log_softmax along a dim: the row text of the instruction set, on rows gathered when they are not gapless.
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"

namespace lamella::kernels {
namespace {

// Lines gathered together, so that each cache line of an input that runs across is read once.
constexpr int64_t kLines = 16;

void softmax_lines(const char* kernel, const KernelCall& call, bool log) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  const DType exec = exec_dtype(in.dtype);
  const SoftmaxRowFn row = isa().softmax(exec);
  if (!row) fail_dtype(kernel, in.dtype);
  if (out.numel() == 0) return;
  const int64_t size = line_size(in, dim), item = itemsize(exec);
  const int64_t in_step = line_step(in, dim), out_step = line_step(out, dim);
  const IterPlan plan = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  if (in.dtype == exec && out.dtype == exec && (size == 1 || (in_step == item && out_step == item))) {
    return for_each_outer(plan, 0, [&](char* const* at) { row(at[0], at[1], size, log); });
  }
  const int64_t width = std::min(kLines, plan.size(0));
  // A cache line more than a row: rows a power of two apart would evict each other.
  const int64_t pitch = size * item + 64;
  std::vector<char> buffer(size_t(width * pitch));
  const Mover get = make_mover(in.dtype, exec), put = make_mover(exec, out.dtype);
  for_each_block(plan, {width, 1}, [&](char* const* at, int64_t n, int64_t) {
    move_block(get, buffer.data(), pitch, item, at[1], plan.stride(1, 0), in_step, n, size);
    for (int64_t j = 0; j < n; ++j) row(buffer.data() + j * pitch, buffer.data() + j * pitch, size, log);
    move_block(put, at[0], plan.stride(0, 0), out_step, buffer.data(), pitch, item, n, size);
  });
}

}  // namespace

namespace cpu {
void softmax(const KernelCall& call) { softmax_lines("softmax", call, false); }
void log_softmax(const KernelCall& call) { softmax_lines("log_softmax", call, true); }
}  // namespace cpu

}  // namespace lamella::kernels
