// Sizes from which something is done in another way: blocks, tiles, short ways, library calls. One list,
// which kernels read their constants from and the laws their sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lamella/core/export.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [thresholds] A bug beyond a threshold passes every small case: a scan that begins anew with each
/// block of 1024, a sort that is wrong from 256 elements on. So each of them is a row of this list and has a
/// second, lowered value. The instruction set "tiny" (LAMELLA_ISA=tiny, or ScopedThresholds) runs the same
/// code with the lowered ones, and laws 98 and 173 compare; cases are drawn within 1 of the usual ones. A
/// kernel, rule or list with a size of its own adds its row here and takes its constant from here. No
/// operator is named here: kernels/readers.h says whose kernels read a row.
enum class CountedIn : uint8_t {
  Size,      ///< indices along one dim, or elements of a dense tensor
  Products,  ///< multiplications of a matrix product: rows times inner size times columns
  Bytes,     ///< of a tensor's elements
  Rank,      ///< dims
  Entries,   ///< of a list
  Cached,    ///< bytes that caches hold; more than cases have
  Work       ///< picoseconds that elements take, see kCosts; too many to draw cases about
};

// T(name, usual, lowered, counted in, what is done from there on). 0 turns a short way off; where both values
// are equal it cannot be lowered, being the size of an object. Which kernels read it: kernels/readers.h.
// clang-format off
#define LAMELLA_THRESHOLDS(T) \
  T(tile, 1024, 16, Size, \
    "what is strided, broadcast or converted goes through buffers of so many elements") \
  T(tile_across, 2048, 32, Size, "results side by side that a reduction keeps") \
  T(square, 64, 4, Size, "a transpose goes in squares of this side") \
  T(transposed, 16, 4, Size, "squares of this side go through registers") \
  T(across_rows, 128, 8, Size, \
    "a transpose past the caches goes in blocks of so many results side by side") \
  T(across_columns, 64, 4, Size, "likewise, below each other") \
  T(long_run, 16, 2, Size, "rows are moved one by one, shorter ones as a block") \
  T(short_run, 16, 0, Size, "a line is a vector loop, a shorter one a loop of four") \
  T(straight, 4096, 0, Size, "dense operands of one type get a plan above it") \
  T(few_terms, 16, 2, Size, "above it reductions may run along the reduced dims") \
  T(few_results, 4, 2, Size, \
    "reductions may run across the reduced dims; fewer blocks of results are cut along their terms") \
  T(terms_in_a_row, 8, 2, Size, "sums across lines are of partial sums") \
  T(fold_some, 16, 4, Size, "a fold keeps half as many results") \
  T(fold_many, 64, 8, Size, "a fold keeps half as many results") \
  T(fold_block, 512, 8, Size, "a fold is pairwise above it") \
  T(complex_fold, 8, 2, Size, "a fold of complex numbers keeps so many results above it") \
  T(complex_block, 32, 8, Size, "a fold of complex numbers is pairwise above it") \
  T(lines_across, 8, 2, Size, "neighbouring lines run side by side") \
  T(scans_abreast, 4, 4, Size, "gapless lines run side by side") \
  T(exp_chunk, 512, 8, Size, "exponentials are added in chunks") \
  T(search_block, 64, 8, Size, "the greatest element is looked for in blocks") \
  T(located_block, 1024, 16, Size, "a line's greatest element is found by blocks") \
  T(located_lines, 256, 8, Size, "lines side by side go in groups") \
  T(random_block, 64, 4, Size, "samples are drawn by blocks") \
  T(radix, 256, 4, Size, "sorting is by digits, of fewer elements by comparisons") \
  T(blas, 48 * 48 * 48, 8, Products, "BLAS multiplies") \
  T(own_product, 1 << 27, 300, Work, \
    "BLAS multiplies real matrices where its registers are narrower, as far as it does at all") \
  T(own_small_product, 20 << 20, 300, Work, \
    "likewise where they are as wide: from there on products are tiles for several threads") \
  T(gemm_packed, 3 << 19, 27, Work, "our own product packs its right operand") \
  T(gemm_packed_rows, 32, 4, Size, "likewise: of fewer rows it never does") \
  T(gemm_tile, 6, 6, Size, "likewise: rows that are computed at once") \
  T(gemm_depth, 256, 4, Size, "likewise: that many rows of it at a time") \
  T(gemm_rows, 512, 4, Size, \
    "a large product is computed in tiles of a quarter of its rows, at most so many and at least an " \
    "eighth of that") \
  T(gemm_columns, 1024, 8, Size, "likewise of columns") \
  T(convert_width, 8, 8, Size, "halves are converted so many at a time") \
  T(dot_width, 8, 8, Size, "a dot product keeps so many results") \
  T(parallel, 400'000'000, 8'000, Work, "several threads work") \
  T(parallel_near, 40'000'000, 8'000, Work, "several threads work while others are awake") \
  T(parallel_tile, 20'000'000, 4'000, Work, "work is cut into tiles, of half as much at least") \
  T(shared_out, 32, 2, Size, \
    "work is shared out along a dim of so many indices, fewer of them are cut themselves") \
  T(asked_ahead, 16 * 512, 16 * 8, Cached, "a fold asks for memory ahead, so many bytes of it") \
  T(shared_caches, 8 << 20, 1, Cached, \
    "likewise, a quarter of the cache that a core reaches; so much where nobody says") \
  T(past_caches, 32 << 20, 1, Cached, \
    "stores pass by the caches, from the size of the one that a core reaches; so much where nobody " \
    "says") \
  T(inline_dims, 5, 5, Rank, "sizes and strides lie on the heap above it") \
  T(inline_bytes, 64, 64, Bytes, "elements lie in a block of their own above it") \
  T(pooled_bytes, 4096, 4096, Bytes, "blocks come from malloc above it, smaller ones from pools") \
  T(few_tracked, 4, 4, Entries, "recording a call needs the heap above it") \
  T(few_waiting, 8, 8, Entries, "nodes that wait in backward are found by an index above it") \
  T(inline_values, 8, 8, Entries, "copied frames and saved sizes need the heap above it")
// clang-format on

struct Thresholds {
#define LAMELLA_THRESHOLD_FIELD(name, usual, lowered, in, what) int64_t name = usual;
  LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_FIELD)
#undef LAMELLA_THRESHOLD_FIELD
  bool lowered = false;
};
inline constexpr Thresholds kUsualThresholds;
inline constexpr Thresholds kLoweredThresholds = {
#define LAMELLA_THRESHOLD_LOWERED(name, usual, lowered, in, what) .name = lowered,
    LAMELLA_THRESHOLDS(LAMELLA_THRESHOLD_LOWERED)
#undef LAMELLA_THRESHOLD_LOWERED
        .lowered = true};

