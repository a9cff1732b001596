// argmax: the first greatest index along one dim; the first NaN wins.
#include <vector>

#include "lamella/core/visit.h"
#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/parts.h"

namespace lamella::kernels {
namespace {

constexpr int64_t kLines = kUsualThresholds.located_lines;  // room for them

/// Whether x is taken in place of `best`, which comes before it.
template <class T> bool is_taken(T x, T best) {
  if constexpr (is_half_type<T>) return is_taken(float(x), float(best));
  else return x > best || (x != x && best == best);
}

// n lines at once, each best[j] against the tile's j-th element: the same loop serves both memory orders.
template <class T>
void arg_lines(const char* in, int64_t line_step, int64_t step, int64_t size, int64_t n, int64_t* index) {
  T best[kLines];
  for (int64_t j = 0; j < n; ++j) best[j] = *reinterpret_cast<const T*>(in + j * line_step), index[j] = 0;
  for (int64_t i = 1; i < size; ++i) {
    const char* row = in + i * step;
    for (int64_t j = 0; j < n; ++j) {
      const T x = *reinterpret_cast<const T*>(row + j * line_step);
      if (is_taken(x, best[j])) best[j] = x, index[j] = i;
    }
  }
}

template <class F> void visit_ordered(DType dtype, F&& f) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_type<T> && !std::is_same_v<T, f128>) f(tag);
  });
}

/// What the lines of a call have in common.
struct ArgmaxLines {
  DType dtype;
  int64_t size, step;
  ArgmaxRowFn row;  ///< of the instruction set, for lines that are taken one by one; null otherwise
};

/// index[j]: where n lines, which lie `apart` bytes from each other, have their greatest element among
/// `first` to `last`.
void find_greatest(const ArgmaxLines& l, const char* in, int64_t apart, int64_t n, int64_t first,
                   int64_t last, int64_t* index) {
  const char* const from = in + first * l.step;
  if (l.row) index[0] = l.row(from, last - first);
  else
    visit_ordered(l.dtype, [&](auto tag) {
      arg_lines<typename decltype(tag)::type>(from, apart, l.step, last - first, n, index);
    });
  for (int64_t j = 0; j < n && first > 0; ++j) index[j] += first;
}

/// index[j] of the lines' tiles, which are places[j], places[n + j], ...: one of a later tile is taken where
/// a later element would be.
template <class T> void merge_tiles(const ArgmaxLines& l, const char* in, int64_t apart, int64_t n,
                                    const std::vector<int64_t>& places, int64_t* index) {
  const auto at = [&](int64_t j) {
    return *reinterpret_cast<const T*>(in + j % n * apart + places[size_t(j)] * l.step);
  };
  for (int64_t j = 0; j < n; ++j) {
    int64_t best = j;
    for (int64_t k = j + n; k < int64_t(places.size()); k += n)
      if (is_taken(at(k), at(best))) best = k;
    index[j] = places[size_t(best)];
  }
}

/// Among all elements, tile by tile.
void find_in_tiles(const ArgmaxLines& l, const char* in, int64_t apart, int64_t n, int64_t* index) {
  const int64_t tile = cost::tile_of(cost::of(n, kCosts.located)), tiles = (l.size + tile - 1) / tile;
  std::vector<int64_t> places(size_t(tiles * n));
  parallel_for(tiles, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t)
      find_greatest(l, in, apart, n, t * tile, std::min(l.size, (t + 1) * tile), places.data() + t * n);
  });
  visit_ordered(l.dtype,
                [&](auto tag) { merge_tiles<typename decltype(tag)::type>(l, in, apart, n, places, index); });
}

}  // namespace

namespace cpu {
namespace {
void argmax(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const int64_t dim = call.ints[0];
  if (is_complex(in.dtype) || is_internal(in.dtype)) fail_dtype("argmax", in.dtype);
  if (out.numel() == 0) return;
  const int64_t size = line_size(in, dim), step = line_step(in, dim);
  LAMELLA_ASSERT(size > 0);
  const IterPlan lines = plan_where(std::initializer_list<View>{out, in}, [dim](int d) { return d == dim; });
  // Lines that lie along memory are taken one by one, others side by side.
  const bool along = step <= std::abs(lines.stride(1, 0)) || lines.numel == 1;
  const int64_t width = along ? 1 : thresholds().located_lines, abreast = std::min(width, lines.size(0));
  const bool gapless = along && (step == itemsize(in.dtype) || size == 1);
  const ArgmaxLines of{in.dtype, size, step, gapless ? isa().argmax(in.dtype) : nullptr};
  const Mover mover = make_mover(DType::I64, out.dtype);
  // Lines are shared out, unless they are few and long: those are cut.
  const int64_t each = cost::of(size, kCosts.located);
  const bool few = lines.numel < thresholds().few_results * abreast;
  const bool cut = few && cost::in_parts(abreast, each);
  const auto find = [&](const IterPlan& plan) {
    for_each_block(plan, {width, 1}, [&](char* const* at, int64_t n, int64_t) {
      int64_t index[kLines];
      if (cut) find_in_tiles(of, at[1], plan.stride(1, 0), n, index);
      else find_greatest(of, at[1], plan.stride(1, 0), n, 0, size, index);
      mover.strided(at[0], plan.stride(0, 0), reinterpret_cast<const char*>(index), sizeof(int64_t), n);
    });
  };
  if (cut) return find(lines);
  for_each_part(lines, each, along ? of_lines() : of_neighbours(lines.size(0)), find);
}

}  // namespace

Texts argmax_kernels() {
  static constexpr Text kTexts[] = {{"argmax", argmax}};
  return kTexts;
}
}  // namespace cpu

}  // namespace lamella::kernels
