// Lines of arithmetic of which one operand is a number. Compiled once per LAMELLA_BACKEND.
#include "lamella/kernels/cpu/isa_constants.h"

#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

// ivdep: the input may be the output itself, element for element.
template <class B, class T> void number_left(void* out, const void* in, const void* number, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* b = static_cast<const T*>(in);
  const T a = *static_cast<const T*>(number);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = B{}(a, b[i]);
}

template <class B, class T> void number_right(void* out, const void* in, const void* number, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in);
  const T b = *static_cast<const T*>(number);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = B{}(a[i], b);
}

/// Of these bodies, the one in that row.
template <class T, class... B> ConstantLines lines_among(size_t row) {
  ConstantLines found;
  (void)((row == row_of<B>() ? (found = {number_left<B, T>, number_right<B, T>}, true) : false) || ...);
  return found;
}
template <class T> ConstantLines lines_in_row(size_t row) {
  return lines_among<T, Add, Sub, Mul, Div, Maximum, Minimum>(row);
}

}  // namespace

ConstantLines find_constant_lines(size_t row, DType dtype) {
  switch (dtype) {
    case DType::F32: return lines_in_row<float>(row);
    case DType::F64: return lines_in_row<double>(row);
    default: return {};
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
