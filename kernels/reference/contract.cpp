// Oracle: batched matrix product, one inner product at a time, one precision above the dtype.
#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

void matmul(const KernelCall& call) {
  const View &out = call.outs[0], &a = call.ins[0], &b = call.ins[1];
  const int64_t inner = a.sizes[2];
  visit_working(out.dtype, [&]<class W>(type_tag<W>) {
    using Acc = wider_t<W>;
    for (Odometer at(sizes_of(out)); at.more(); at.next()) {
      const int64_t batch = at[0], row = at[1], column = at[2];
      Acc acc = Acc(0);
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t a_offset = batch * a.strides[0] + row * a.strides[1] + k * a.strides[2];
        const int64_t b_offset = batch * b.strides[0] + k * b.strides[1] + column * b.strides[2];
        const W left = load<W>(a, a_offset, out.dtype), right = load<W>(b, b_offset, out.dtype);
        acc = plus(acc, times(cast<Acc>(left), cast<Acc>(right)));
      }
      store(out, at.offset(out), cast<W>(acc));
    }
  });
}

}  // namespace

Texts contract_texts() {
  static constexpr Text kTexts[] = {{"matmul", matmul}};
  return kTexts;
}

}  // namespace lamella::kernels::reference
