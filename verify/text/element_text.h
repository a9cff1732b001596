// How elements of narrow dtypes are printed: with the digits of their own dtype, and not more of them.
#pragma once

#include <string>

#include "lamella/core/scalar.h"
#include "lamella/core/tensor.h"

LAMELLA_API_BEGIN
namespace lamella::verify {

/// f16, bf16, f32 and c64: their elements are read as f64 or c128, and printed shorter than those are.
inline bool prints_by_dtype(DType d) {
  return d == DType::F16 || d == DType::BF16 || d == DType::F32 || d == DType::C64;
}
/// Whether the text, rounded once to that dtype, is the element, and one digit less would not be.
bool is_text_of(const Scalar& element, DType dtype, const std::string& text);

/// What is wrong with str(t), which is written a second time.
std::string text_wrong(const Tensor& t);

}  // namespace lamella::verify
LAMELLA_API_END
