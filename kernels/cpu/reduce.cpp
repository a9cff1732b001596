// Folds: along the reduced dims when those are the close ones, tile by tile across them otherwise.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/cascade.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels {
namespace {

bool is_reduced(const View& out, const View& in, int d) { return out.sizes[d] != in.sizes[d]; }

/// What a reduction is. The plans are made in place: each is three kilobytes.
struct Reduction {
  Reduction(const FoldLines& lines, bool pairs, bool groups, DType type, const View& out, const View& in)
      : of(lines),
        in_pairs(pairs),
        in_groups(groups),
        exec(type),
        in_dtype(in.dtype),
        out_dtype(out.dtype),
        kept(plan_where(std::initializer_list<View>{out, in}, [&](int d) { return is_reduced(out, in, d); })),
        reduced(plan_where(std::initializer_list<View>{in}, [&](int d) { return !is_reduced(out, in, d); })) {
  }
  FoldLines of;
  bool in_pairs;   ///< few terms in a row
  bool in_groups;  ///< terms folded tile by tile, and tiles in their order, give the bits of all at once
  DType exec, in_dtype, out_dtype;
  IterPlan kept;     // operands: out, in
  IterPlan reduced;  // operand: in
};

/// One thread's buffers for it.
struct Buffers {
  explicit Buffers(const Reduction& r) {
    reader.open(r.in_dtype, r.exec);
    writer.open(r.exec, r.out_dtype);
  }
  TileReader reader;
  TileWriter writer;
};

void write_results(const Reduction& r, Buffers& b, char* to, int64_t s0, int64_t s1, int64_t n0, int64_t n1,
                   char* states) {
  const void* ins[] = {states};
  if (r.of.result) r.of.result(states = b.writer.buffer(), ins, n0 * n1);
  b.writer.write(to, s0, s1, n0, n1, states);
}

/// NOTE: [pairs of tiles] A fold of many elements is a tree: a power of two of blocks is folded with what
/// follows, each in itself likewise. So tiles of a power of two of blocks are parts of that tree, and a
/// cascade of their results is the rest of it: the bits are those of the fold of all at once.
///
/// partial(state, t) for all tiles, and their fold, of `count` states, in the lowest slot of what is
/// returned.
template <class Partial>
std::unique_ptr<Cascade> fold_tiles(const Reduction& r, int64_t tiles, int64_t count, Partial&& partial) {
  const int64_t bytes = count * r.of.state_size;
  const auto partials = std::make_unique_for_overwrite<char[]>(size_t(tiles * bytes));
  parallel_for(tiles, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) partial(partials.get() + t * bytes, t);
  });
  auto cascade = std::make_unique<Cascade>(r.of.merge, bytes, count);
  for (int64_t t = 0; t < tiles; ++t) {
    std::memcpy(cascade->slot(cascade->depth()), partials.get() + t * bytes, size_t(bytes));
    cascade->push();
  }
  cascade->finish();
  return cascade;
}

/// Tiles of `unit` steps times a power of two, where `steps` of them cost `each` are worth it: the steps of
/// one.
int64_t steps_of_tile(int64_t steps, int64_t each, int64_t unit) {
  if (!cost::in_parts(steps, each)) return std::max<int64_t>(steps, 1);
  return std::max(cost::tile_of(each), unit);
}
int64_t tiles_of(int64_t steps, int64_t tile) { return (steps + tile - 1) / tile; }

/// Whether the elements of an output are folded where they lie.
bool lies_whole(const Reduction& r) {
  return r.reduced.rank <= 1 && r.in_dtype == r.exec && r.reduced.stride(0, 0) == itemsize(r.exec);
}

/// How many bytes ahead of the fold memory is asked for: two pages, where no row ends before the next begins.
int64_t ahead_of(const Reduction& r, const IterPlan& kept) {
  const int64_t row = r.reduced.numel * itemsize(r.exec), far = thresholds().asked_ahead;
  const int64_t bytes = row * r.kept.numel;
  if (bytes <= far) return 0;  // before the caches' size is asked, which reads a file the first time
  const bool adjacent = kept.numel == 1 || kept.stride(1, 0) == row;
  return (adjacent || row >= 8 * far) && shares_caches(bytes) ? far : 0;
}

