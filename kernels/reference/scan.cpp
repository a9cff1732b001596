// Oracle: cumulative sums and products. The running value stays one precision above compute.
#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

template <class Step> void scan(const KernelCall& call, int start, Step step) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0], length = length_along(in, dim);
  visit_working(call.compute, [&]<class W>(type_tag<W>) {
    using Acc = wider_t<W>;
    for (Odometer line(sizes_across(in, dim)); line.more(); line.next()) {
      Acc acc = Acc(start);
      for (int64_t i = 0; i < length; ++i) {
        acc = step(acc, cast<Acc>(load<W>(in, line.offset(in) + i * stride_along(in, dim), call.compute)));
        store(out, line.offset(out) + i * stride_along(out, dim), wrap(cast<W>(acc), call.compute));
      }
    }
  });
}

void cumsum(const KernelCall& call) {
  scan(call, 0, [](auto acc, auto x) { return plus(acc, x); });
}

void cumprod(const KernelCall& call) {
  scan(call, 1, [](auto acc, auto x) { return times(acc, x); });
}

/// The greatest so far by the order of sort; of equal ones the last.
void cummax(const KernelCall& call) {
  const View &values = call.outs[0], &places = call.outs[1], &in = call.ins[0];
  const int64_t dim = call.ints[0], length = length_along(in, dim);
  visit_supported("cummax", in.dtype, [&]<Real W>(type_tag<W>) {
    for (Odometer line(sizes_across(in, dim)); line.more(); line.next()) {
      int64_t best = 0;
      const auto at = [&](int64_t i) { return line.offset(in) + i * stride_along(in, dim); };
      for (int64_t i = 0; i < length; ++i) {
        if (!less(load<W>(in, at(i), in.dtype), load<W>(in, at(best), in.dtype))) best = i;
        copy_element(values, line.offset(values) + i * stride_along(values, dim), in, at(best));
        store(places, line.offset(places) + i * stride_along(places, dim), best);
      }
    }
  });
}

}  // namespace

Texts scan_texts() {
  static constexpr Text kTexts[] = {
      {"cumsum", cumsum}, {"cumprod", cumprod}, {"cummax", cummax, Takes::Real, Result::First}};
  return kTexts;
}

}  // namespace lamella::kernels::reference
