// softmax and log_softmax along a dim: the row text of the instruction set where rows are gapless, three
// passes over tiles of neighbouring lines otherwise.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/cascade.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

/// Of a part of the lines.
struct Softmax {
  DType exec;
  bool log;
  int64_t size, in_step, out_step;
  const IterPlan& lines;  // operands: out, in
  TileReader reader;
  TileWriter writer;

  Softmax(const View& out, const View& in, int64_t dim, bool takes_log, const IterPlan& plan)
      : exec(exec_dtype(in.dtype)),
        log(takes_log),
        size(line_size(in, dim)),
        in_step(line_step(in, dim)),
        out_step(line_step(out, dim)),
        lines(plan) {
    reader.open(in.dtype, exec);
    writer.open(exec, out.dtype);
  }
};

// out = op(a, b) over n elements of a tile.
template <class B> void apply(DType exec, char* out, const char* a, const char* b, int64_t n) {
  const void* ins[] = {a, b};
  line_of<B>(exec)(out, ins, n);
}

// The statistics of a tile of lines: their greatest elements and, in the cascade's lowest slot, their sums of
// exp(x - greatest), for `log` without the first greatest element: see NOTE: [logarithm of softmax's sum].
struct Statistics {
  explicit Statistics(DType exec) : sums(line_of<scalar::Add>(exec), kTile * itemsize(exec), 0) {}
  alignas(64) char most[kTile * sizeof(double)];
  bool left_out[kTile];
  Cascade sums;
};

/// d = x - greatest becomes -inf, whose exp is 0, where it is the first 0 of its line.
template <class T> void leave_out_first(T* d, bool* done, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const bool first = d[j] == 0 && !done[j];
    d[j] = first ? -std::numeric_limits<T>::infinity() : d[j];
    done[j] |= first;
  }
}

template <class T> void log_of_sums(T* sums, const T* most, int64_t n) {
  for (int64_t j = 0; j < n; ++j) sums[j] = std::log1p(sums[j]) + (most[j] - most[j]);
}

template <class Read> void gather_statistics(const Softmax& s, Statistics& stats, int64_t n, Read&& read) {
  const size_t bytes = size_t(n * itemsize(s.exec));
  const int64_t in_a_row = thresholds().terms_in_a_row;
  std::memcpy(stats.most, read(0), bytes);
  for (int64_t i = 1; i < s.size; ++i) apply<scalar::Maximum>(s.exec, stats.most, stats.most, read(i), n);
  std::fill_n(stats.left_out, n, false);
  stats.sums.reset(n);
  alignas(64) char work[kTile * sizeof(double)];
  for (int64_t i = 0; i < s.size; ++i) {
    char* const run = stats.sums.slot(stats.sums.depth());
    char* const term = i % in_a_row == 0 ? run : work;
    apply<scalar::Sub>(s.exec, term, read(i), stats.most, n);
    if (s.log && s.exec == DType::F32) leave_out_first(reinterpret_cast<float*>(term), stats.left_out, n);
    else if (s.log) leave_out_first(reinterpret_cast<double*>(term), stats.left_out, n);
    apply<scalar::Exp>(s.exec, term, term, nullptr, n);
    if (term == work) apply<scalar::Add>(s.exec, run, run, work, n);
    if ((i + 1) % in_a_row == 0 || i + 1 == s.size) stats.sums.push();
  }
  stats.sums.finish();
}

void softmax_across(Softmax& s) {
  Statistics stats(s.exec);
  for_each_block(s.lines, choose_block(s.lines), [&](char* const* at, int64_t n0, int64_t n1) {
    const int64_t n = n0 * n1;
    const auto read = [&](int64_t i) {
      return s.reader.read(at[1] + i * s.in_step, s.lines.stride(1, 0), s.lines.stride(1, 1), n0, n1);
    };
    gather_statistics(s, stats, n, read);
    char *const most = stats.most, *const total = stats.sums.slot(0);
    if (s.log && s.exec == DType::F32)
      log_of_sums(reinterpret_cast<float*>(total), reinterpret_cast<const float*>(most), n);
    else if (s.log) log_of_sums(reinterpret_cast<double*>(total), reinterpret_cast<const double*>(most), n);
    char* work = s.writer.buffer();
    for (int64_t i = 0; i < s.size; ++i) {
      apply<scalar::Sub>(s.exec, work, read(i), most, n);
      if (!s.log) apply<scalar::Exp>(s.exec, work, work, nullptr, n);
      if (s.log) apply<scalar::Sub>(s.exec, work, work, total, n);
      else apply<scalar::Div>(s.exec, work, work, total, n);
      s.writer.write(at[0] + i * s.out_step, s.lines.stride(0, 0), s.lines.stride(0, 1), n0, n1, work);
    }
  });
}

void softmax_along(Softmax& s, SoftmaxRowFn row) {
  const int64_t item = itemsize(s.exec);
  const bool in_direct = s.reader.direct(s.in_step), out_direct = !s.writer.converts() && s.out_step == item;
  std::vector<char> buffer(out_direct ? 0 : size_t(s.size * item));
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
  const IterPlan lines = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  const bool across = lines.size(0) >= thresholds().lines_across && lines.stride(0, 0) < line_step(out, dim);
  const int64_t line = cost::of(line_size(in, dim), kCosts.normalised);
  const Units units = across ? of_neighbours(lines.size(0)) : of_lines();
  for_each_part(lines, line, units, [&](const IterPlan& part) {
    Softmax s(out, in, dim, log, part);
    across ? softmax_across(s) : softmax_along(s, row);
  });
}

}  // namespace

namespace cpu {
namespace {
void softmax(const KernelCall& call) { softmax_lines("softmax", call, false); }
void log_softmax(const KernelCall& call) { softmax_lines("log_softmax", call, true); }
}  // namespace

Texts softmax_kernels() {
  static constexpr Text kTexts[] = {{"softmax", softmax}, {"log_softmax", log_softmax}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
