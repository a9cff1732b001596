// Squares of a transpose, in registers of 16 bytes: every processor that this is compiled for has them.
#pragma once

#include <cstdint>
#include <cstring>

namespace lamella::kernels {

typedef uint32_t FourWords __attribute__((vector_size(16)));
typedef uint64_t TwoWords __attribute__((vector_size(16)));

/// The smallest square: rows of `from` lie `side` elements apart, those of `to` `pitch` bytes.
inline void transpose_registers(char* to, int64_t pitch, const uint32_t* from, int64_t side) {
  FourWords a, b, c, d;
  std::memcpy(&a, from, sizeof a), std::memcpy(&b, from + side, sizeof b);
  std::memcpy(&c, from + 2 * side, sizeof c), std::memcpy(&d, from + 3 * side, sizeof d);
  const FourWords ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const FourWords cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const FourWords ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const FourWords cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7);
  std::memcpy(to, &a, sizeof a), std::memcpy(to + pitch, &b, sizeof b);
  std::memcpy(to + 2 * pitch, &c, sizeof c), std::memcpy(to + 3 * pitch, &d, sizeof d);
}
inline void transpose_registers(char* to, int64_t pitch, const uint64_t* from, int64_t side) {
  TwoWords a, b;
  std::memcpy(&a, from, sizeof a), std::memcpy(&b, from + side, sizeof b);
  const TwoWords first = __builtin_shufflevector(a, b, 0, 2), second = __builtin_shufflevector(a, b, 1, 3);
  std::memcpy(to, &first, sizeof first), std::memcpy(to + pitch, &second, sizeof second);
}
template <class T> void transpose_registers(char* to, int64_t, const T* from, int64_t) {
  std::memcpy(to, from, sizeof(T));
}

/// Elements of a row of that square.
template <class T> inline constexpr int64_t kInRegister = 1;
template <> inline constexpr int64_t kInRegister<uint32_t> = 4;
template <> inline constexpr int64_t kInRegister<uint64_t> = 2;

// Rows of a matrix often lie a power of two apart, where a cache has room for few of their lines: a line that
// is not used whole when it comes is gone when it is needed next. So each is read at once, and written at
// once. Steps so long are also no pattern that the processor asks ahead for: the square after the next is
// asked for here, where the loops over blocks go on along `from`'s rows, and what it is written to.
constexpr int64_t kSquaresAhead = 2;
/// to[j][i] = from[i][j] for i, j < kSide; pitches in bytes.
template <class T, int64_t kSide>
void transpose_square(char* to, int64_t to_pitch, const char* from, int64_t from_pitch) {
  alignas(64) T rows[kSide][kSide];
  for (int64_t i = 0; i < kSide; ++i) {
    std::memcpy(rows[i], from + i * from_pitch, sizeof rows[i]);
    __builtin_prefetch(from + (i + kSquaresAhead * kSide) * from_pitch);
    __builtin_prefetch(to + i * to_pitch + kSquaresAhead * int64_t(sizeof rows[0]), 1);
  }
  for (int64_t j = 0; j < kSide; j += kInRegister<T>) {
    for (int64_t i = 0; i < kSide; i += kInRegister<T>) {
      char* const at = to + j * to_pitch + i * int64_t(sizeof(T));
      transpose_registers(at, to_pitch, &rows[i][j], kSide);
    }
  }
}

}  // namespace lamella::kernels
