// What memory bounds, stored past the caches: arithmetic, absolute values, choices. Compiled once per
// LAMELLA_BACKEND.
#include "lamella/kernels/cpu/isa_streams.h"

#include "lamella/kernels/cpu/past_lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {
namespace {

template <class B, class T> void stream_one(void* out, const void* const* ins, int64_t n) {
  const T* a = static_cast<const T*>(ins[0]);
  stream_line(static_cast<T*>(out), n, [a](int64_t i) { return B{}(a[i]); });
}
template <class B, class T> void stream_two(void* out, const void* const* ins, int64_t n) {
  const T *a = static_cast<const T*>(ins[0]), *b = static_cast<const T*>(ins[1]);
  stream_line(static_cast<T*>(out), n, [a, b](int64_t i) { return B{}(a[i], b[i]); });
}
/// The first operand is a condition, of which a register holds four lines' worth.
template <class B, class T> void stream_three(void* out, const void* const* ins, int64_t n) {
  const uint8_t* c = static_cast<const uint8_t*>(ins[0]);
  const T *a = static_cast<const T*>(ins[1]), *b = static_cast<const T*>(ins[2]);
  stream_line<T, 4>(static_cast<T*>(out), n, [c, a, b](int64_t i) { return B{}(c[i], a[i], b[i]); });
}
template <class B, class T> void stream_left(void* out, const void* in, const void* number, int64_t n) {
  const T* b = static_cast<const T*>(in);
  const T a = *static_cast<const T*>(number);
  stream_line(static_cast<T*>(out), n, [a, b](int64_t i) { return B{}(a, b[i]); });
}
template <class B, class T> void stream_right(void* out, const void* in, const void* number, int64_t n) {
  const T* a = static_cast<const T*>(in);
  const T b = *static_cast<const T*>(number);
  stream_line(static_cast<T*>(out), n, [a, b](int64_t i) { return B{}(a[i], b); });
}

template <class B, class T> constexpr StreamLines lines_of() {
  if constexpr (requires(T x) { B{}(x); }) return {stream_one<B, T>};
  else if constexpr (requires(T x) { B{}(x, x); })
    return {stream_two<B, T>, {stream_left<B, T>, stream_right<B, T>}};
  else return {stream_three<B, T>};
}
/// Of these bodies, the one in that row.
template <class T, class... B> StreamLines lines_among(size_t row) {
  StreamLines found;
  (void)((row == row_of<B>() ? (found = lines_of<B, T>(), true) : false) || ...);
  return found;
}
template <class T> StreamLines lines_in_row(size_t row) {
  return lines_among<T, Add, Sub, Mul, Div, Maximum, Minimum, Neg, Abs, Where>(row);
}

}  // namespace

StreamLines find_stream_lines(size_t row, DType dtype) {
  switch (dtype) {
    case DType::F32: return lines_in_row<float>(row);
    case DType::F64: return lines_in_row<double>(row);
    default: return {};
  }
}

void copy_past(char* to, const char* from, int64_t lines) {
  for (; lines > 0; --lines, to += kMemoryLine, from += kMemoryLine) store_past(to, from);
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
