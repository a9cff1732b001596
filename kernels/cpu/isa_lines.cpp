// The pointwise lines of one instruction set: f32, f64, i32, i64. Compiled once per LAMELLA_BACKEND.
#include "lamella/kernels/cpu/vector_math.h"

namespace lamella::kernels::LAMELLA_BACKEND {

std::span<const Lines> simd_lines() {
  static constexpr auto kLines = lines_of_rows<float, double, int32_t, int64_t>();
  return kLines;
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
