// Folds: along the reduced dims when those are the close ones, tile by tile across them otherwise.
#include <cstring>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/cascade.h"

namespace lamella::kernels {
namespace {

bool is_reduced(const View& out, const View& in, int d) { return out.sizes[d] != in.sizes[d]; }

/// The plans are made in place: each is three kilobytes.
struct Reduction {
  Reduction(const FoldLines& lines, bool pairs, DType type, const View& out, const View& in)
      : of(lines),
        in_pairs(pairs),
        exec(type),
        kept(plan_where(std::initializer_list<View>{out, in}, [&](int d) { return is_reduced(out, in, d); })),
        reduced(plan_where(std::initializer_list<View>{in}, [&](int d) { return !is_reduced(out, in, d); })) {
    reader.open(in.dtype, exec);
    writer.open(exec, out.dtype);
  }
  FoldLines of;
  bool in_pairs;  ///< few terms in a row
  DType exec;
  IterPlan kept;     // operands: out, in
  IterPlan reduced;  // operand: in
  TileReader reader;
  TileWriter writer;
};

void write_results(Reduction& r, char* to, int64_t s0, int64_t s1, int64_t n0, int64_t n1, char* states) {
  const void* ins[] = {states};
  if (r.of.result) r.of.result(states = r.writer.buffer(), ins, n0 * n1);
  r.writer.write(to, s0, s1, n0, n1, states);
}

// One output at a time; `fold` runs along the reduced dims.
void reduce_along(Reduction& r) {
  const bool whole = r.reduced.rank <= 1 && r.reader.direct(r.reduced.stride(0, 0));
  const BlockShape shape = choose_block(r.reduced);
  Cascade cascade(r.of.merge, kMaxFoldState, 1);
  for_each_outer(r.kept, 0, [&](char* const* at) {
    if (whole) {
      alignas(16) char state[kMaxFoldState];
      r.of.fold(state, at[1], r.reduced.numel);
      return write_results(r, at[0], 0, 0, 1, 1, state);
    }
    cascade.reset(1);
    r.reduced.data[0] = at[1];
    for_each_block(r.reduced, shape, [&](char* const* block, int64_t n0, int64_t n1) {
      const char* run = r.reader.read(block[0], r.reduced.stride(0, 0), r.reduced.stride(0, 1), n0, n1);
      r.of.fold(cascade.slot(cascade.depth()), run, n0 * n1);
      cascade.push();
    });
    cascade.finish();
    write_results(r, at[0], 0, 0, 1, 1, cascade.slot(0));
  });
}

// A tile of outputs at a time; each reduced index adds one tile of inputs.
void reduce_across(Reduction& r) {
  const int64_t slot_bytes = kTile * r.of.state_size;
  const int64_t run = r.in_pairs && is_inexact(r.exec) ? thresholds().terms_in_a_row : r.reduced.numel;
  Cascade cascade(r.of.merge, slot_bytes, 0);
  for_each_block(r.kept, choose_block(r.kept), [&](char* const* at, int64_t n0, int64_t n1) {
    const int64_t n = n0 * n1, s0 = r.kept.stride(1, 0), s1 = r.kept.stride(1, 1);
    cascade.reset(n);
    int64_t in_run = 0;
    char* acc = nullptr;
    r.reduced.data[0] = at[1];
    for_each_outer(r.reduced, 0, [&](char* const* term) {
      const char* x = r.reader.read(term[0], s0, s1, n0, n1);
      if (in_run == 0) {
        acc = cascade.slot(cascade.depth());
        const void* ins[] = {x};
        if (r.of.first) r.of.first(acc, ins, n);
        else std::memcpy(acc, x, size_t(n * r.of.state_size));
      } else {
        const void* ins[] = {acc, x};
        r.of.step(acc, ins, n);
      }
      if (++in_run == run) cascade.push(), in_run = 0;
    });
    if (in_run != 0) cascade.push();
    cascade.finish();
    write_results(r, at[0], r.kept.stride(0, 0), r.kept.stride(0, 1), n0, n1, cascade.slot(0));
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

void reduce(const Kernel& kernel, const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const DType exec = exec_dtype(call.compute);
  const FoldLines& lines = kernel.folds[size_t(isa().set)][size_t(exec)];
  if (is_internal(in.dtype) || !lines.fold) fail_dtype(kernel.name, call.compute);
  if (in.numel() == 0) return fill_with(out, kernel.over_nothing);
  Reduction r(lines, kernel.order == Order::Pairs, exec, out, in);
  runs_along(r) ? reduce_along(r) : reduce_across(r);
}

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
      reduce(mine, call);
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
