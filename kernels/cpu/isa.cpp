// Choosing the instruction set, and what lines rows of bodies have for each.
#include "lamella/kernels/cpu/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "lamella/core/check.h"
#include "lamella/core/thresholds.h"
#include "lamella/kernels/cpu/isa_streams.h"

namespace lamella::kernels {
namespace {

#define LAMELLA_ISA_TABLE(isa, set)                                                                  \
  {                                                                                                  \
#isa, InstructionSet::set, isa::simd_lines, isa::simd_folds, isa::find_cast, isa::find_softmax,  \
        isa::find_argmax, isa::find_layer_norm, isa::find_uniform, isa::find_normal, isa::find_gemm, \
        isa::copy_past                                                                               \
  }
constexpr Isa kTables[] = {LAMELLA_ISA_TABLE(scalar, Scalar), LAMELLA_ISA_TABLE(avx2, Avx2),
                           LAMELLA_ISA_TABLE(avx512, Avx512)};
#undef LAMELLA_ISA_TABLE

/// Another word would run the widest set in silence, where one meant to see another.
int set_named(std::string_view wish) {
  const auto found = std::ranges::find(kTables, wish, &Isa::name);
  LAMELLA_CHECK(found != std::end(kTables), Usage,
                "cpu_isa: LAMELLA_ISA = \"{}\"; expected scalar, avx2, avx512 or tiny", wish);
  return int(found - std::begin(kTables));
}

const Isa* choose() {
  __builtin_cpu_init();
  int best = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = 1;
  if (best == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    best = 2;
  }
  const char* const given = std::getenv("LAMELLA_ISA");
  const std::string_view wish = given ? given : "";
  if (wish == "tiny") detail::thresholds_of_process = kLoweredThresholds;
  return &kTables[wish.empty() || wish == "tiny" ? best : std::min(best, set_named(wish))];
}

const Isa& chosen() {
  static const Isa* const isa = choose();
  return *isa;
}

const Isa& tiny_isa() {
  static const Isa isa = {"tiny",
                          InstructionSet::Tiny,
                          tiny::simd_lines,
                          tiny::simd_folds,
                          chosen().cast,
                          tiny::find_softmax,
                          tiny::find_argmax,
                          tiny::find_layer_norm,
                          tiny::find_uniform,
                          tiny::find_normal,
                          chosen().gemm,
                          chosen().copy_past};
  return isa;
}

// Moves pick their type by the item size.
DType bits_of(DType dtype) {
  switch (itemsize(dtype)) {
    case 1: return DType::U8;
    case 2: return DType::U16;
    case 4: return DType::F32;
    case 8: return DType::F64;
    default: return DType::C128;
  }
}

}  // namespace

// Asks for the chosen one first: it reads the environment. Whoever means it pays no more than a look at the
// thresholds.
const Isa& isa() {
  const Isa& usual = chosen();
  if (thresholds().lowered) [[unlikely]]
    return tiny_isa();
  return usual;
}

InstructionSet widest_set() { return chosen().set; }
const char* cpu_isa() { return isa().name; }

std::array<Lines, kInstructionSets> lines_of(size_t row, Takes takes) {
  std::array<Lines, kInstructionSets> all = {};
  for (size_t set = 0; set < kInstructionSets; ++set) {
    const bool lowered = InstructionSet(set) == InstructionSet::Tiny;
    if (!lowered && InstructionSet(set) > chosen().set) continue;
    const Lines& simd = (lowered ? tiny::simd_lines() : kTables[set].lines())[row];
    const Lines& plain = (lowered ? tiny::plain_lines() : scalar::plain_lines())[row];
    for (int d = 0; d < kDTypeCount; ++d) {
      if (is_internal(DType(d))) continue;
      const size_t at = size_t(takes == Takes::Bits ? bits_of(DType(d)) : DType(d));
      all[set][size_t(d)] = simd[at] ? simd[at] : plain[at];
      if (lowered && !all[set][size_t(d)]) all[set][size_t(d)] = chosen().lines()[row][at];
    }
  }
  return all;
}

std::vector<Folds> folds_of(size_t row) {
  std::vector<Folds> all(kInstructionSets);
  for (size_t set = 0; set < kInstructionSets; ++set) {
    const bool lowered = InstructionSet(set) == InstructionSet::Tiny;
    if (!lowered && InstructionSet(set) > chosen().set) continue;
    all[set] = (lowered ? tiny::simd_folds() : kTables[set].folds())[row];
    const Folds& plain = (lowered ? tiny::plain_folds() : scalar::plain_folds())[row];
    for (size_t d = 0; d < all[set].size(); ++d)
      if (!all[set][d].fold) all[set][d] = plain[d];
  }
  return all;
}

}  // namespace lamella::kernels
