// Vector registers of one instruction set, as the compiler's vector types: no intrinsics, one text for all.
#pragma once

#include <cstring>
#include <utility>

#include "lamella/kernels/cpu/lines.h"

namespace lamella::kernels::LAMELLA_BACKEND {

#if defined(__AVX512F__)
inline constexpr int64_t kRegisterBytes = 64;
#elif defined(__AVX2__)
inline constexpr int64_t kRegisterBytes = 32;
#else
inline constexpr int64_t kRegisterBytes = 16;
#endif

template <class T, int64_t kBytes> struct RegisterOf { typedef T type __attribute__((vector_size(kBytes))); };

/// kWidth elements of T, a power of two, side by side: how many registers they take, of how many elements.
template <class T, int64_t kWidth> struct SideBySide {
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kLanes = kWidth * kItem < kRegisterBytes ? kWidth : kRegisterBytes / kItem;
  static constexpr int64_t kCount = kWidth / kLanes;
  static constexpr bool kFits = kWidth * kItem >= 16;  ///< below it there is no register
  using Register = typename RegisterOf<T, kFits ? kLanes * kItem : 16>::type;
  /// For packs of registers: an array that a loop walks would lie in memory.
  using Indices = std::make_index_sequence<size_t(kCount)>;
};

template <class V, class T> [[gnu::always_inline]] inline V loaded(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class V, class T> [[gnu::always_inline]] inline void stored(T* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}

/// acc[0] = all of them, halves onto each other.
template <int64_t kWidth, class F, class S> void merge_halves(S* acc) {
  if constexpr (kWidth > 1) {
    for (int64_t j = 0; j < kWidth / 2; ++j) acc[j] = F::merge(acc[j], acc[j + kWidth / 2]);
    merge_halves<kWidth / 2, F>(acc);
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
