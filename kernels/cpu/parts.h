// Loops in parts that several threads may run: see NOTE: [threads of kernels].
#pragma once

#include <memory>

#include "lamella/core/parallel.h"
#include "lamella/kernels/cpu/cost.h"
#include "lamella/kernels/cpu/tile.h"

namespace lamella::kernels {

/// Parts are multiples of these along the two innermost dims, where there are more indices.
struct Units {
  int64_t dim0, dim1;
};
/// Of plans over elements: blocks and squares stay whole.
inline Units of_elements() { return {thresholds().tile, thresholds().square}; }
/// Likewise of blocks that go past the caches: see NOTE: [across].
inline Units of_across() { return {thresholds().across_rows, 4 * thresholds().across_columns}; }
/// Of plans over lines that are taken one by one.
inline Units of_lines() { return {1, 1}; }
/// Of plans over `lines` that are taken side by side: a quarter of each row, but a few cache lines of it at
/// least, and no more than half a page.
inline Units of_neighbours(int64_t lines) {
  const int64_t tile = thresholds().tile;
  return {int64_t(std::bit_floor(uint64_t(std::clamp(lines / 4, tile / 16, tile / 2)))), 1};
}

/// How a plan is cut: `parts` ranges of `step` indices along `dim`. One part is the plan itself.
struct Cut {
  int dim;
  int64_t step, parts;
};
/// By sizes alone: along the outermost dim that is long enough, into parts of about cost::tile_of(each)
/// elements.
Cut cut_of(const IterPlan& plan, int64_t each, Units units);
/// `part`, a copy of `plan`, becomes part `p` of it.
void set_part(IterPlan& part, const IterPlan& plan, const Cut& cut, int64_t p);

namespace detail {
using PartFn = void (*)(void* body, const IterPlan& part);
void each_part(const IterPlan& plan, int64_t each, Units units, PartFn run, void* body);
}  // namespace detail

/// body(part) for parts of the plan, all of its own dims and operands, where its elements are worth it, each
/// of them taking `each` picoseconds; else for all of it. REQUIRES: what a part computes is the same wherever
/// the plan is cut, and no other part touches it.
template <class Body> void for_each_part(const IterPlan& plan, int64_t each, Units units, Body&& body) {
  if (!cost::in_parts_now(plan.numel, each)) [[likely]]
    return body(plan);
  using B = std::remove_reference_t<Body>;
  const auto run = [](void* b, const IterPlan& part) { (*static_cast<B*>(b))(part); };
  void* const at = const_cast<void*>(static_cast<const void*>(std::addressof(body)));
  detail::each_part(plan, each, units, run, at);
}

/// Likewise body(part, room), with one make() for the parts that a thread takes in a row.
template <class Make, class Body>
void for_each_part_in(const IterPlan& plan, int64_t each, Units units, Make&& make, Body&& body) {
  if (!cost::in_parts_now(plan.numel, each)) [[likely]] {
    auto room = make();
    return body(plan, room);
  }
  const Cut cut = cut_of(plan, each, units);
  parallel_for(cut.parts, [&](int64_t first, int64_t last) {
    auto room = make();
    IterPlan part = plan;
    for (int64_t p = first; p < last; ++p) {
      if (cut.parts > 1) set_part(part, plan, cut, p);
      body(static_cast<const IterPlan&>(part), room);
    }
  });
}

/// body(from, to) for ranges of [0, n), tile by tile where elements are worth it, else once. REQUIRES:
/// likewise.
template <class Body> void for_each_range(int64_t n, int64_t each, Body&& body) {
  if (!cost::in_parts_now(n, each)) [[likely]]
    return body(int64_t{0}, n);
  const int64_t tile = cost::tile_of(each);
  parallel_for((n + tile - 1) / tile, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) body(t * tile, std::min(n, (t + 1) * tile));
  });
}

/// As for_each_outer(plan, 0, f), for the indices from `first` to `last` in its order.
template <class F> void for_each_between(const IterPlan& plan, int64_t first, int64_t last, F&& f) {
  if (first >= last) return;
  char* at[IterPlan::kMaxOperands];
  int64_t index[IterPlan::kMaxDims];
  for (int k = 0; k < plan.operands; ++k) at[k] = plan.data[k];
  for (int64_t d = 0, left = first; d < plan.rank; left /= plan.sizes[d++]) {
    index[d] = left % plan.sizes[d];
    for (int k = 0; k < plan.operands; ++k) at[k] += index[d] * plan.strides[k][d];
  }
  for (int64_t i = first;;) {
    f(static_cast<char* const*>(at));
    if (++i == last) return;
    int d = 0;
    for (; ++index[d] == plan.sizes[d]; index[d++] = 0)
      for (int k = 0; k < plan.operands; ++k) at[k] -= plan.strides[k][d] * (plan.sizes[d] - 1);
    for (int k = 0; k < plan.operands; ++k) at[k] += plan.strides[k][d];
  }
}

/// The blocks of a plan by number, in the order of for_each_block.
struct Blocks {
  BlockShape shape;
  int64_t along0, along1, count;
  Blocks(const IterPlan& plan, BlockShape of)
      : shape(of),
        along0((plan.size(0) + of.n0 - 1) / of.n0),
        along1((plan.size(1) + of.n1 - 1) / of.n1),
        count(plan.numel / (plan.size(0) * plan.size(1)) * along0 * along1) {}
};

/// As for_each_block, for blocks `first` to `last`. REQUIRES: the plan has elements.
template <class F>
void for_each_block_of(const IterPlan& plan, const Blocks& blocks, int64_t first, int64_t last, F&& f) {
  for (int64_t b = first; b < last; ++b) {
    const int64_t i = b % blocks.along0 * blocks.shape.n0;
    const int64_t j = b / blocks.along0 % blocks.along1 * blocks.shape.n1;
    char* at[IterPlan::kMaxOperands];
    for (int k = 0; k < plan.operands; ++k)
      at[k] = plan.data[k] + i * plan.stride(k, 0) + j * plan.stride(k, 1);
    int64_t left = b / (blocks.along0 * blocks.along1);
    for (int d = 2; d < plan.rank; left /= plan.sizes[d++])
      for (int k = 0; k < plan.operands; ++k) at[k] += left % plan.sizes[d] * plan.strides[k][d];
    f(static_cast<char* const*>(at), std::min(blocks.shape.n0, plan.size(0) - i),
      std::min(blocks.shape.n1, plan.size(1) - j));
  }
}

}  // namespace lamella::kernels
