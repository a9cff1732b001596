// nonzero and count_nonzero: elements become bools a tile at a time.
#include <atomic>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

// Appends one row of outs[0] after another.
struct Rows {
  char* next;
  int64_t row_step, column_step;

  void add(const int64_t* index, int rank) {
    for (int d = 0; d < rank; ++d) *reinterpret_cast<int64_t*>(next + d * column_step) = index[d];
    next += row_step;
  }
};

// Row-major, whatever the strides: the order of the rows is the result.
void find_rows(const View& in, Rows rows) {
  const int last = in.rank - 1;
  const int64_t item = itemsize(in.dtype), size = in.sizes[last], step = in.strides[last] * item;
  const int64_t most = thresholds().tile;
  const Mover truth = make_mover(in.dtype, DType::Bool);
  int64_t index[IterPlan::kMaxDims] = {};
  const char* at = in.as<char>();
  for (int d = last - 1; d >= -1;) {
    for (int64_t i = 0; i < size; i += most) {
      bool tile[kTile];
      const int64_t n = std::min(most, size - i);
      truth.strided(reinterpret_cast<char*>(tile), 1, at + i * step, step, n);
      for (int64_t j = 0; j < n; ++j) {
        index[last] = i + j;
        if (tile[j]) rows.add(index, in.rank);
      }
    }
    for (d = last - 1; d >= 0; --d) {
      at += in.strides[d] * item;
      if (++index[d] < in.sizes[d]) break;
      at -= in.strides[d] * item * in.sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

namespace cpu {
namespace {

void nonzero(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  if (is_internal(in.dtype)) fail_dtype("nonzero", in.dtype);
  if (in.rank == 0 || in.numel() == 0) return;  // a rank-0 tensor has rows without columns
  LAMELLA_CHECK(in.rank <= IterPlan::kMaxDims, Shape, "rank {} is beyond the supported {}", in.rank,
                IterPlan::kMaxDims);
  find_rows(in, {out.as<char>(), line_step(out, 0), line_step(out, 1)});
}

void count_nonzero(const KernelCall& call) {
  const View& in = call.ins[0];
  if (is_internal(in.dtype)) fail_dtype("count_nonzero", in.dtype);
  std::atomic<int64_t> count = 0;
  for_each_part(make_plan({}, {&in, 1}), kCosts.strided, of_elements(), [&](const IterPlan& plan) {
    TileReader reader;
    reader.open(in.dtype, DType::Bool);
    int64_t here = 0;
    for_each_block(plan, choose_block(plan), [&](char* const* at, int64_t n0, int64_t n1) {
      const char* tile = reader.read(at[0], plan.stride(0, 0), plan.stride(0, 1), n0, n1);
      for (int64_t i = 0; i < n0 * n1; ++i) here += tile[i] != 0;
    });
    count.fetch_add(here, std::memory_order_relaxed);
  });
  *call.outs[0].as<int64_t>() = count;
}
}  // namespace

Texts nonzero_kernels() {
  static constexpr Text kTexts[] = {{"nonzero", nonzero}, {"count_nonzero", count_nonzero}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
