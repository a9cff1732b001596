// Kernels that only move elements: flip, tril, triu.
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

void check_same_dtype(const char* kernel, const KernelCall& call) {
  const DType from = call.ins[0].dtype, to = call.outs[0].dtype;
  if (is_internal(from) || from != to) fail_dtype(kernel, is_internal(from) ? from : to);
}

// Row i of each matrix keeps the columns [from, to) and zeroes the rest.
template <class Range> void keep_columns(const char* kernel, const KernelCall& call, Range&& range) {
  check_same_dtype(kernel, call);
  const View &out = call.outs[0], &in = call.ins[0];
  if (out.numel() == 0) return;
  const int row_dim = out.rank - 2, column_dim = out.rank - 1;
  const int64_t rows = out.sizes[row_dim], columns = out.sizes[column_dim];
  const int64_t o0 = line_step(out, column_dim), o1 = line_step(out, row_dim);
  const int64_t i0 = line_step(in, column_dim), i1 = line_step(in, row_dim);
  const Mover copy = make_mover(in.dtype, in.dtype);
  const char zero[kMaxItem] = {};
  const IterPlan plan = plan_where(std::initializer_list<View>{out, in}, [=](int d) { return d >= row_dim; });
  const auto keep_rows = [&](char* const* at, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto [from, to] = range(i, columns);
      char* row = at[0] + i * o1;
      copy.strided(row, o0, zero, 0, from);
      copy.strided(row + from * o0, o0, at[1] + i * i1 + from * i0, i0, to - from);
      copy.strided(row + to * o0, o0, zero, 0, columns - to);
    }
  };
  const int64_t row_cost = cost::of(columns, kCosts.strided);
  for_each_part(plan, cost::of(rows, row_cost), of_lines(), [&](const IterPlan& part) {
    for_each_outer(part, 0, [&](char* const* at) {
      for_each_range(rows, row_cost, [&](int64_t first, int64_t last) { keep_rows(at, first, last); });
    });
  });
}

struct Columns {
  int64_t from, to;
};

}  // namespace

namespace cpu {
namespace {

void flip(const KernelCall& call) {
  check_same_dtype("flip", call);
  const View &out = call.outs[0], &in = call.ins[0];
  if (out.numel() == 0) return;
  LAMELLA_CHECK(in.rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}", in.rank,
                IterPlan::kMaxDims);
  const int64_t item = itemsize(in.dtype);
  int64_t strides[IterPlan::kMaxDims];
  char* start = in.as<char>();
  for (int d = 0; d < in.rank; ++d) strides[d] = in.strides[d];
  for (const int64_t d : call.ints) {
    start += (in.sizes[d] - 1) * in.strides[d] * item;
    strides[d] = -in.strides[d];
  }
  const PlanOperand operands[] = {{out.as<char>(), out.strides, item}, {start, strides, item}};
  const IterPlan plan = make_plan(operands, out.rank, out.sizes);
  const Mover copy = make_mover(in.dtype, in.dtype);
  move_plan(copy, plan);
}

void tril(const KernelCall& call) {
  const int64_t diagonal = call.ints[0];
  keep_columns("tril", call, [diagonal](int64_t row, int64_t columns) {
    return Columns{0, std::clamp<int64_t>(row + std::min(diagonal, columns) + 1, 0, columns)};
  });
}

void triu(const KernelCall& call) {
  const int64_t diagonal = call.ints[0];
  keep_columns("triu", call, [diagonal](int64_t row, int64_t columns) {
    return Columns{std::clamp<int64_t>(row + std::min(diagonal, columns), 0, columns), columns};
  });
}
}  // namespace

Texts move_kernels() {
  static constexpr Text kTexts[] = {{"flip", flip}, {"tril", tril}, {"triu", triu}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
