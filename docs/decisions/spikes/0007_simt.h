// Spike 0007, one lane a thread: what the emulated device and CUDA share.
#pragma once

#include "0007_text.h"

namespace spike {

/// Device: lane(), group(), groups(); put(lane, v) and get(lane) reach the group's shared memory; barrier().
template <class Device> struct LaneExecutor {
  Device device;

  SPIKE_FN int64_t group() const { return device.group(); }
  SPIKE_FN int64_t groups() const { return device.groups(); }
  template <class F> SPIKE_FN void for_each(int64_t n, F f) const {
    for (int64_t i = group() * kLanes + device.lane(); i < n; i += groups() * kLanes) f(i);
  }
  SPIKE_FN float zero() const { return 0; }
  template <class P> SPIKE_FN float load(P p, int64_t i, int64_t n) const {
    return i + device.lane() < n ? p[i + device.lane()] : 0.0f;
  }
  template <class P> SPIKE_FN void store(P p, int64_t i, int64_t n, float v) const {
    if (i + device.lane() < n) p[i + device.lane()] = v;
  }
  SPIKE_FN float shift_up(float v, int k) { return exchange(v, device.lane() - k); }
  SPIKE_FN float shift_down(float v, int k) { return exchange(v, device.lane() + k); }
  SPIKE_FN float last(float v) { return exchange(v, kLanes - 1); }
  template <class Op> SPIKE_FN float scan(float v) { return scan_in_steps<Op>(*this, v); }

 private:
  SPIKE_FN float exchange(float v, int from) {
    device.put(device.lane(), v);
    device.barrier();
    const float got = from < 0 || from >= kLanes ? 0.0f : device.get(from);
    device.barrier();
    return got;
  }
};

/// What every thread of a device runs: the text, three times.
template <class E, class In, class Out>
SPIKE_FN void whole_spike(E e, In a, In b, Out product, Out sums, Out scans, int64_t lines, int64_t n) {
  pointwise<MulAdd>(e, a, b, product, lines * n);
  reduce<Sum>(e, a, sums, lines, n);
  scan<Sum>(e, a, scans, lines, n);
}

}  // namespace spike
