// Second texts of kernels, to be compared with the first: each goes about the same work in another way.
#include <cmath>
#include <cstring>
#include <emmintrin.h>
#include <limits>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"

namespace lamella::kernels {
namespace {

/// The product with another opinion on where BLAS wins; all else is the kernel's.
template <int64_t kBlasFrom> void product(const KernelCall& call) {
  Thresholds mine = thresholds();
  mine.blas = kBlasFrom;
  const ScopedThresholds scope(mine);
  named("matmul").cpu(call);
}

/// Whether a view has no gaps and its rows follow each other.
bool is_dense(const View& v) {
  int64_t step = 1;
  for (int d = v.rank - 1; d >= 0; --d) {
    if (v.sizes[d] != 1 && v.strides[d] != step) return false;
    step *= v.sizes[d];
  }
  return true;
}

bool same_dense(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  return out.dtype == in.dtype && out.numel() == in.numel() && is_dense(out) && is_dense(in);
}

/// Stores that pass the caches by: the result's lines are not read before they are written.
void copy_streaming(const KernelCall& call) {
  const View& out = call.outs[0];
  const size_t bytes = size_t(out.numel() * itemsize(out.dtype));
  const size_t wide = sizeof(__m128i);
  char* to = out.as<char>();
  if (!same_dense(call) || bytes == 0 || reinterpret_cast<uintptr_t>(to) % wide != 0)
    return named("copy").cpu(call);
  const char* from = call.ins[0].as<char>();
  const size_t whole = bytes - bytes % wide;
  for (size_t i = 0; i < whole; i += wide)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  _mm_sfence();
  std::memcpy(to + whole, from + whole, bytes - whole);
}

/// The C library's, which has its own opinion on when to stream.
void copy_by_memcpy(const KernelCall& call) {
  const View& out = call.outs[0];
  const size_t bytes = size_t(out.numel() * itemsize(out.dtype));
  if (!same_dense(call) || bytes == 0) return named("copy").cpu(call);
  std::memmove(out.data, call.ins[0].data, bytes);
}

/// The greatest element so far and the sum of exp(x - greatest): two readings of a row instead of four. What
/// was summed is scaled whenever a chunk has a greater one. NaN stays.
template <class T> struct OnlineRow {
  FoldFn greatest, sum;
  LineFn exp;
  std::vector<T> chunk;
  T most = -std::numeric_limits<T>::infinity(), total = 0;

  void exp_of_difference(T* out, const T* in, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] - most;
    const void* ins[] = {out};
    exp(out, ins, n);
  }
  void take(const T* in, int64_t n) {
    T here;
    greatest(&here, in, n);
    if (here > most || here != here) {
      const bool first = most == -std::numeric_limits<T>::infinity();
      total = first ? T(0) : total * std::exp(most - here);
      most = here;
    }
    if (most == -std::numeric_limits<T>::infinity()) return;  // nothing but zeros so far
    exp_of_difference(chunk.data(), in, n);
    T more;
    sum(&more, chunk.data(), n);
    total += more;
  }
  void run(T* out, const T* in, int64_t n) {
    const auto size = int64_t(chunk.size());
    most = -std::numeric_limits<T>::infinity(), total = 0;
    for (int64_t i = 0; i < n; i += size) take(in + i, std::min(size, n - i));
    exp_of_difference(out, in, n);
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] / total;
  }
};

template <class T> void softmax_rows(const KernelCall& call, DType exec) {
  const auto folds = [exec](std::string_view name) {
    return named(name).folds[size_t(isa().set)][size_t(exec)].fold;
  };
  OnlineRow<T> row{folds("amax"), folds("sum"), line_of(named("exp"), exec),
                   std::vector<T>(size_t(thresholds().softmax_chunk))};
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t n = in.sizes[in.rank - 1];
  for (int64_t i = 0; i < out.numel(); i += n) row.run(out.as<T>() + i, in.as<T>() + i, n);
}

void softmax_online(const KernelCall& call) {
  const View& in = call.ins[0];
  const bool along_rows = in.rank > 0 && call.ints[0] == in.rank - 1 && in.numel() > 0;
  const bool taken = along_rows && same_dense(call) && call.outs[0].data != in.data;
  if (taken && in.dtype == DType::F32) return softmax_rows<float>(call, DType::F32);
  if (taken && in.dtype == DType::F64) return softmax_rows<double>(call, DType::F64);
  named("softmax").cpu(call);
}

}  // namespace

std::vector<AlternativeText> alternative_texts() {
  std::vector<AlternativeText> all{
      {"matmul", "own", product<std::numeric_limits<int64_t>::max()>, "register-blocked, at all sizes"},
      {"copy", "streaming", copy_streaming, "stores that pass the caches by"},
      {"copy", "memcpy", copy_by_memcpy, "the C library's"},
      {"softmax", "online", softmax_online, "greatest element and sum in one reading"}};
#if LAMELLA_HAVE_BLAS
  all.push_back({"matmul", "openblas", product<0>, "BLAS, at all sizes"});
#endif
  return all;
}

}  // namespace lamella::kernels
