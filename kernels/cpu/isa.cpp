// Choosing the instruction set, and the table of bodies per (op, dtype), both once.
#include "lamella/kernels/cpu/isa.h"

#include <array>
#include <cstdlib>
#include <string_view>

namespace lamella::kernels {
namespace {

#define LAMELLA_ISA_TABLE(isa) \
  Isa { #isa, isa::find_line, isa::find_cast, isa::find_fold, isa::find_softmax, isa::find_gemm }

const Isa* choose() {
  static const Isa kTables[] = {LAMELLA_ISA_TABLE(scalar), LAMELLA_ISA_TABLE(avx2),
                                LAMELLA_ISA_TABLE(avx512)};
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

// Kernel addresses to ops. Kernels lie side by side, so their addresses spread well over the slots.
class KernelMap {
 public:
  KernelMap() {
#define LAMELLA_ADD_OP(name) add(&kernels::name, Op::name);
    LAMELLA_POINTWISE_KERNELS(LAMELLA_ADD_OP) LAMELLA_ADD_OP(fold_in)
#undef LAMELLA_ADD_OP
  }
  const LineFn* lines(const Kernel* kernel) const {
    for (size_t i = slot_of(kernel);; ++i) {
      const Slot& slot = slots_[i % kSlots];
      if (slot.kernel == kernel) return slot.lines.data();
      if (!slot.kernel) return nullptr;
    }
  }

 private:
  static constexpr size_t kSlots = 256;
  struct Slot {
    const Kernel* kernel = nullptr;
    std::array<LineFn, kDTypeCount> lines{};
  };

  static size_t slot_of(const Kernel* kernel) { return reinterpret_cast<uintptr_t>(kernel) / 8; }
  void add(const Kernel* kernel, Op op) {
    size_t i = slot_of(kernel);
    while (slots_[i % kSlots].kernel) ++i;
    Slot& slot = slots_[i % kSlots];
    slot.kernel = kernel;
    for (int d = 0; d < kDTypeCount; ++d) slot.lines[size_t(d)] = line_for(op, DType(d));
  }
  // Null where a bare line would not do: an integer divisor of 0 has to be found before anything is written,
  // and operands of two dtypes are not "every operand of compute".
  static LineFn line_for(Op op, DType compute) {
    if ((op == Op::div_floor || op == Op::div_trunc) && is_integer(compute)) return nullptr;
    if (op == Op::make_complex) return nullptr;
    if (is_complex(compute) && op == Op::abs) return nullptr;
    return find_body(op, compute);
  }

  std::array<Slot, kSlots> slots_;
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
  static const KernelMap map;
  const LineFn* lines = map.lines(&kernel);
  return lines ? lines[int(compute)] : nullptr;
}

}  // namespace lamella::kernels
