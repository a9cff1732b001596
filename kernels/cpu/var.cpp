// var of gapless rows: the composite's lines and folds, block by block.
#include <algorithm>
#include <bit>
#include <vector>

#include "lamella/kernels/cpu/constant_lines.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/pointwise.h"

namespace lamella::kernels::cpu {
namespace {

constexpr int kMeans = 2;                                ///< see NOTE: [the mean twice]
constexpr int64_t kEach = (kMeans + 1) * kCosts.folded;  ///< of an element, which is read so often

/// The sum of tiles' results as the fold of all terms at once adds them: see NOTE: [pairs of tiles].
template <class T> T sum_of_tiles(const T* parts, int64_t tiles) {
  if (tiles == 1) return parts[0];
  const auto half = int64_t(std::bit_floor(uint64_t(tiles - 1)));
  return sum_of_tiles(parts, half) + sum_of_tiles(parts + half, tiles - half);
}

/// What is made of a row's elements before they are added.
template <class T> struct Terms {
  T means[kMeans];  ///< taken off, one after the other
  int taken = 0;    ///< so many of them
  bool squared = false;
};

/// NOTE: [var in one pass] The composite goes through memory many times. Here its lines (sub, mul) and its
/// fold (sum) run over a row that stays in the caches, the lines over a block of the fold at a time, and
/// blocks are added in the order of that fold: the composite's bits, whatever the row holds. So plain calls
/// may take this text while levels and base autograd take the composite apart.
template <class T> class Row {
 public:
  /// of `n` elements; `divisor`: the degrees of freedom.
  Row(int64_t n, double divisor)
      : n_(n),
        divisor_(T(divisor)),
        sum_(fold_of_sum()),
        minus_(constant_lines<scalar::Sub>(dtype_of<T>).right),
        times_(line_of<scalar::Mul>(dtype_of<T>)),
        block_(thresholds().fold_block) {}

  T operator()(const T* a) const {
    Terms<T> terms;
    for (; terms.taken < kMeans; ++terms.taken) terms.means[terms.taken] = total(a, terms) / T(n_);
    terms.squared = true;
    return total(a, terms) / divisor_;
  }

 private:
  static FoldFn fold_of_sum() {
    static const Kernel& kernel = named("sum");
    return kernel.folds[size_t(isa().set)][size_t(dtype_of<T>)].fold;
  }
  T sum_of_block(const T* a, const Terms<T>& terms, int64_t n) const {
    alignas(64) T apart[kUsualThresholds.fold_block];
    for (int k = 0; k < terms.taken; ++k, a = apart) minus_(apart, a, &terms.means[k], n);
    const void* const both[] = {apart, apart};
    if (terms.squared) times_(apart, both, n);
    T out;
    sum_(&out, a, n, 0);
    return out;
  }
  T sum(const T* a, const Terms<T>& terms, int64_t n) const {
    if (n <= block_) return sum_of_block(a, terms, n);
    const auto half = int64_t(std::bit_floor(uint64_t(n - 1)));
    return sum(a, terms, half) + sum(a + half, terms, n - half);
  }
  /// The sum over the tiles of a row that is worth several threads, else over all of it.
  T total(const T* a, const Terms<T>& terms) const {
    if (!cost::in_parts(n_, kEach)) [[likely]]
      return sum(a, terms, n_);
    const int64_t tile = std::max(cost::tile_of(kEach), block_), tiles = (n_ + tile - 1) / tile;
    std::vector<T> parts(static_cast<size_t>(tiles));
    parallel_for(tiles, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t)
        parts[size_t(t)] = sum(a + t * tile, terms, std::min(tile, n_ - t * tile));
    });
    return sum_of_tiles(parts.data(), tiles);
  }

  int64_t n_;
  T divisor_;
  FoldFn sum_;
  ConstantLineFn minus_;
  LineFn times_;
  int64_t block_;
};

/// Rows are shared out, unless they are few and each of them is worth it alone.
template <class T> void var_rows(const KernelCall& call) {
  const int64_t n = call.ints[0], rows = call.outs[0].numel();
  T* const out = call.outs[0].as<T>();
  const T* const x = call.ins[0].as<T>();
  const Row<T> row(n, call.scalars[0].to<double>());
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) out[i] = row(x + i * n);
  };
  if (rows < thresholds().shared_out && cost::in_parts(n, kEach)) return run(0, rows);
  for_each_range(rows, cost::of(n, kEach), run);
}

void var(const KernelCall& call) {
  switch (call.ins[0].dtype) {
    case DType::F32: return var_rows<float>(call);
    case DType::F64: return var_rows<double>(call);
    default: fail_dtype("var", call.ins[0].dtype);
  }
}
}  // namespace

Texts var_kernels() {
  static constexpr Text kTexts[] = {{"var", var}};
  return kTexts;
}

}  // namespace lamella::kernels::cpu
