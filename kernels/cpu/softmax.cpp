// softmax and log_softmax along a dim: the row text of the instruction set where rows are gapless, three
// passes over tiles of neighbouring lines otherwise.
#include <cstring>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"

namespace lamella::kernels {
namespace {

// Terms added in a row before they join the total: the error of a sum of n terms is that of 128 + n / 128.
constexpr int64_t kRun = 128;

struct Softmax {
  DType exec;
  bool log;
  int64_t size, in_step, out_step;
  IterPlan lines;  // operands: out, in
  TileReader reader;
  TileWriter writer;
};

// out = op(a, b) over n elements of a tile.
void apply(Op op, DType exec, char* out, const char* a, const char* b, int64_t n) {
  const void* ins[] = {a, b};
  find_body(op, exec)(out, ins, n);
}

// The statistics of a tile of lines: their greatest elements and their sums of exp(x - greatest).
struct Statistics {
  alignas(64) char most[kTile * sizeof(double)];
  alignas(64) char total[kTile * sizeof(double)];
};

template <class Read> void gather_statistics(const Softmax& s, Statistics& stats, int64_t n, Read&& read) {
  alignas(64) char work[kTile * sizeof(double)], run[kTile * sizeof(double)];
  const size_t bytes = size_t(n * itemsize(s.exec));
  std::memcpy(stats.most, read(0), bytes);
  for (int64_t i = 1; i < s.size; ++i) apply(Op::maximum, s.exec, stats.most, stats.most, read(i), n);
  std::memset(stats.total, 0, bytes);
  std::memset(run, 0, bytes);
  for (int64_t i = 0; i < s.size; ++i) {
    apply(Op::sub, s.exec, work, read(i), stats.most, n);
    apply(Op::exp, s.exec, work, work, nullptr, n);
    apply(Op::add, s.exec, run, run, work, n);
    if ((i + 1) % kRun != 0 && i + 1 != s.size) continue;
    apply(Op::add, s.exec, stats.total, stats.total, run, n);
    std::memset(run, 0, bytes);
  }
}

void softmax_across(Softmax& s) {
  for_each_block(s.lines, choose_block(s.lines), [&s](char* const* at, int64_t n0, int64_t n1) {
    const int64_t n = n0 * n1;
    const auto read = [&](int64_t i) {
      return s.reader.read(at[1] + i * s.in_step, s.lines.stride(1, 0), s.lines.stride(1, 1), n0, n1);
    };
    Statistics stats;
    gather_statistics(s, stats, n, read);
    if (s.log) apply(Op::log, s.exec, stats.total, stats.total, nullptr, n);
    char* work = s.writer.buffer();
    for (int64_t i = 0; i < s.size; ++i) {
      apply(Op::sub, s.exec, work, read(i), stats.most, n);
      if (!s.log) apply(Op::exp, s.exec, work, work, nullptr, n);
      apply(s.log ? Op::sub : Op::div, s.exec, work, work, stats.total, n);
      s.writer.write(at[0] + i * s.out_step, s.lines.stride(0, 0), s.lines.stride(0, 1), n0, n1, work);
    }
  });
}

void softmax_along(Softmax& s, SoftmaxRowFn row, std::span<char> buffer) {
  const int64_t item = itemsize(s.exec);
  const bool in_direct = s.reader.direct(s.in_step), out_direct = !s.writer.converts() && s.out_step == item;
  const Mover get = s.reader.mover();
  for_each_outer(s.lines, 0, [&](char* const* at) {
    char* target = out_direct ? at[0] : buffer.data();
    if (!in_direct) move_block(get, target, item, 0, at[1], s.in_step, 0, s.size, 1);
    row(target, in_direct ? at[1] : target, s.size, s.log);
    if (!out_direct) s.writer.write(at[0], s.out_step, 0, s.size, 1, target);
  });
}

void softmax_lines(const char* kernel, const KernelCall& call, bool log) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  const DType exec = exec_dtype(in.dtype);
  const SoftmaxRowFn row = isa().softmax(exec);
  if (!row) fail_dtype(kernel, in.dtype);
  if (out.numel() == 0) return;
  Softmax s;
  s.exec = exec, s.log = log;
  s.size = line_size(in, dim), s.in_step = line_step(in, dim), s.out_step = line_step(out, dim);
  s.lines = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  s.reader.open(in.dtype, exec);
  s.writer.open(exec, out.dtype);
  if (s.lines.size(0) >= 8 && s.lines.stride(0, 0) < s.out_step) return softmax_across(s);
  std::vector<char> buffer(size_t(s.size * itemsize(exec)));
  softmax_along(s, row, buffer);
}

}  // namespace

namespace cpu {
void softmax(const KernelCall& call) { softmax_lines("softmax", call, false); }
void log_softmax(const KernelCall& call) { softmax_lines("log_softmax", call, true); }
}  // namespace cpu

}  // namespace lamella::kernels
