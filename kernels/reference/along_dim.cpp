// Oracle: softmax, log_softmax and sort take one line along a dim at a time; flip reverses dims.
#include <algorithm>
#include <numeric>

#include "lamella/kernels/reference/arith.h"
#include "lamella/kernels/table.h"

namespace lamella::kernels::reference {
namespace {

/// Replaces each line by body(line); lines are one precision above compute and round once. Floating dtypes
/// only.
template <class Body> void map_lines(const KernelCall& call, const char* name, Body body) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0], length = length_along(in, dim);
  visit_supported(name, call.compute, [&]<Floating W>(type_tag<W>) {
    using Wide = wider_t<W>;
    if (length == 0) return;
    for (Odometer at(sizes_across(in, dim)); at.more(); at.next()) {
      std::vector<Wide> line;
      for (int64_t i = 0; i < length; ++i) {
        line.push_back(Wide(load<W>(in, at.offset(in) + i * stride_along(in, dim), call.compute)));
      }
      body(line);
      for (int64_t i = 0; i < length; ++i) {
        store(out, at.offset(out) + i * stride_along(out, dim), W(line[size_t(i)]));
      }
    }
  });
}

template <class Wide> Wide greatest(const std::vector<Wide>& line) {
  return *std::max_element(line.begin(), line.end(), less<Wide>);
}

/// sum exp(x - shift). A line of -inf alone has shift -inf: NaN, as every quotient of zeros.
template <class Wide> Wide sum_of_exp(const std::vector<Wide>& line, Wide shift) {
  Wide sum = 0;
  for (const Wide x : line) sum += math::exp(x - shift);
  return sum;
}

/// log sum exp(x - shift), shift the greatest element: right relative to itself, also where the others are
/// far less than that one. NaN for an infinite shift.
template <class Wide> Wide log_sum_of_exp(std::vector<Wide> line, Wide shift) {
  if (shift - shift != 0) return shift - shift;
  line.erase(std::find(line.begin(), line.end(), shift));
  return math::log1p(sum_of_exp(line, shift));
}

/// 0 .. n-1 in the order of their keys; equal keys keep their order, ascending or descending.
template <class W> std::vector<int64_t> stable_order(const std::vector<W>& keys, bool descending) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const W a = keys[size_t(i)], b = keys[size_t(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

void softmax(const KernelCall& call) {
  map_lines(call, "softmax", []<class Wide>(std::vector<Wide>& line) {
    const Wide shift = greatest(line), sum = sum_of_exp(line, shift);
    for (Wide& x : line) x = math::exp(x - shift) / sum;
  });
}

void log_softmax(const KernelCall& call) {
  map_lines(call, "log_softmax", []<class Wide>(std::vector<Wide>& line) {
    const Wide shift = greatest(line), log_sum = log_sum_of_exp(line, shift);
    for (Wide& x : line) x = (x - shift) - log_sum;
  });
}

void sort(const KernelCall& call) {
  const View &values = call.outs[0], &indices = call.outs[1], &in = call.ins[0];
  const int64_t dim = call.ints[0], length = length_along(in, dim);
  const bool descending = call.ints[1] != 0;
  visit_supported("sort", in.dtype, [&]<Real W>(type_tag<W>) {
    for (Odometer at(sizes_across(in, dim)); at.more(); at.next()) {
      const auto offset = [&](const View& v, int64_t i) { return at.offset(v) + i * stride_along(v, dim); };
      std::vector<W> keys;
      for (int64_t i = 0; i < length; ++i) keys.push_back(load<W>(in, offset(in, i), in.dtype));
      int64_t i = 0;
      for (const int64_t from : stable_order(keys, descending)) {
        copy_element(values, offset(values, i), in, offset(in, from));
        store(indices, offset(indices, i), from);
        ++i;
      }
    }
  });
}

void flip(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  for (Odometer at(sizes_of(out)); at.more(); at.next()) {
    int64_t from = at.offset(in);
    for (const int64_t dim : call.ints) {
      if (in.rank > 0) from += (in.sizes[dim] - 1 - 2 * at[dim]) * in.strides[dim];
    }
    copy_element(out, at.offset(out), in, from);
  }
}

}  // namespace

Texts along_dim_texts() {
  static constexpr Text kTexts[] = {
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"sort", sort},
      {"flip", flip},
  };
  return kTexts;
}

}  // namespace lamella::kernels::reference