/// What an element takes one thread, in picoseconds: f32, medians of 2048 x 2048 elements by their number, on
/// the machine of docs/decisions on 2026-11-22. Other machines and dtypes differ by some factors, for which
/// there is room: the least work that is cut is five tiles. They decide about time alone, not about bits, but
/// for matrix products'. tools/kernel_costs.py measures them; docs/performance.md has its last figures.
// C(name, picoseconds, of what, and what was measured)
// clang-format off
#define LAMELLA_COSTS(C) \
  C(line, 500, "gapless pointwise: 360 to 566") \
  C(strided, 1'000, "pointwise through buffers: a row broadcast 434, transposed 4,140") \
  C(scalar_math, 20'000, "an elementary function of complex numbers, which has no vectors") \
  C(moved, 100, "gapless bytes moved: long ones, which the C library passes by the caches") \
  C(moved_across, 2'000, "other bytes moved: transposed 2,770") \
  C(folded, 200, "rows added 176, columns 323, the greatest of rows 556") \
  C(scanned, 1'000, "rows 971, columns 1,280") \
  C(normalised, 1'200, "rows of exponentials over their total 1,250") \
  C(located, 1'200, "places of the greatest of rows 1,220") \
  C(sorted, 15'000, "rows 14,800") \
  C(looked_up, 2'000, "elements 3,610, slices 513") \
  C(drawn, 13'000, "uniform 13,500, normal 39,000") \
  C(product, 20, "a multiplication of a matrix product, 1,024 a side: 19.7") \
  C(small_product, 200, "likewise, 4 and 8 a side: 53 to 210") \
  C(solved, 1'000, "likewise of a factorization, 8 a side")
// clang-format on
struct Costs {
#define LAMELLA_COST_FIELD(name, picoseconds, what) int64_t name = picoseconds;
  LAMELLA_COSTS(LAMELLA_COST_FIELD)
#undef LAMELLA_COST_FIELD
};
inline constexpr Costs kCosts;

/// A row of the list.
struct Threshold {
  std::string_view name;
  int64_t usual, lowered;
  CountedIn in;
  std::string_view what;

  /// Whether cases are drawn about it: of the others they would have a million elements.
  bool is_drawn() const { return in != CountedIn::Work && in != CountedIn::Cached; }
};
std::span<const Threshold> all_thresholds();

namespace detail {
extern Thresholds thresholds_of_process;  ///< usual, unless LAMELLA_ISA is "tiny"
inline thread_local constinit const Thresholds* thresholds_of_thread = &thresholds_of_process;
}  // namespace detail

/// Those that kernels called by this thread keep. What is compiled once per instruction set has constants.
inline const Thresholds& thresholds() { return *detail::thresholds_of_thread; }

/// Other thresholds for a scope, on this thread. A pinned table decides about short ways in front of kernels.
class ScopedThresholds {
 public:
  explicit ScopedThresholds(const Thresholds& t) : saved_(detail::thresholds_of_thread) {
    detail::thresholds_of_thread = &t;
  }
  ~ScopedThresholds() { detail::thresholds_of_thread = saved_; }
  ScopedThresholds(const ScopedThresholds&) = delete;
  ScopedThresholds& operator=(const ScopedThresholds&) = delete;

 private:
  const Thresholds* saved_;
};

}  // namespace lamella
LAMELLA_API_END
