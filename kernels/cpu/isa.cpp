// Choosing the instruction set, and the table of bodies per (op, dtype), both once.
#include "lamella/kernels/cpu/isa.h"

#include <array>
#include <cstdlib>
#include <string_view>

#include "lamella/core/thresholds.h"

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
  if (wish && std::string_view(wish) == "tiny") detail::thresholds_of_process = kLoweredThresholds;
  return &kTables[best];
}
#undef LAMELLA_ISA_TABLE

const Isa& chosen() {
  static const Isa* const isa = choose();
  return *isa;
}

// Elementary functions come from libraries of vector functions, which differ by the set and in roundings.
bool is_elementary(Op op) { return (op >= Op::exp && op <= Op::tanh) || op == Op::pow; }

LineFn find_tiny_line(Op op, DType dtype) {
  return is_elementary(op) ? chosen().line(op, dtype) : tiny::find_line(op, dtype);
}

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

LineFn look_up(const Isa& isa, bool lowered, Op op, DType dtype) {
  if (op == Op::where) dtype = bits_of(dtype);
  if (is_internal(dtype)) return nullptr;
  if (LineFn line = isa.line(op, dtype)) return line;
  if (lowered)
    return is_complex(dtype) ? tiny::find_complex_line(op, dtype) : tiny::find_small_line(op, dtype);
  return is_complex(dtype) ? scalar::find_complex_line(op, dtype) : scalar::find_small_line(op, dtype);
}

using LineTable = std::array<std::array<LineFn, kDTypeCount>, size_t(Op::kCount)>;

struct Bodies {
  Isa isa;
  bool lowered;
  LineTable lines;

  Bodies(const Isa& of, bool low) : isa(of), lowered(low) {
    for (size_t op = 0; op < lines.size(); ++op) {
      for (int d = 0; d < kDTypeCount; ++d) lines[op][size_t(d)] = look_up(isa, low, Op(op), DType(d));
    }
  }
};

const Bodies& usual_bodies() {
  static const Bodies bodies(chosen(), false);
  return bodies;
}

[[gnu::cold, gnu::noinline]] const Bodies& tiny_bodies() {
  static const Bodies bodies(
      {"tiny", find_tiny_line, chosen().cast, tiny::find_fold, tiny::find_softmax, chosen().gemm}, true);
  return bodies;
}

// Asks for the usual ones first: they read the environment. Whoever means them pays no more than a look at
// the thresholds.
const Bodies& bodies() {
  const Bodies& usual = usual_bodies();
  if (thresholds().lowered) [[unlikely]]
    return tiny_bodies();
  return usual;
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
    return usual_bodies().lines[size_t(op)][size_t(compute)];
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace

const Isa& isa() { return bodies().isa; }

const char* cpu_isa() { return isa().name; }

LineFn find_body(Op op, DType dtype) { return bodies().lines[size_t(op)][size_t(dtype)]; }

FoldFn find_fold_body(Op op, DType dtype) {
  const Bodies& all = bodies();
  if (FoldFn fold = all.isa.fold(op, dtype)) return fold;
  return all.lowered ? tiny::find_other_fold(op, dtype) : scalar::find_other_fold(op, dtype);
}

LineFn cpu_line(const Kernel& kernel, DType compute) {
  static const KernelMap map;
  const LineFn* lines = map.lines(&kernel);
  return lines && !thresholds().lowered ? lines[int(compute)] : nullptr;
}

}  // namespace lamella::kernels
