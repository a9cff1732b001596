// Oracle: elements chosen by index tensors and by truth. Every index is checked before anything is written.
#include <map>

#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

int64_t index_at(const View& index, int64_t offset) { return load<int64_t>(index, offset, DType::I64); }

void check_indices(const View& index, int64_t dim, int64_t size) {
  for (Odometer at(sizes_of(index)); at.more(); at.next()) {
    const int64_t i = index_at(index, at.offset(index));
    LAMELLA_CHECK(i >= 0 && i < size, IndexOutOfRange,
                  "index = {} is out of range for dim {}; expected 0 <= index < {}", i, dim, size);
  }
}

/// The offset of the element of v at `at`, with its index along `dim` replaced by i.
int64_t offset_with(const View& v, const Odometer& at, int64_t dim, int64_t i) {
  if (v.rank == 0) return 0;
  return at.offset(v) + (i - at[dim]) * v.strides[dim];
}

/// Calls visit(at, offset) for the elements of x that are not zero, in row-major order.
template <class Visit> void for_each_nonzero(const View& x, Visit visit) {
  visit_working(x.dtype, [&]<class W>(type_tag<W>) {
    for (Odometer at(sizes_of(x)); at.more(); at.next()) {
      if (load<W>(x, at.offset(x), x.dtype) != W(0)) visit(at);
    }
  });
}

void gather(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1];
  const int64_t dim = call.ints[0];
  check_indices(index, dim, length_along(x, dim));
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    const int64_t i = index_at(index, at.offset(index));
    copy_element(out, at.offset(out), x, offset_with(x, at, dim, i));
  }
}

void scatter_add(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1], &src = call.ins[2];
  const int64_t dim = call.ints[0];
  check_indices(index, dim, length_along(out, dim));
  for (Odometer at(sizes_of(out)); at.more(); at.next()) copy_element(out, at.offset(out), x, at.offset(x));
  visit_working(out.dtype, [&]<class W>(type_tag<W>) {
    using Acc = wider_t<W>;
    std::map<int64_t, Acc>
        sums;  // by offset in out: each starts from the element there and rounds once at the end
    for (Odometer at(sizes_of(index)); at.more(); at.next()) {
      const int64_t target = offset_with(out, at, dim, index_at(index, at.offset(index)));
      Acc& sum = sums.try_emplace(target, cast<Acc>(load<W>(out, target, out.dtype))).first->second;
      sum = plus(sum, cast<Acc>(load<W>(src, at.offset(src), out.dtype)));
    }
    for (const auto& [target, sum] : sums) store(out, target, cast<W>(sum));
  });
}

void index_select(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0], &index = call.ins[1];
  const int64_t dim = call.ints[0];
  check_indices(index, dim, length_along(x, dim));
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    const int64_t position = out.rank == 0 ? 0 : at[dim];
    const int64_t i = index_at(index, position * stride_along(index, 0));
    copy_element(out, at.offset(out), x, offset_with(x, at, dim, i));
  }
}

void nonzero(const KernelCall& call) {
  const View &out = call.outs[0], &x = call.ins[0];
  int64_t row = 0;
  for_each_nonzero(x, [&](const Odometer& at) {
    for (int d = 0; d < x.rank; ++d) store(out, row * out.strides[0] + d * out.strides[1], at[d]);
    ++row;
  });
}

void count_nonzero(const KernelCall& call) {
  int64_t count = 0;
  for_each_nonzero(call.ins[0], [&](const Odometer&) { ++count; });
  store(call.outs[0], 0, count);
}

}  // namespace

Texts index_texts() {
  static constexpr Text kTexts[] = {
      {"gather", gather},   {"scatter_add", scatter_add},     {"index_select", index_select},
      {"nonzero", nonzero}, {"count_nonzero", count_nonzero},
  };
  return kTexts;
}

}  // namespace lamella::kernels::reference
