// The pointwise runner and the kernels that are nothing but it.
#include "lamella/kernels/cpu/pointwise.h"

#include <cstring>

namespace lamella::kernels {
namespace {

bool gives_bool(Op op) {
  return (op >= Op::eq && op <= Op::logical_or) || op == Op::logical_not || op == Op::isnan;
}

DType real_part(DType d) { return d == DType::C64 ? DType::F32 : d == DType::C128 ? DType::F64 : d; }

struct Run {
  Execution body;
  TileReader readers[3];
  TileWriter writer;
};

// Everything gapless, of the body's dtypes and in the same order: no plan needed.
bool is_one_line(const KernelCall& call, const Execution& body, Op op) {
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
    const bool condition = op == Op::where && k == 0;
    if (call.ins[k].dtype != (condition ? DType::Bool : body.in)) return false;
  }
  return true;
}

void run_line(const KernelCall& call, const Execution& body, int64_t n) {
  const void* ins[3];
  for (size_t k = 0; k < call.ins.size(); ++k) ins[k] = call.ins[k].data;
  body.line(call.outs[0].data, ins, n);
}

// A square of a transpose: operands that lie in rows are used there, row by row; only those that run across
// are gathered.
void run_rows(Run& run, const IterPlan& plan, char* const* at, int64_t n0, int64_t n1) {
  const int ins = plan.operands - 1;
  const char* base[3];
  int64_t pitch[3];
  for (int k = 0; k < ins; ++k) {
    const int64_t s0 = plan.stride(k + 1, 0), s1 = plan.stride(k + 1, 1);
    const bool direct = run.readers[k].direct(s0);
    base[k] = direct ? at[k + 1] : run.readers[k].read(at[k + 1], s0, s1, n0, n1);
    pitch[k] = direct ? s1 : n0 * run.readers[k].item();
  }
  const int64_t s0 = plan.stride(0, 0), s1 = plan.stride(0, 1);
  const bool in_place = run.writer.direct(s0, 0, n0, 1);
  char* const target = in_place ? at[0] : run.writer.buffer();
  const int64_t target_pitch = in_place ? s1 : n0 * run.writer.item();
  for (int64_t j = 0; j < n1; ++j) {
    const void* sources[3];
    for (int k = 0; k < ins; ++k) sources[k] = base[k] + j * pitch[k];
    run.body.line(target + j * target_pitch, sources, n0);
  }
  if (!in_place) run.writer.write(at[0], s0, s1, n0, n1, target);
}

void run_blocks(Run& run, const IterPlan& plan) {
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
    char* target = in_place ? at[0] : run.writer.buffer();
    run.body.line(target, sources, n0 * n1);
    if (!in_place) run.writer.write(at[0], s0, s1, n0, n1, target);
  });
}

// Before anything is written: an integer divisor of 0 is an error, not a trap.
void check_divisor(const View& divisor, DType compute) {
  const IterPlan plan = make_plan({&divisor, 1}, {});
  TileReader reader;
  reader.open(divisor.dtype, compute);
  const LineFn is_zero = find_body(Op::logical_not, compute);
  BlockShape shape = choose_block(plan);
  for_each_block(plan, shape, [&](char* const* at, int64_t n0, int64_t n1) {
    const void* source = reader.read(at[0], plan.stride(0, 0), plan.stride(0, 1), n0, n1);
    char zero[kTile];
    is_zero(zero, &source, n0 * n1);
    LAMELLA_CHECK(!std::memchr(zero, 1, size_t(n0 * n1)), Value,
                  "b holds 0 and the division is in {}; expected b != 0", name(compute));
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

}  // namespace

std::string_view op_name(Op op) {
  static constexpr std::string_view kNames[] = {
#define LAMELLA_OP_TEXT(name) #name,
      LAMELLA_POINTWISE_KERNELS(LAMELLA_OP_TEXT) "fold_in"
#undef LAMELLA_OP_TEXT
  };
  return kNames[int(op)];
}

void fail_dtype(std::string_view kernel, DType dtype) {
  fail(ErrorCode::DType, "no kernel {} for {}", kernel, name(dtype));
}

Execution find_execution(Op op, DType compute, DType exec) {
  if (op == Op::make_complex) {
    const bool wide = exec == DType::F64 || exec == DType::C128;
    if (!wide && exec != DType::F32 && exec != DType::C64) fail_dtype(op_name(op), compute);
    const DType out = wide ? DType::C128 : DType::C64;
    return {find_body(op, out), wide ? DType::F64 : DType::F32, out};
  }
  const LineFn line = find_body(op, exec);
  if (!line) fail_dtype(op_name(op), compute);
  return {line, exec, gives_bool(op) ? DType::Bool : op == Op::abs ? real_part(exec) : exec};
}

void run_pointwise(Op op, const KernelCall& call) {
  const View& out = call.outs[0];
  if (op == Op::copy && (call.compute == out.dtype || call.compute == call.ins[0].dtype))
    return run_copy(call);
  // `where` computes nothing: f16 and bf16 pass as they are unless there is another dtype to convert.
  const bool moves =
      op == Op::where && call.ins[1].dtype == call.compute && call.ins[2].dtype == call.compute;
  const Execution body = find_execution(op, call.compute, moves ? call.compute : exec_dtype(call.compute));
  if (is_integer(call.compute) && (op == Op::div_floor || op == Op::div_trunc))
    check_divisor(call.ins[1], call.compute);
  if (is_one_line(call, body, op)) return run_line(call, body, out.numel());
  const IterPlan plan = make_plan(call.outs, call.ins);
  Run run;
  run.body = body;
  for (size_t k = 0; k < call.ins.size(); ++k) {
    const bool condition = op == Op::where && k == 0;
    run.readers[k].open(call.ins[k].dtype, condition ? DType::Bool : body.in);
  }
  run.writer.open(body.out, out.dtype);
  run_blocks(run, plan);
}

namespace cpu {
#define LAMELLA_DEFINE_POINTWISE(name) \
  void name(const KernelCall& call) { run_pointwise(Op::name, call); }
LAMELLA_POINTWISE_KERNELS(LAMELLA_DEFINE_POINTWISE)
LAMELLA_DEFINE_POINTWISE(fold_in)
#undef LAMELLA_DEFINE_POINTWISE
}  // namespace cpu

}  // namespace lamella::kernels
