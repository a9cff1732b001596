// Choosing the instruction set, and the table of bodies per (op, dtype), both once.
#include "lamella/kernels/cpu/isa.h"

#include <array>
#include <cstdlib>
#include <string_view>

namespace lamella::kernels {
namespace {

#define LAMELLA_ISA_TABLE(isa, stream) \
  Isa{#isa, isa::find_line, isa::find_cast, isa::find_fold, isa::find_softmax, isa::find_gemm, stream}

const Isa* choose() {
  static const Isa kTables[] = {LAMELLA_ISA_TABLE(scalar, nullptr), LAMELLA_ISA_TABLE(avx2, avx2::stream),
                                LAMELLA_ISA_TABLE(avx512, avx512::stream)};
  __builtin_cpu_init();
  int best = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = 1;
  if (best == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    best = 2;
  }
  const char* wish = std::getenv("LAMELLA_ISA");
  for (int i = 0; wish && i < best; ++i) {
    if (std::string_view(wish) == kTables[i].name) best = i;
  }
  return &kTables[best];
}
#undef LAMELLA_ISA_TABLE

// `where` moves bits: its item size picks the type.
DType bits_of(DType dtype) {
  switch (itemsize(dtype)) {
    case 1: return DType::U8;
    case 2: return DType::U16;
    case 4: return DType::F32;
    case 8: return DType::F64;
    default: return DType::C128;
  }
}

LineFn look_up(Op op, DType dtype) {
  if (op == Op::where) dtype = bits_of(dtype);
  if (is_internal(dtype)) return nullptr;
  if (LineFn line = isa().line(op, dtype)) return line;
  return is_complex(dtype) ? scalar::find_complex_line(op, dtype) : scalar::find_small_line(op, dtype);
}

using LineTable = std::array<std::array<LineFn, kDTypeCount>, size_t(Op::kCount)>;

LineTable build_table() {
  LineTable table;
  for (size_t op = 0; op < table.size(); ++op) {
    for (int d = 0; d < kDTypeCount; ++d) table[op][d] = look_up(Op(op), DType(d));
  }
  return table;
}

constexpr struct {
  const Kernel* kernel;
  Op op;
} kOps[] = {
#define LAMELLA_OP_ENTRY(name) {&name, Op::name},
    LAMELLA_POINTWISE_KERNELS(LAMELLA_OP_ENTRY) LAMELLA_OP_ENTRY(fold_in)
#undef LAMELLA_OP_ENTRY
};

}  // namespace

const Isa& isa() {
  static const Isa* chosen = choose();
  return *chosen;
}

const char* cpu_isa() { return isa().name; }

LineFn find_body(Op op, DType dtype) {
  static const LineTable table = build_table();
  return table[size_t(op)][int(dtype)];
}

FoldFn find_fold_body(Op op, DType dtype) {
  if (FoldFn fold = isa().fold(op, dtype)) return fold;
  return scalar::find_other_fold(op, dtype);
}

LineFn cpu_line(const Kernel& kernel, DType compute) {
  for (const auto& entry : kOps) {
    if (entry.kernel != &kernel) continue;
    // An integer divisor of 0 has to be found before anything is written, which a bare line cannot do.
    if ((entry.op == Op::div_floor || entry.op == Op::div_trunc) && is_integer(compute)) return nullptr;
    return find_body(entry.op, compute);
  }
  return nullptr;
}

}  // namespace lamella::kernels
