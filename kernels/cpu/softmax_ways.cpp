// Softmax of gapless rows in two other ways: greatest element and sum in one reading, and in three passes.
#include <cmath>
#include <limits>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/alternatives.h"
#include "lamella/kernels/cpu/cascade.h"
#include "lamella/kernels/cpu/constant_lines.h"

namespace lamella::kernels {
namespace {

/// The lines of the instruction set that both are made of.
template <class T> struct Ways {
  static constexpr DType kType = dtype_of<T>;
  FoldFn greatest = fold("amax"), sum = fold("sum");
  LineFn exp = line_of(named("exp"), kType), add = line_of(named("add"), kType);
  ConstantLineFn minus = constant_lines<scalar::Sub>(kType).right,
                 over = constant_lines<scalar::Div>(kType).right;
  int64_t chunk = thresholds().exp_chunk;
  std::vector<T> work = std::vector<T>(size_t(chunk));

  static FoldFn fold(std::string_view name) {
    return named(name).folds[size_t(isa().set)][size_t(kType)].fold;
  }
  void exp_of_difference(T* out, const T* in, T most, int64_t n) const {
    minus(out, in, &most, n);
    const void* ins[] = {out};
    exp(out, ins, n);
  }
};

/// The greatest element so far and the sum of exp(x - greatest): two readings of a row instead of three. What
/// was summed is scaled whenever a chunk has a greater one. NaN stays.
template <class T> struct Online : Ways<T> {
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();
  T most = kNothing, total = 0;

  void take(const T* in, int64_t n) {
    T here;
    this->greatest(&here, in, n, 0);
    if (here > most || here != here) {
      total = most == kNothing ? T(0) : total * std::exp(most - here);
      most = here;
    }
    if (most == kNothing) return;  // nothing but zeros so far
    this->exp_of_difference(this->work.data(), in, most, n);
    T more;
    this->sum(&more, this->work.data(), n, 0);
    total += more;
  }
  void run(T* out, const T* in, int64_t n) {
    most = kNothing, total = 0;
    for (int64_t i = 0; i < n; i += this->chunk) take(in + i, std::min(this->chunk, n - i));
    this->exp_of_difference(out, in, most, n);
    this->over(out, out, &total, n);
  }
};

/// The greatest element; exp(x - greatest), kept where the result will be, and its sum; quotients.
template <class T> struct ThreePass : Ways<T> {
  Cascade sums{this->add, sizeof(T), 1};

  void run(T* out, const T* in, int64_t n) {
    T most;
    this->greatest(&most, in, n, 0);
    sums.reset(1);
    for (int64_t i = 0; i < n; i += this->chunk) {
      const int64_t some = std::min(this->chunk, n - i);
      this->exp_of_difference(out + i, in + i, most, some);
      this->sum(sums.slot(sums.depth()), out + i, some, 0);
      sums.push();
    }
    sums.finish();
    this->over(out, out, sums.slot(0), n);
  }
};

template <class T, class Way> void along_rows(Way&& way, const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t n = in.sizes[in.rank - 1];
  for (int64_t i = 0; i < out.numel(); i += n) way.run(out.as<T>() + i, in.as<T>() + i, n);
}

template <template <class> class Way> void softmax_by(const KernelCall& call) {
  const View& in = call.ins[0];
  const bool is_row = in.rank > 0 && call.ints[0] == in.rank - 1 && in.numel() > 0;
  const bool taken = is_row && alternatives::same_dense(call) && call.outs[0].data != in.data;
  if (taken && in.dtype == DType::F32) return along_rows<float>(Way<float>(), call);
  if (taken && in.dtype == DType::F64) return along_rows<double>(Way<double>(), call);
  named("softmax").cpu(call);
}
}  // namespace

namespace alternatives {
void softmax_online(const KernelCall& call) { softmax_by<Online>(call); }
void softmax_three_pass(const KernelCall& call) { softmax_by<ThreePass>(call); }
}  // namespace alternatives

}  // namespace lamella::kernels