// One output at a time, of elements that are folded where they lie.
void reduce_whole(const Reduction& r, const IterPlan& kept) {
  const int64_t n = r.reduced.numel, item = itemsize(r.exec);
  const int64_t tile = steps_of_tile(n, kCosts.folded, thresholds().fold_block), tiles = tiles_of(n, tile);
  const int64_t ahead = ahead_of(r, kept);
  if (tiles == 1 && !r.of.result && r.out_dtype == r.exec)  // the state is the result
    return for_each_outer(kept, 0, [&](char* const* at) { r.of.fold(at[0], at[1], n, ahead); });
  Buffers b(r);
  for_each_outer(kept, 0, [&](char* const* at) {
    alignas(16) char state[kMaxFoldState];
    if (tiles == 1) {
      r.of.fold(state, at[1], n, ahead);
      return write_results(r, b, at[0], 0, 0, 1, 1, state);
    }
    const auto all = fold_tiles(r, tiles, 1, [&](char* partial, int64_t t) {
      r.of.fold(partial, at[1] + t * tile * item, std::min(tile, n - t * tile), ahead);
    });
    write_results(r, b, at[0], 0, 0, 1, 1, all->slot(0));
  });
}

/// Folds blocks `first` to `last` of the terms that begin at `from` into the cascade's lowest slot.
void fold_along(const Reduction& r, TileReader& reader, Cascade& cascade, const Blocks& blocks,
                const char* from, int64_t first, int64_t last) {
  const int64_t s0 = r.reduced.stride(0, 0), s1 = r.reduced.stride(0, 1);
  cascade.reset(1);
  for_each_block_of(r.reduced, blocks, first, last, [&](char* const* at, int64_t n0, int64_t n1) {
    const char* run = reader.read(from + (at[0] - r.reduced.data[0]), s0, s1, n0, n1);
    r.of.fold(cascade.slot(cascade.depth()), run, n0 * n1, 0);
    cascade.push();
  });
  cascade.finish();
}

// One output at a time; `fold` runs along the reduced dims, block by block.
void reduce_along(const Reduction& r, const IterPlan& kept) {
  Buffers b(r);
  Cascade cascade(r.of.merge, kMaxFoldState, 1);
  const Blocks blocks(r.reduced, choose_block(r.reduced));
  const int64_t block = cost::of(r.reduced.numel / blocks.count, kCosts.strided);
  const int64_t tile = steps_of_tile(blocks.count, block, 1), tiles = tiles_of(blocks.count, tile);
  for_each_outer(kept, 0, [&](char* const* at) {
    if (tiles == 1) {
      fold_along(r, b.reader, cascade, blocks, at[1], 0, blocks.count);
      return write_results(r, b, at[0], 0, 0, 1, 1, cascade.slot(0));
    }
    const auto all = fold_tiles(r, tiles, 1, [&](char* partial, int64_t t) {
      Buffers mine(r);
      Cascade part(r.of.merge, kMaxFoldState, 1);
      fold_along(r, mine.reader, part, blocks, at[1], t * tile, std::min(blocks.count, (t + 1) * tile));
      std::memcpy(partial, part.slot(0), size_t(r.of.state_size));
    });
    write_results(r, b, at[0], 0, 0, 1, 1, all->slot(0));
  });
}

/// How many terms are added in a row before their sum is one of a cascade's.
int64_t terms_in_a_row(const Reduction& r) {
  return r.in_pairs && is_inexact(r.exec) ? thresholds().terms_in_a_row : r.reduced.numel;
}

/// Terms folded one by one, each gone with the next: what a buffer gives.
struct PassingTerms {
  const FoldLines& of;
  int64_t n;
  char* acc = nullptr;
  bool is_first = true;

  void begin(char* to) { acc = to, is_first = true; }
  void take(const char* x) {
    const void* ins[] = {is_first ? x : acc, x};
    if (!is_first) of.step(acc, ins, n);
    else if (of.first) of.first(acc, ins, n);
    else std::memcpy(acc, x, size_t(n * of.state_size));
    is_first = false;
  }
  void end() {}
};

/// Terms that stay where they lie wait, and kRowsAtOnce are folded at a time. REQUIRES: states are elements.
struct WaitingTerms {
  const FoldLines& of;
  int64_t n;
  char* acc = nullptr;
  const void* rows[kRowsAtOnce] = {};
  int held = 0;

  void begin(char* to) { acc = to, held = 0; }
  void take(const char* x) {
    rows[held++] = x;
    if (held < kRowsAtOnce) return;
    of.rows(acc, rows, n);
    rows[0] = acc, held = 1;  // then their fold is the first row of what follows
  }
  void end() {
    if (rows[0] != acc) std::memcpy(acc, rows[0], size_t(n * of.state_size));
    for (int k = 1; k < held; ++k) {
      const void* ins[] = {acc, rows[k]};
      of.step(acc, ins, n);
    }
  }
};

