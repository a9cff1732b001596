// Tiles: see tile.h.
#include "lamella/kernels/cpu/tile.h"

#include <algorithm>

#include "lamella/kernels/cpu/across.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels {
namespace {

bool gapless(int64_t item, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
  if (n0 == 1) return n1 == 1 || s1 == item;
  return s0 == item && (n1 == 1 || s1 == n0 * item);
}

}  // namespace

void TileReader::open(DType from, DType exec) {
  item_ = itemsize(exec);
  converts_ = from != exec;
  mover_ = make_mover(from, exec);
  spread_ = make_mover(exec, exec);
}

const char* TileReader::read(const char* p, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
  if (!converts_ && gapless(item_, s0, s1, n0, n1)) return p;
  const bool repeat = (s0 == 0 || n0 == 1) && (s1 == 0 || n1 == 1);
  if (repeat && repeated_ == p && repeats_ >= n0 * n1) return buffer_;
  repeated_ = repeat ? p : nullptr;
  repeats_ = n0 * n1;
  if (!repeat) {
    move_block(mover_, buffer_, item_, n0 * item_, p, s0, s1, n0, n1);
  } else {
    mover_.strided(buffer_, item_, p, 0, 1);
    if (n0 * n1 > 1) spread_.strided(buffer_, item_, buffer_, 0, n0 * n1);
  }
  return buffer_;
}

void TileWriter::open(DType exec, DType to) {
  item_ = itemsize(exec);
  converts_ = exec != to;
  mover_ = make_mover(exec, to);
}

bool TileWriter::direct(int64_t s0, int64_t s1, int64_t n0, int64_t n1) const {
  return !converts_ && gapless(item_, s0, s1, n0, n1);
}

void TileWriter::write(char* p, int64_t s0, int64_t s1, int64_t n0, int64_t n1, const char* from) {
  move_block(mover_, p, s0, s1, from, item_, n0 * item_, n0, n1);
}

BlockShape choose_block(const IterPlan& plan) {
  const int64_t d0 = plan.size(0), d1 = plan.size(1);
  const int64_t tile = thresholds().tile, square = thresholds().square;
  const auto across = [&plan](int k) {
    const int64_t s0 = std::abs(plan.stride(k, 0)), s1 = std::abs(plan.stride(k, 1));
    return s1 != 0 && s1 < s0;
  };
  bool transposed = false;
  for (int k = 0; k < plan.operands; ++k) transposed |= across(k);
  if (transposed && d0 > square && d1 > 1) return {square, std::min(d1, tile / square)};
  if (d0 >= tile) return {tile, 1};
  return {d0, std::clamp<int64_t>(tile / std::max<int64_t>(d0, 1), 1, std::max<int64_t>(d1, 1))};
}

namespace {
void stream_across(const Mover& mover, const IterPlan& all) {
  const auto make = [&] { return AcrossReader(mover.to_size); };
  for_each_part_in(all, kCosts.moved_across, of_across(), make, [&](const IterPlan& plan, AcrossReader& in) {
    for_each_across(plan, [&](const AcrossBlock& b) {
      const char* const rows = in.read(plan, 1, b);
      for (int64_t j = 0; j < b.n1; ++j)
        stream(b.at[0] + j * plan.stride(0, 1), rows + j * in.pitch(), b.n0 * mover.to_size);
    });
    end_streams();  // of this thread
  });
}
}  // namespace

void move_plan(const Mover& mover, const IterPlan& all) {
  const bool one_line = all.rank <= 1 && all.packed(0) && all.packed(1);
  // The C library's copy passes the caches by on some processors, and never looks at how large they are here.
  const bool streams = mover.block && passes_caches(bytes_of_plan(all));
  if (streams && all.stride(0, 0) == mover.to_size && runs_across(all, 1, mover.to_size))
    return stream_across(mover, all);
  for_each_part(all, one_line ? kCosts.moved : kCosts.moved_across, of_elements(), [&](const IterPlan& plan) {
    if (streams && one_line) {
      stream(plan.data[0], plan.data[1], plan.numel * mover.to_size);
      return end_streams();  // of this thread
    }
    BlockShape shape = choose_block(plan);
    if (shape.n1 == 1) shape.n0 = plan.size(0);
    for_each_block(plan, shape, [&](char* const* at, int64_t n0, int64_t n1) {
      move_block(mover, at[0], plan.stride(0, 0), plan.stride(0, 1), at[1], plan.stride(1, 0),
                 plan.stride(1, 1), n0, n1);
    });
  });
}

}  // namespace lamella::kernels
