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

/// Likewise of one register, where no store stands between: merge(a, b) takes registers and elements.
template <class T, class V, class Merge>
[[gnu::always_inline]] inline T merged_lanes(const V& v, Merge merge) {
  constexpr size_t kHalf = sizeof(V) / sizeof(T) / 2;
  if constexpr (kHalf == 1) return merge(T(v[0]), T(v[1]));
  else {
    using Half = typename RegisterOf<T, int64_t(kHalf * sizeof(T))>::type;
    return [&]<size_t... k>(std::index_sequence<k...>) {
      const Half low = __builtin_shufflevector(v, v, int(k)...);
      const Half high = __builtin_shufflevector(v, v, int(kHalf + k)...);
      return merged_lanes<T>(merge(low, high), merge);
    }
    (std::make_index_sequence<kHalf>{});
  }
}

/// Likewise of registers side by side, a power of two of them.
template <class T, class V, size_t kCount, class Merge>
[[gnu::always_inline]] inline T merged_registers(const V (&kept)[kCount], Merge merge) {
  if constexpr (kCount == 1) return merged_lanes<T>(kept[0], merge);
  else {
    return [&]<size_t... k>(std::index_sequence<k...>) {
      const V half[] = {merge(kept[k], kept[kCount / 2 + k])...};
      return merged_registers<T>(half, merge);
    }
    (std::make_index_sequence<kCount / 2>{});
  }
}

}  // namespace lamella::kernels::LAMELLA_BACKEND
