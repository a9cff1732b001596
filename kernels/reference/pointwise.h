// The loops of the oracle's pointwise kernels. A body's constraint says which working types it takes.
#pragma once

#include "lamella/kernels/reference/arith.h"

namespace lamella::kernels::reference {

/// out[i] = body(x[i]).
template <class Body> void unary(const KernelCall& call, const char* name, Body body) {
  const View &out = call.outs[0], &x = call.ins[0];
  visit_supported(
      name, call.compute, [&]<class W>(type_tag<W>) requires std::invocable<Body, W> {
        for (Odometer at(sizes_of(out)); at.more(); at.next()) {
          const auto result = body(load<W>(x, at.offset(x), call.compute));
          store(out, at.offset(out), wrap(result, call.compute));
        }
      });
}

/// out[i] = body(a[i], b[i]).
template <class Body> void binary(const KernelCall& call, const char* name, Body body) {
  const View &out = call.outs[0], &a = call.ins[0], &b = call.ins[1];
  visit_supported(
      name, call.compute, [&]<class W>(type_tag<W>) requires std::invocable<Body, W, W> {
        for (Odometer at(sizes_of(out)); at.more(); at.next()) {
          const W left = load<W>(a, at.offset(a), call.compute),
                  right = load<W>(b, at.offset(b), call.compute);
          store(out, at.offset(out), wrap(body(left, right), call.compute));
        }
      });
}

/// Integer division has no value to give for a zero divisor: refuse before anything is written.
inline void check_divisor(const KernelCall& call) {
  if (!is_integer(call.compute)) return;
  const View& b = call.ins[1];
  for (Odometer at(sizes_of(call.outs[0])); at.more(); at.next()) {
    LAMELLA_CHECK(load<uint64_t>(b, at.offset(b), call.compute) != 0, Value,
                  "b holds 0 and the division is in {}; expected b != 0", name(call.compute));
  }
}

}  // namespace lamella::kernels::reference