/// The terms `first` to `last`, as `place` finds them, into the cascade's lowest slot.
template <class Terms, class Place>
void fold_terms(const Reduction& r, Cascade& cascade, Terms terms, int64_t first, int64_t last, Place place) {
  const int64_t run = terms_in_a_row(r);
  int64_t in_run = 0;
  const auto end_run = [&] { terms.end(), cascade.push(), in_run = 0; };
  for_each_between(r.reduced, first, last, [&](char* const* term) {
    if (in_run++ == 0) terms.begin(cascade.slot(cascade.depth()));
    terms.take(place(term[0] - r.reduced.data[0]));
    if (in_run == run) end_run();
  });
  if (in_run != 0) end_run();
  cascade.finish();
}

/// n0 x n1 outputs over the terms `first` to `last`, that of index 0 at `from`, into the cascade's lowest
/// slot.
void fold_across(const Reduction& r, const IterPlan& kept, TileReader& reader, Cascade& cascade,
                 const char* from, int64_t n0, int64_t n1, int64_t first, int64_t last) {
  const int64_t n = n0 * n1, s0 = kept.stride(1, 0), s1 = kept.stride(1, 1);
  cascade.reset(n);
  if (r.of.rows && n1 == 1 && reader.direct(s0))
    return fold_terms(r, cascade, WaitingTerms{r.of, n}, first, last, [&](int64_t at) { return from + at; });
  fold_terms(r, cascade, PassingTerms{r.of, n}, first, last,
             [&](int64_t at) { return reader.read(from + at, s0, s1, n0, n1); });
}

// Where no buffer stands between, a tile is as long as what is kept of it may stay in the first-level cache:
// pieces of rows that end with a page of memory end what the processor fetches ahead, too.
BlockShape across_block(const Reduction& r, const IterPlan& kept) {
  BlockShape shape = choose_block(kept);
  const bool direct = r.in_dtype == r.exec && kept.stride(1, 0) == itemsize(r.exec);
  if (shape.n1 == 1 && direct && !r.of.result)
    shape.n0 = std::min(kept.size(0), std::max(shape.n0, thresholds().tile_across));
  return shape;
}

// A tile of outputs at a time; each reduced index adds one tile of inputs.
void reduce_across(const Reduction& r, const IterPlan& kept) {
  Buffers b(r);
  const BlockShape shape = across_block(r, kept);
  Cascade cascade(r.of.merge, shape.n0 * shape.n1 * r.of.state_size, 0);
  for_each_block(kept, shape, [&](char* const* at, int64_t n0, int64_t n1) {
    fold_across(r, kept, b.reader, cascade, at[1], n0, n1, 0, r.reduced.numel);
    write_results(r, b, at[0], kept.stride(0, 0), kept.stride(0, 1), n0, n1, cascade.slot(0));
  });
}

/// A power of two: each tile keeps as many results as there are outputs, so more than sixteen cost more than
/// they are worth.
int64_t sixteenth(int64_t terms) { return int64_t(std::bit_floor(uint64_t(terms / 16))); }

// Likewise with tiles of terms, whole rows of them, where there are few blocks of outputs. REQUIRES: the
// terms are folded in groups.
void reduce_terms(const Reduction& r, BlockShape shape) {
  Buffers b(r);
  const int64_t terms = r.reduced.numel, s0 = r.kept.stride(0, 0), s1 = r.kept.stride(0, 1);
  const int64_t term = cost::of(shape.n0 * shape.n1, kCosts.folded);
  const int64_t unit = std::max(8 * thresholds().terms_in_a_row, sixteenth(terms));
  const int64_t tile = steps_of_tile(terms, term, unit);
  for_each_block(r.kept, shape, [&](char* const* at, int64_t n0, int64_t n1) {
    const int64_t n = n0 * n1;
    const auto all = fold_tiles(r, tiles_of(terms, tile), n, [&](char* partial, int64_t t) {
      Buffers mine(r);
      Cascade part(r.of.merge, n * r.of.state_size, n);
      fold_across(r, r.kept, mine.reader, part, at[1], n0, n1, t * tile, std::min(terms, (t + 1) * tile));
      std::memcpy(partial, part.slot(0), size_t(n * r.of.state_size));
    });
    write_results(r, b, at[0], s0, s1, n0, n1, all->slot(0));
  });
}

