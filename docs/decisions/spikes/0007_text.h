// The one text of spike 0007: a pointwise loop, a reduction and a scan, for any executor of kLanes lanes.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define SPIKE_FN __device__ inline
#else
#define SPIKE_FN inline
#endif

namespace spike {

/// NOTE: [lanes] An executor E runs groups of E::kLanes lanes in step. A value is what a lane holds (simt) or
/// what all lanes hold (cpu); the text cannot tell. load and store touch elements i + lane below n. The
/// number of lanes is the same everywhere, so that every executor adds in the same order and results are
/// equal bit by bit.
inline constexpr int kLanes = 32;

struct MulAdd {
  template <class V> SPIKE_FN V operator()(V a, V b) const { return a * b + b; }
};
struct Sum {
  template <class V> SPIKE_FN V operator()(V a, V b) const { return a + b; }
};

/// out[i] = body(a[i], b[i]).
template <class Body, class E, class In, class Out>
SPIKE_FN void pointwise(E& e, In a, In b, Out out, int64_t n) {
  e.for_each(n, [=](int64_t i) { out[i] = Body()(a[i], b[i]); });
}

/// out[line] = op over the n elements of each line; 0 is op's identity.
template <class Op, class E, class In, class Out>
SPIKE_FN void reduce(E& e, In in, Out out, int64_t lines, int64_t n) {
  for (int64_t line = e.group(); line < lines; line += e.groups()) {
    auto sum = e.zero();
    for (int64_t i = 0; i < n; i += kLanes) sum = Op()(sum, e.load(in + line * n, i, n));
    for (int k = kLanes / 2; k > 0; k /= 2) sum = Op()(sum, e.shift_down(sum, k));
    e.store(out + line, 0, 1, sum);
  }
}

/// Lane l's op over lanes 0 .. l, in log2(kLanes) steps: how executors without something better scan a value.
template <class Op, class E, class V> SPIKE_FN V scan_in_steps(E& e, V v) {
  for (int k = 1; k < kLanes; k *= 2) v = Op()(e.shift_up(v, k), v);
  return v;
}

/// out[line][i] = op over in[line][0 .. i].
template <class Op, class E, class In, class Out>
SPIKE_FN void scan(E& e, In in, Out out, int64_t lines, int64_t n) {
  for (int64_t line = e.group(); line < lines; line += e.groups()) {
    auto carry = e.zero();
    for (int64_t i = 0; i < n; i += kLanes) {
      const auto v = Op()(carry, e.template scan<Op>(e.load(in + line * n, i, n)));
      e.store(out + line * n, i, n, v);
      carry = e.last(v);
    }
  }
}

}  // namespace spike
