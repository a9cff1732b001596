// sum, prod, amax, amin: along the reduced dims when those are the close ones, tile by tile across them
// otherwise.
#include <cstring>

#include "lamella/kernels/cpu/along_dim.h"
#include "lamella/kernels/cpu/cascade.h"

namespace lamella::kernels {
namespace {

struct Reduction {
  const char* name;
  Op op;
  LineFn line;
  FoldFn fold;
  DType exec;
  IterPlan kept;     // operands: out, in
  IterPlan reduced;  // operand: in
  TileReader reader;
  TileWriter writer;
};

// One output at a time; `fold` runs along the reduced dims.
void reduce_along(Reduction& r) {
  const bool whole = r.reduced.rank <= 1 && r.reader.direct(r.reduced.stride(0, 0));
  const BlockShape shape = choose_block(r.reduced);
  Cascade cascade(r.line, kMaxItem, 1);
  for_each_outer(r.kept, 0, [&](char* const* at) {
    if (whole) {
      alignas(16) char result[kMaxItem];
      r.fold(result, at[1], r.reduced.numel);
      return r.writer.write(at[0], 0, 0, 1, 1, result);
    }
    cascade.reset(1);
    r.reduced.data[0] = at[1];
    for_each_block(r.reduced, shape, [&](char* const* block, int64_t n0, int64_t n1) {
      const char* run = r.reader.read(block[0], r.reduced.stride(0, 0), r.reduced.stride(0, 1), n0, n1);
      r.fold(cascade.slot(cascade.depth()), run, n0 * n1);
      cascade.push();
    });
    cascade.finish();
    r.writer.write(at[0], 0, 0, 1, 1, cascade.slot(0));
  });
}

// A tile of outputs at a time; each reduced index adds one tile of inputs.
void reduce_across(Reduction& r) {
  const int64_t item = itemsize(r.exec);
  const int64_t slot_bytes = kTile * item;
  const int64_t run = r.op == Op::add && is_inexact(r.exec) ? thresholds().terms_in_a_row : r.reduced.numel;
  Cascade cascade(r.line, slot_bytes, 0);
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
        std::memcpy(acc, x, size_t(n * item));
      } else {
        const void* ins[] = {acc, x};
        r.line(acc, ins, n);
      }
      if (++in_run == run) cascade.push(), in_run = 0;
    });
    if (in_run != 0) cascade.push();
    cascade.finish();
    r.writer.write(at[0], r.kept.stride(0, 0), r.kept.stride(0, 1), n0, n1, cascade.slot(0));
  });
}

void fill_identity(const View& out, bool one) {
  uint8_t value = one;
  const IterPlan plan = make_plan({&out, 1}, {});
  const Mover mover = make_mover(DType::U8, out.dtype);
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

void reduce(const char* kernel, Op op, const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  const DType exec = exec_dtype(call.compute);
  if (is_internal(in.dtype) || is_internal(exec)) fail_dtype(kernel, call.compute);
  Reduction r;
  r.op = op, r.exec = exec;
  r.line = find_body(op, exec), r.fold = find_fold_body(op, exec);
  if (!r.line || !r.fold) fail_dtype(kernel, call.compute);
  if (in.numel() == 0) return fill_identity(out, op == Op::mul);
  const auto is_reduced = [&](int d) { return out.sizes[d] != in.sizes[d]; };
  r.kept = plan_where(std::initializer_list<View>{out, in}, is_reduced);
  r.reduced = plan_where(std::initializer_list<View>{in}, [&](int d) { return !is_reduced(d); });
  r.reader.open(in.dtype, exec);
  r.writer.open(exec, out.dtype);
  runs_along(r) ? reduce_along(r) : reduce_across(r);
}

}  // namespace

namespace cpu {
void sum(const KernelCall& call) { reduce("sum", Op::add, call); }
void prod(const KernelCall& call) { reduce("prod", Op::mul, call); }
void amax(const KernelCall& call) { reduce("amax", Op::maximum, call); }
void amin(const KernelCall& call) { reduce("amin", Op::minimum, call); }
}  // namespace cpu

}  // namespace lamella::kernels