void fill_with(const View& out, double value) {
  const IterPlan plan = make_plan({&out, 1}, {});
  const Mover mover = make_mover(DType::F64, out.dtype);
  for_each_outer(plan, 1, [&](char* const* at) {
    mover.strided(at[0], plan.stride(0, 0), reinterpret_cast<char*>(&value), 0, plan.size(0));
  });
}

// Whether the reduced dims are the inner ones in memory. With few terms an output tile is built term by term:
// the cost of starting a fold would dominate.
bool runs_along(const Reduction& r) {
  if (r.kept.numel == 1) return true;
  if (r.reduced.numel <= thresholds().few_terms) return false;
  const int64_t kept = std::abs(r.kept.stride(1, 0)), reduced = std::abs(r.reduced.stride(0, 0));
  return kept == 0 || reduced <= kept || r.kept.size(0) < thresholds().few_results;
}

/// Outputs are shared out, unless they are few and each of them is worth it alone.
void run_along(const Reduction& r) {
  const bool whole = lies_whole(r);
  const int64_t term = whole ? kCosts.folded : kCosts.strided;
  const auto run = [&r, whole](const IterPlan& kept) {
    whole ? reduce_whole(r, kept) : reduce_along(r, kept);
  };
  if (r.kept.numel < thresholds().shared_out && cost::in_parts(r.reduced.numel, term)) return run(r.kept);
  for_each_part(r.kept, cost::of(r.reduced.numel, term), of_lines(), run);
}

/// Few blocks of outputs are cut along their terms, if each of them is worth it alone, others shared out
/// whole: so each thread reads rows in the pieces in which it reads them where nothing is cut. One thread
/// cuts nothing: see NOTE: [pairs of tiles] for why the bits are the same.
void run_across(const Reduction& r) {
  const int64_t column = cost::of(r.reduced.numel, kCosts.folded);
  if (!cost::in_parts(r.kept.numel, column)) [[likely]]
    return reduce_across(r, r.kept);
  const BlockShape shape = across_block(r, r.kept);
  const int64_t block = shape.n0 * shape.n1;
  const bool few = r.kept.numel < thresholds().few_results * block;
  if (few && r.in_groups && threads() > 1 && cost::in_parts(block, column)) return reduce_terms(r, shape);
  for_each_part(r.kept, column, {shape.n0, shape.n1}, [&r](const IterPlan& kept) { reduce_across(r, kept); });
}

/// `extreme`: it is the first of the greatest or least elements, or the last NaN, however they are grouped.
void reduce(const Kernel& kernel, bool extreme, const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const DType exec = exec_dtype(call.compute);
  const FoldLines& lines = kernel.folds[size_t(isa().set)][size_t(exec)];
  if (is_internal(in.dtype) || !lines.fold) fail_dtype(kernel.name, call.compute);
  if (in.numel() == 0) return fill_with(out, kernel.over_nothing);
  const bool pairs = kernel.order == Order::Pairs, exact = extreme || !is_inexact(exec);
  const Reduction r(lines, pairs, pairs || exact, exec, out, in);
  if (runs_along(r)) run_along(r);
  else run_across(r);
}

template <class F> inline constexpr bool kIsExtreme =
    std::is_same_v<F, scalar::Of<scalar::Maximum>> || std::is_same_v<F, scalar::Of<scalar::Minimum>>;

template <size_t... kRow> std::vector<Kernel> fold_kernels(std::index_sequence<kRow...>) {
  std::vector<Kernel> all(sizeof...(kRow));
  const auto add = [&all]<size_t kAt>(std::integral_constant<size_t, kAt>) {
    constexpr auto kSays = std::get<kAt>(scalar::kFolds);
    Kernel& k = all[kAt];
    k.name = kSays.name, k.takes = kSays.takes, k.order = kSays.order, k.over_nothing = kSays.over_nothing;
    k.folds = folds_of(kAt);
    if (kSays.order == Order::Pairs) k.threshold_name = "sum";
    k.cpu = [](const KernelCall& call) {
      static const Kernel& mine = all_kernels()[scalar::kPointwiseRows + kAt];
      reduce(mine, kIsExtreme<scalar::FoldOf<kAt>>, call);
    };
  };
  (add(std::integral_constant<size_t, kRow>{}), ...);
  return all;
}

}  // namespace

std::vector<Kernel> cpu::fold_kernels() {
  return kernels::fold_kernels(std::make_index_sequence<scalar::kFoldRows>{});
}

}  // namespace lamella::kernels
