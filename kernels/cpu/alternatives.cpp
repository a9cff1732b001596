// Second texts of kernels, to be compared with the first: each goes about the same work in another way.
#include "lamella/kernels/cpu/alternatives.h"

#include <cstring>
#include <emmintrin.h>
#include <limits>

#include "lamella/core/thresholds.h"

namespace lamella::kernels {
namespace alternatives {

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

}  // namespace alternatives

namespace {
using namespace alternatives;

/// The product with another opinion on where BLAS wins; all else is the kernel's.
template <int64_t kBlasFrom> void product(const KernelCall& call) {
  Thresholds mine = thresholds();
  mine.blas = mine.own_product = mine.own_small_product = kBlasFrom;
  const ScopedThresholds scope(mine);
  named("matmul").cpu(call);
}

int64_t bytes_of(const View& v) { return v.numel() * itemsize(v.dtype); }

/// Stores that pass the caches by: the result's lines are not read before they are written.
void copy_streaming(const KernelCall& call) {
  const auto bytes = size_t(bytes_of(call.outs[0]));
  const size_t wide = sizeof(__m128i);
  char* to = call.outs[0].as<char>();
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

/// Loads and stores one after another, at all sizes.
void copy_plain(const KernelCall& call) {
  const auto bytes = size_t(bytes_of(call.outs[0]));
  if (!same_dense(call) || bytes == 0) return named("copy").cpu(call);
  char* const to = call.outs[0].as<char>();
  const char* const from = call.ins[0].as<char>();
  const size_t wide = sizeof(__m128i), whole = bytes - bytes % wide;
  for (size_t i = 0; i < whole; i += wide) {
    __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    asm("" : "+x"(part));  // or the compiler makes a call of memcpy of the loop
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), part);
  }
  std::memcpy(to + whole, from + whole, bytes - whole);
}

/// The C library's, which has its own opinion on when to stream.
void copy_by_memcpy(const KernelCall& call) {
  const auto bytes = size_t(bytes_of(call.outs[0]));
  if (!same_dense(call) || bytes == 0) return named("copy").cpu(call);
  std::memmove(call.outs[0].data, call.ins[0].data, bytes);
}
}  // namespace

std::vector<AlternativeText> alternative_texts() {
  std::vector<AlternativeText> all{
      {"matmul", "own", product<std::numeric_limits<int64_t>::max()>, "register-blocked, at all sizes"},
      {"copy", "streaming", copy_streaming, "stores that pass the caches by"},
      {"copy", "plain", copy_plain, "loads and stores, at all sizes"},
      {"copy", "memcpy", copy_by_memcpy, "the C library's"},
      {"softmax", "online", softmax_online, "greatest element and sum in one reading"},
      {"softmax", "three_pass", softmax_three_pass, "greatest element; exp and sum; quotients"},
      {"sum", "pairwise", sum_pairwise, "halves of halves, down to eight terms"},
      {"sum", "plain", sum_plain, "one addition after another", 1}};
#if LAMELLA_HAVE_BLAS
  all.push_back({"matmul", "openblas", product<0>, "BLAS, at all sizes"});
#endif
  return all;
}

}  // namespace lamella::kernels
