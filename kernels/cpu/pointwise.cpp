// The pointwise runner and the kernels that are nothing but it.
#include "lamella/kernels/cpu/pointwise.h"

#include <array>
#include <cstring>

#include "lamella/kernels/cpu/across.h"
#include "lamella/kernels/cpu/constant_lines.h"
#include "lamella/kernels/cpu/parts.h"
#include "lamella/kernels/cpu/stream.h"

namespace lamella::kernels {
namespace {

DType real_part(DType d) { return d == DType::C64 ? DType::F32 : d == DType::C128 ? DType::F64 : d; }

/// How a kernel runs for a compute dtype: its line, what the line reads and what it writes, and what an
/// element costs.
struct Execution {
  LineFn line;
  DType in, out;
  int64_t each = kCosts.line;
};

struct Run {
  Execution body;
  TileReader readers[3];
  TileWriter writer;
};

// Everything gapless, of the body's dtypes and in the same order: no plan needed.
bool is_one_line(const KernelCall& call, const Execution& body, bool chooses) {
  const View& out = call.outs[0];
  if (out.dtype != body.out) return false;
  int64_t expected = 1;
  for (int d = out.rank - 1; d >= 0; --d) {
    if (out.sizes[d] == 1) continue;
    if (out.strides[d] != expected) return false;
    for (const View& in : call.ins) {
      if (in.strides[d] != expected) return false;
    }
    expected *= out.sizes[d];
  }
  for (size_t k = 0; k < call.ins.size(); ++k) {
    if (call.ins[k].dtype != (chooses && k == 0 ? DType::Bool : body.in)) return false;
  }
  return true;
}

int64_t bytes_of_call(const KernelCall& call, int64_t n) {
  const View& out = call.outs[0];
  int64_t total = itemsize(out.dtype);
  for (const View& in : call.ins) {
    if (in.data == out.data) return 0;
    total += itemsize(in.dtype);
  }
  return total * n;
}

/// Elements `from` to `to` of operands without gaps, into `out`.
void run_between(const KernelCall& call, const Execution& body, char* out, int64_t from, int64_t to) {
  const void* ins[3];
  for (size_t k = 0; k < call.ins.size(); ++k)
    ins[k] = call.ins[k].as<char>() + from * itemsize(call.ins[k].dtype);
  body.line(out, ins, to - from);
}

void run_line(const Kernel& kernel, const KernelCall& call, Execution body, int64_t n) {
  const bool past = n > thresholds().tile && passes_caches(bytes_of_call(call, n));
  const LineFn stream = past ? stream_lines(kernel, body.in).line : nullptr;
  if (stream) body.line = stream;
  for_each_range(n, body.each, [&](int64_t from, int64_t to) {
    run_between(call, body, call.outs[0].as<char>() + from * itemsize(body.out), from, to);
    if (stream) end_streams();  // of this thread
  });
}

/// A row of what is read or written here: a later one is asked for, as no processor guesses it.
struct Row {
  char* at;
  int64_t pitch, ahead;  ///< bytes from row to row, and to one that is needed later
  int64_t bytes;         ///< of such a row; 0: a buffer's
  char* row(int64_t j, bool writes) const {
    char* const here = at + j * pitch;
    for (int64_t line = 0; line < bytes; line += 64)
      writes ? __builtin_prefetch(here + ahead + line, 1) : __builtin_prefetch(here + ahead + line);
    return here;
  }
};

// A square of a transpose: operands that lie in rows are used there, row by row; only those that run across
// are gathered. Stores do not pass the caches: rows are short, and each would be sent for itself.
void run_rows(Run& run, const IterPlan& plan, char* const* at, int64_t n0, int64_t n1) {
  const int ins = plan.operands - 1;
  Row sources_at[3];
  for (int k = 0; k < ins; ++k) {
    const int64_t s0 = plan.stride(k + 1, 0), s1 = plan.stride(k + 1, 1), item = run.readers[k].item();
    const bool direct = run.readers[k].direct(s0);
    const char* const base = direct ? at[k + 1] : run.readers[k].read(at[k + 1], s0, s1, n0, n1);
    sources_at[k] = {const_cast<char*>(base), direct ? s1 : n0 * item, n0 * item, direct ? n0 * item : 0};
  }
  const int64_t s0 = plan.stride(0, 0), s1 = plan.stride(0, 1), item = run.writer.item();
  const bool in_place = run.writer.direct(s0, 0, n0, 1);
  char* const buffer = run.writer.buffer();
  const Row target = in_place ? Row{at[0], s1, n0 * item, n0 * item} : Row{buffer, n0 * item, 0, 0};
  for (int64_t j = 0; j < n1; ++j) {
    const void* sources[3];
    for (int k = 0; k < ins; ++k) sources[k] = sources_at[k].row(j, false);
    run.body.line(target.row(j, true), sources, n0);
  }
  if (!in_place) run.writer.write(at[0], s0, s1, n0, n1, buffer);
}

/// Whether operands lie in rows of the result's dtype, or across it: see NOTE: [across].
bool goes_across(const Run& run, const IterPlan& plan) {
  bool any = false;
  if (plan.rank < 2 || run.writer.converts() || plan.stride(0, 0) != run.writer.item()) return false;
  for (int k = 1; k < plan.operands; ++k) {
    const TileReader& in = run.readers[k - 1];
    const bool across = !in.converts() && runs_across(plan, k, in.item());
    if (!across && !in.direct(plan.stride(k, 0))) return false;
    any |= across;
  }
  return any;
}

void run_across(const Run& run, const IterPlan& plan, LineFn stream, std::vector<AcrossReader>& readers) {
  const int ins = plan.operands - 1;
  for_each_across(plan, [&](const AcrossBlock& b) {
    Row sources_at[3];
    for (int k = 0; k < ins; ++k) {
      const int64_t s0 = plan.stride(k + 1, 0), s1 = plan.stride(k + 1, 1);
      if (run.readers[k].direct(s0)) sources_at[k] = {b.at[k + 1], s1, 2 * s1, b.n0 * s0};
      else {
        char* const rows = const_cast<char*>(readers[size_t(k)].read(plan, k + 1, b));
        sources_at[k] = {rows, readers[size_t(k)].pitch(), 0, 0};
      }
    }
    for (int64_t j = 0; j < b.n1; ++j) {
      const void* sources[3];
      for (int k = 0; k < ins; ++k) sources[k] = sources_at[k].row(j, false);
      stream(b.at[0] + j * plan.stride(0, 1), sources, b.n0);
    }
  });
  end_streams();  // of this thread
}

/// False: not by operands that run across.
template <class Open> bool run_all_across(Open open, const IterPlan& all, int64_t each, LineFn stream) {
  Run run;
  open(run);
  if (!goes_across(run, all)) return false;
  const auto make = [&] {
    std::vector<AcrossReader> readers;
    for (int k = 1; k < all.operands; ++k) readers.emplace_back(all.itemsize[k]);
    return readers;
  };
  for_each_part_in(all, each, of_across(), make,
                   [&](const IterPlan& plan, std::vector<AcrossReader>& readers) {
                     run_across(run, plan, stream, readers);
                   });
  return true;
}

/// `stream`: where results of the whole call, of which the plan may be a part, pass the caches, the line that
/// stores what need not be moved once more.
void run_blocks(Run& run, const IterPlan& plan, LineFn stream) {
  const int ins = plan.operands - 1;
  BlockShape shape = choose_block(plan);
  bool direct = plan.rank <= 1 && !run.writer.converts() && plan.packed(0);
  for (int k = 0; k < ins; ++k) direct = direct && run.readers[k].direct(plan.stride(k + 1, 0));
  if (direct) shape = {plan.size(0), 1};
  for_each_block(plan, shape, [&](char* const* at, int64_t n0, int64_t n1) {
    if (n1 > 1 && n0 >= thresholds().square) return run_rows(run, plan, at, n0, n1);
    const void* sources[3];
    for (int k = 0; k < ins; ++k) {
      sources[k] = run.readers[k].read(at[k + 1], plan.stride(k + 1, 0), plan.stride(k + 1, 1), n0, n1);
    }
    const int64_t s0 = plan.stride(0, 0), s1 = plan.stride(0, 1);
    const bool in_place = run.writer.direct(s0, s1, n0, n1);
    char* const target = in_place ? at[0] : run.writer.buffer();
    (in_place && stream ? stream : run.body.line)(target, sources, n0 * n1);
    if (!in_place) run.writer.write(at[0], s0, s1, n0, n1, target);
  });
  if (stream) end_streams();  // of this thread
}

// Before anything is written: an integer divisor of 0 is an error, not a trap.
void check_divisor(const View& divisor, DType compute) {
  const LineFn is_zero = line_of<scalar::LogicalNot>(compute);
  for_each_part(make_plan({&divisor, 1}, {}), kCosts.strided, of_elements(), [&](const IterPlan& plan) {
    TileReader reader;
    reader.open(divisor.dtype, compute);
    for_each_block(plan, choose_block(plan), [&](char* const* at, int64_t n0, int64_t n1) {
      const void* source = reader.read(at[0], plan.stride(0, 0), plan.stride(0, 1), n0, n1);
      char zero[kTile];
      is_zero(zero, &source, n0 * n1);
      LAMELLA_CHECK(!std::memchr(zero, 1, size_t(n0 * n1)), Value,
                    "b holds 0 and the division is in {}; expected b != 0", name(compute));
    });
  });
}

// A copy moves bits when it can: only two different conversions in a row need the runner.
void run_copy(const KernelCall& call) {
  const View &out = call.outs[0], &in = call.ins[0];
  if (is_internal(in.dtype) || is_internal(out.dtype))
    fail_dtype("copy", is_internal(in.dtype) ? in.dtype : out.dtype);
  const IterPlan plan = make_plan(call.outs, call.ins);
  const Mover mover = make_mover(in.dtype, out.dtype);
  move_plan(mover, plan);
}

/// Fails with DType when the kernel has no text for `compute`. `exec` is compute, or f32 for f16 and bf16.
Execution find_line(const Kernel& kernel, DType compute, DType exec) {
  const DType in = kernel.gives == Gives::Complex ? real_part(exec) : exec;
  const LineFn line = line_of(kernel, in);
  if (!line) fail_dtype(kernel.name, compute);
  switch (kernel.gives) {
    case Gives::Same: return {line, in, in};
    case Gives::Bool: return {line, in, DType::Bool};
    case Gives::Parts: return {line, in, real_part(in)};
    case Gives::Complex: break;
  }
  return {line, in, in == DType::F64 ? DType::C128 : DType::C64};
}

Execution find_execution(const Kernel& kernel, DType compute, DType exec) {
  Execution body = find_line(kernel, compute, exec);
  if (kernel.takes == Takes::Inexact && is_complex(body.in)) body.each = kCosts.scalar_math;
  return body;
}

void run_pointwise(const Kernel& kernel, const KernelCall& call) {
  const View& out = call.outs[0];
  if (kernel.also == Also::MovesBits && (call.compute == out.dtype || call.compute == call.ins[0].dtype))
    return run_copy(call);
  // Where nothing is computed f16 and bf16 pass as they are unless there is another dtype to convert.
  const bool chooses = kernel.takes == Takes::Bits;
  const bool moves = chooses && call.ins[1].dtype == call.compute && call.ins[2].dtype == call.compute;
  const Execution body =
      find_execution(kernel, call.compute, moves ? call.compute : exec_dtype(call.compute));
  if (kernel.also == Also::ChecksDivisor && is_integer(call.compute))
    check_divisor(call.ins[1], call.compute);
  if (is_one_line(call, body, chooses)) return run_line(kernel, call, body, out.numel());
  const int64_t each = std::max(body.each, kCosts.strided);
  const IterPlan all = make_plan(call.outs, call.ins);
  const bool streams = all.numel > thresholds().tile && passes_caches(bytes_of_plan(all));
  const LineFn stream = streams ? stream_lines(kernel, body.in).line : nullptr;
  const auto open = [&](Run& run) {
    run.body = body;
    for (size_t k = 0; k < call.ins.size(); ++k)
      run.readers[k].open(call.ins[k].dtype, chooses && k == 0 ? DType::Bool : body.in);
    run.writer.open(body.out, out.dtype);
  };
  if (stream && run_all_across(open, all, each, stream)) return;
  for_each_part(all, each, of_elements(), [&](const IterPlan& plan) {
    if (run_beside_number(kernel, call, body.in, plan, streams)) return;
    Run run;
    open(run);
    run_blocks(run, plan, stream);
  });
}

}  // namespace

void fail_dtype(std::string_view kernel, DType dtype) {
  fail(ErrorCode::DType, "no kernel {} for {}", kernel, name(dtype));
}

namespace {

constexpr size_t kDTypes = size_t(DType::F128);
using Movers = std::array<std::array<Mover, kDTypes>, kDTypes>;
[[gnu::noinline, gnu::cold]] Movers make_movers() {
  Movers all;
  for (size_t f = 0; f < kDTypes; ++f)
    for (size_t t = 0; t < kDTypes; ++t) all[f][t] = make_mover(DType(f), DType(t));
  return all;
}
/// Between any two dtypes of the CPU, in a table: to find a mover takes as long as to move a few elements.
const Mover& mover_of(DType from, DType to) {
  static const Movers kAll = make_movers();
  return kAll[size_t(from)][size_t(to)];
}

/// The bits at `from`, n times.
template <class Bits> void repeat(char* room, const char* from, int64_t n) {
  Bits bits;
  std::memcpy(&bits, from, sizeof(bits));
  for (int64_t i = 0; i < n; ++i) std::memcpy(room + i * sizeof(bits), &bits, sizeof(bits));
}
void repeat(char* room, const char* from, int64_t n, int64_t item) {
  switch (item) {
    case 1: return repeat<uint8_t>(room, from, n);
    case 2: return repeat<uint16_t>(room, from, n);
    case 4: return repeat<uint32_t>(room, from, n);
    case 8: return repeat<uint64_t>(room, from, n);
    default: return repeat<std::array<uint64_t, 2>>(room, from, n);
  }
}

/// The operand's n elements in `dtype`: where they lie, or in `room`, moved as TileReader moves them.
const void* read_few(const LineOperand& in, DType dtype, int64_t n, char* room) {
  if (in.dtype == dtype && !in.repeated) return in.data;
  const char* from = static_cast<const char*>(in.data);
  if (in.dtype != dtype) {
    const Mover& mover = mover_of(in.dtype, dtype);
    const int64_t moved = in.repeated ? 1 : n;
    if (mover.line) mover.line(room, from, moved);
    else mover.strided(room, mover.to_size, from, mover.from_size, moved);
    if (!in.repeated) return room;
    from = room;
  }
  repeat(room, from, n, itemsize(dtype));
  return room;
}

}  // namespace

void run_buffered(LineFn line, void* out, std::span<const LineOperand, 2> ins, DType dtype, int64_t n) {
  alignas(64) char rooms[2][kTile * kMaxItem];
  const void* const sources[] = {read_few(ins[0], dtype, n, rooms[0]), read_few(ins[1], dtype, n, rooms[1])};
  line(out, sources, n);
}

LineFn Kernel::straight(DType compute) const {
  const bool two_dtypes = gives == Gives::Complex || (gives == Gives::Parts && is_complex(compute));
  const bool checked = also == Also::ChecksDivisor && is_integer(compute);
  return two_dtypes || checked || lamella::thresholds().lowered ? nullptr : line_of(*this, compute);
}

namespace cpu {
namespace {
template <size_t... kRow> std::vector<Kernel> pointwise_kernels(std::index_sequence<kRow...>) {
  std::vector<Kernel> all(sizeof...(kRow));
  const auto add = [&all]<size_t kAt>(std::integral_constant<size_t, kAt>) {
    constexpr auto kSays = std::get<kAt>(scalar::kPointwise);
    Kernel& k = all[kAt];
    k.name = kSays.name, k.takes = kSays.takes, k.gives = kSays.gives, k.also = kSays.also;
    k.lines = lines_of(kAt, kSays.takes);
    k.cpu = [](const KernelCall& call) {
      static const Kernel& mine = all_kernels()[kAt];
      run_pointwise(mine, call);
    };
  };
  (add(std::integral_constant<size_t, kRow>{}), ...);
  return all;
}
}  // namespace

std::vector<Kernel> pointwise_kernels() {
  return pointwise_kernels(std::make_index_sequence<scalar::kPointwiseRows>{});
}
}  // namespace cpu

}  // namespace lamella::kernels
